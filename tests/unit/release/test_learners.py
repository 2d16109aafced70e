"""Learners of a release: the machine's failure halts it, and a setting of old has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.answer_query import CONTAINED, FAILED_AFTER_VOTE
from app.errors import BudgetExhaustedError, ContainedError
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.learning_sections import JOBS_UNUSED
from tests.builders.release.opened_release import NoNoise, changed
from tests.builders.release.small_release import (
    STABLE,
    RowAnswerer,
    SmallRelease,
    ask,
    private_rows,
    scripted_noise,
)

if TYPE_CHECKING:
    from pathlib import Path

STARVED = "tests.builders.learners.plain_estimators:Starved"
STARVING = 50.0  # scaled to one, where such an estimator is refused memory


def test_a_vote_that_the_machine_fails_halts_the_release_for_good(
    small_release: SmallRelease,
) -> None:
    """Nothing is answered in its place, class 0 least of all; what was charged stays."""
    release = changed(
        small_release,
        learner__estimator=STARVED,
        learner__params='{"at": "predict"}',
        answers__reply_padding_milliseconds="0",
        answers__query_seconds_max="120",
    )
    answerer = RowAnswerer(release.open(), scripted_noise(STABLE))
    before = answerer.release.ledger.read_state()
    answerer.answer_batch([ask(1)])
    with pytest.raises(ContainedError) as contained:
        answerer.answer_batch([ask(STARVING)])
    assert str(contained.value) == CONTAINED
    after = answerer.release.ledger.read_state()
    assert after.halted == ReleaseHalted(reason=FAILED_AFTER_VOTE)
    assert (after.answered, after.charged) == (1, before.charged)
    (refused,) = RowAnswerer(release.open(), NoNoise()).answer_batch([ask(STARVING)])
    assert isinstance(refused, BudgetExhaustedError)


def test_a_number_of_processes_is_taken_and_has_no_effect(tmp_path: Path) -> None:
    """A ledger that was opened with one goes on with another or none; a start says so in a line."""
    rows = private_rows()
    lines = (
        f"{margin},{'ab'[int(group) % 2]},{('no', 'yes')[label]}"
        for (margin, group), label in zip(rows.values, rows.labels, strict=True)
    )
    (tmp_path / "rows.csv").write_text("\n".join(["margin,group,answer", *lines]) + "\n")
    there = {
        "data__source": str(tmp_path / "rows.csv"),
        "ledger__url": f"sqlite:///{tmp_path / 'conclave.db'}",
    }
    bytes_of = []
    for jobs, expected in (("2", [JOBS_UNUSED]), ("1", [JOBS_UNUSED]), (None, [])):
        given = {} if jobs is None else {"learner__jobs": jobs}
        said: list[str] = []
        release = open_from_settings(
            SmallRelease(tmp_path, {**there, **given}).settings(),
            noise=SystemNoise(),
            warn=said.append,
            even_if_hopeless=True,
        )
        assert [line for line in said if line.startswith("learner.jobs")] == expected
        bytes_of.append(release.ensemble.to_bytes())
        release.ledger.close()
    assert bytes_of[0] == bytes_of[1] == bytes_of[2]
