"""What a ledger takes from queries side by side is what it takes from them one by one."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from app.answering import batch_decisions as batch
from app.answering.queries import Asker, Queries, in_columns
from app.data.vectors import TOGETHER_MIN, replay_keys
from app.errors import LedgerUnavailableError
from app.ledger.verification import verify
from app.noise.scripted import seeded_words
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase
from tests.builders.ledger.faulty_ledger import FaultyLedger
from tests.builders.release.small_release import (
    HIT,
    STABLE,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    ask,
)
from tests.property.two_scripts import TwoScripts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.ledger.faulty_ledger import Fault

WINDOW = TOGETHER_MIN + 4
CHANGES = {
    "answers__queries": str(2 * WINDOW + 3),  # the last answer is in the middle of a window
    "answers__cutoff": "9",
    "answers__unstable": "coin",
}
ASKER = Asker("web")


def plain(first: int) -> Queries:
    """Return a window of new vectors as a stream's lines make it."""
    vectors = [ask(float(margin) + 0.25).vector for margin in range(first, first + WINDOW)]
    return Queries.plain(replay_keys(vectors), ASKER)


def mixed() -> Queries:
    """Return recorded, repeated, new and keyed queries of one window."""
    keyed = [ask(49.0, "a"), ask(49.0, "a"), ask(-49.0, "a"), ask(-20.0 + 0.25, "b")]
    return plain(-10).followed_by([in_columns([ask(48.0), *keyed, ask(48.0)])])


def life(folder: Path, fault: Fault | None, *, one_by_one: bool) -> tuple[object, ...]:
    """Ask windows, of which the second's commit fails and the caller tries again.

    Returns:
        What was decided, the ledger's entries, answers and counts, and the lines logged.

    """
    folder.mkdir()
    release = SmallRelease(folder, CHANGES)
    ledger = FaultyLedger(release)
    opened = release.open(ledger=ledger)
    opened.private_ensemble = VotesByMargin()
    words = cycle([STABLE, STABLE, STABLE, HIT, STABLE, STABLE, STABLE])
    answerer = RowAnswerer(opened, TwoScripts(words, seeded_words(6)))
    ledger.faults = [None, fault]
    given: list[str] = []
    with (
        patch.object(batch, "TOGETHER_MIN", 10**9 if one_by_one else TOGETHER_MIN),
        patch.object(query_decision, "steps", side_effect=query_decision.steps) as together,
        capture_logs() as lines,
    ):
        for window in (plain(-20), plain(0), plain(0), mixed(), plain(20)):
            try:
                decided = answerer.answer_batch(answerer.identify(window))
            except LedgerUnavailableError:
                continue
            given += [f"{type(each)} {getattr(each, 'recorded', each)}" for each in decided]
            answerer.tell_committed()
    verify(ledger)
    assert together.call_count == (0 if one_by_one else 3)
    assert opened.phase is Phase.CLASSIFIER
    entries = [(each["sequence"], each["hash"]) for each in ledger.public_entries(0, 100)]
    answers, counts = list(ledger.answers_after(0)), dict(ledger.key_counts())
    told = [line for line in lines if line["event"] == "answers_committed"]
    return given, entries, answers, counts, sorted(ledger.keys()), told, answerer.key_counts


@pytest.mark.parametrize("fault", [None, "refused", "cut off", "lost"])
def test_a_life_side_by_side_is_that_of_queries_one_by_one(
    tmp_path: Path, fault: Fault | None
) -> None:
    """Replies, entries to the last hash, rows, keys, counts and lines, though a commit fails."""
    alone = life(tmp_path / "alone", fault, one_by_one=True)
    together = life(tmp_path / "together", fault, one_by_one=False)
    for expected, found in zip(alone, together, strict=True):
        assert found == expected
