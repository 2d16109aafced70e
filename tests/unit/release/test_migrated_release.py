"""A release whose ledger an earlier revision wrote is served on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.queries import Fresh
from app.errors import IdempotencyConflictError
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import copy_down, revisions
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask

if TYPE_CHECKING:
    from pathlib import Path

    from app.answering.batch_decisions import Decision

OPENED_AND_ASKED = (ask(1, "first"), ask(2), ask(None))


def given(decision: Decision) -> tuple[int, int | None, bool]:
    """Return what a client is told of an answer."""
    recorded = decision.recorded if isinstance(decision, Fresh) else decision
    assert isinstance(recorded, RecordedAnswer)
    return recorded.query_id, recorded.label, recorded.stable


@pytest.mark.parametrize("revision", revisions()[:-1])
def test_a_migrated_release_is_served_on(tmp_path: Path, revision: str) -> None:
    """Answers and keys of before are repeated, a key's other vector refused, and one more drawn."""
    release, folder = SmallRelease(tmp_path / "whole"), tmp_path / "old"
    for each in (release.folder, folder):
        each.mkdir()
    before = release.answerer([STABLE, HIT, STABLE])
    answers = [given(each) for each in before.answer_batch(OPENED_AND_ASKED)]
    state = before.release.state
    before.release.ledger.close()
    copy_down(release.folder / "conclave.db", folder / "conclave.db", revision)
    served = SmallRelease(folder).answerer([STABLE])
    assert served.release.state == state
    *replayed, conflict, fresh = served.answer_batch(
        [ask(1, "first"), ask(2, "second"), ask(None), ask(2, "first"), ask(4)]
    )
    assert all(isinstance(each, RecordedAnswer) for each in replayed)
    assert [given(each) for each in replayed] == answers
    assert isinstance(conflict, IdempotencyConflictError)
    assert given(fresh)[0] == len(answers) + 1
    report = verify(served.release.ledger, state.head.hash)
    assert (report.answered, report.unstable) == (len(answers) + 1, 1)
