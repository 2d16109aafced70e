"""A ledger of forty thousand answers: its start reads no more than a shorter one's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine, event

from app.answering.answer_query import READ_AT_ONCE_MAX
from app.answering.queries import Fresh, Query
from app.ledger.entries.checkpoint import CHECKPOINT_ENTRIES
from app.ledger.ledger import RecordedAnswer, open_ledger
from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.settings.settings import load_settings
from benchmarks.measuring.long_ledger import lengthen, open_number_release
from tests.builders.release.small_release import RowAnswerer

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from app.settings.settings import Settings

SHORT, LONG = 2 * READ_AT_ONCE_MAX, 40_000
ANSWERS_AN_ENTRY = 10
STEPS_EACH = 1000
# A start folds up to 256 entries and counts their answers, which costs about 40
# instructions of SQLite's machine for each entry of ten answers; the two lengths differ
# in where the newest checkpoint lies, and so in up to so much.  Reading the answers that
# the longer one has more takes 180,000.
STEPS_APART_MAX = 60 * CHECKPOINT_ENTRIES


def start(settings: Settings) -> RowAnswerer:
    """Start as the server does."""
    release = open_from_settings(settings, noise=SystemNoise())
    return RowAnswerer(release, SystemNoise())


def steps_of_a_start(settings: Settings) -> int:
    """Return how many instructions SQLite's machine runs in a start, to a thousand."""
    counted = [0]

    def count() -> int:
        counted[0] += STEPS_EACH
        return 0

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.set_progress_handler(count, STEPS_EACH)

    event.listen(Engine, "connect", connected)
    try:
        start(settings).release.ledger.close()
    finally:
        event.remove(Engine, "connect", connected)
    return counted[0]


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, dict[int, int]]:
    """Return a release of 40,000 answers, and the steps of a start before and there."""
    folder: Path = tmp_path_factory.mktemp("long")
    settings = load_settings(open_number_release(folder, limit=LONG + 1), {})
    steps = {}
    for length in (SHORT, LONG):
        ledger = open_ledger(settings.ledger_url, create=True)
        lengthen(
            ledger,
            answer_count=length,
            answers_an_entry=ANSWERS_AN_ENTRY,
        )
        ledger.close()
        steps[length] = steps_of_a_start(settings)
    return settings, steps


def test_a_start_reads_as_much_of_a_long_ledger_as_of_a_short_one(
    lengths: tuple[Settings, dict[int, int]],
) -> None:
    """Twice the entries and answers cost the database no further work."""
    _, steps = lengths
    assert steps[LONG] <= steps[SHORT] + STEPS_APART_MAX


def test_the_count_of_steps_sees_a_start_that_reads_everything(
    lengths: tuple[Settings, dict[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: with every answer read into memory, as once, the bound is broken."""
    settings, steps = lengths
    monkeypatch.setattr("app.answering.answer_query.READ_AT_ONCE_MAX", LONG)
    assert steps_of_a_start(settings) > steps[SHORT] + STEPS_APART_MAX


def test_what_is_not_in_memory_is_replayed(
    lengths: tuple[Settings, dict[int, int]],
) -> None:
    """Recorded vectors get their answers and numbers, and the one new vector the last number."""
    settings, _ = lengths
    answerer = start(settings)
    asked = [1, 2, SHORT, LONG - 1, LONG, LONG + 1]
    decided = answerer.answer_batch([Query((float(number),), None) for number in asked])
    assert decided[:-1] == [RecordedAnswer(number, 0, stable=True) for number in asked[:-1]]
    assert isinstance(decided[-1], Fresh)
    assert decided[-1].recorded.query_id == LONG + 1
    answerer.release.ledger.close()
