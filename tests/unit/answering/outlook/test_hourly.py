"""A history by hour: it survives restarts, adds up over servers, and is bounded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.answering.outlook.hourly import HOUR_SECONDS, Hourly
from app.errors import LedgerUnavailableError
from app.ledger.database.hour_counts import HOURS_MAX, HourCounts
from app.ledger.verification import verify
from tests.builders.ledger.releases import create, open_release
from tests.builders.server.serving import Served
from tests.http.end_to_end.test_generations import AGREED, Life

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from app.ledger.ledger import Ledger


def opened(path: Path) -> Ledger:
    """Return the ledger of an open release."""
    ledger = create(path)
    open_release(ledger)
    return ledger


def asked(history: object) -> list[tuple[int, ...]]:
    """Return the hours of a document, each with its counts."""
    assert isinstance(history, dict)
    return [tuple(each.values()) for each in history["hours"]]


def test_a_history_survives_restarts(tmp_path: Path) -> None:
    """Requests of before and after are in one row of their hour, over HTTP; the ledger verifies."""
    life = Life(tmp_path)
    for place in range(2):
        with Served(life.settings, clock=lambda: life.now) as served:
            vector = life.near(AGREED)
            for _ in range(2):
                served.query(vector)
            served.query(["far"])
            history = served.get("/budget/history").json()
            assert asked(history) == [(int(life.now), *((place + 1) * n for n in (1, 0, 1, 0, 1)))]
    life.now += HOUR_SECONDS
    with Served(life.settings, clock=lambda: life.now) as served:
        served.stream([life.near(AGREED), ["far"]])
        times = [each[0] for each in asked(served.get("/budget/history").json())]
        assert times == [int(life.now) - HOUR_SECONDS, int(life.now)]
    assert [entry["kind"] for entry in life.entries()].count("AnswersReleased") > 0


def test_servers_of_one_ledger_add_up(tmp_path: Path) -> None:
    """What one has written and what the other has yet to write are one count."""
    ledger = opened(tmp_path / "shared.db")
    one, other = (Hourly(ledger, lambda: 7.5 * HOUR_SECONDS) for _ in range(2))
    one.add("fresh", 3, unstable=1)
    asyncio.run(one.write())
    asyncio.run(one.write())  # once only
    other.add("fresh", 2)
    other.add("classified", 4)
    shown = asked(asyncio.run(other.document()))
    assert shown == [(7 * HOUR_SECONDS, 5, 1, 0, 4, 0)]
    asyncio.run(other.write())
    assert ledger.hour_counts() == {7: HourCounts(5, 1, 0, 4, 0)}
    verify(ledger)


def test_old_hours_are_forgotten(tmp_path: Path) -> None:
    """As many as are kept stay, the newest."""
    ledger = opened(tmp_path / "old.db")
    ledger.add_hours({hour: HourCounts(1) for hour in range(1, HOURS_MAX + 1)})
    assert len(ledger.hour_counts()) == HOURS_MAX
    ledger.add_hours({HOURS_MAX + 2: HourCounts(1)})
    assert min(ledger.hour_counts()) == 3


def test_what_the_ledger_does_not_take_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost and nothing counted twice."""
    ledger = opened(tmp_path / "away.db")
    hourly = Hourly(ledger, lambda: 0.0)
    hourly.add("repeated", 2)
    with monkeypatch.context() as away:

        def refuse(_: object) -> None:
            raise LedgerUnavailableError("away")

        away.setattr(ledger, "add_hours", refuse)
        asyncio.run(hourly.write())
    hourly.add("repeated", 1)
    asyncio.run(hourly.write())
    assert ledger.hour_counts() == {0: HourCounts(repeated=3)}
