"""Each fault that is planted in servers of one ledger is in what serves, shown by two of them.

The campaigns that must find these faults are long, and a plant that no longer bites would
make them campaigns that cannot fail.  Of servers without a fault
``tests/unit/answering/replicas/test_other_servers.py`` asks the opposite, in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering import writer
from app.answering.replicas.other_servers import Abreast
from app.answering.service import ConclaveService
from app.answering.writer import Writer
from app.ledger.database import postgresql as postgresql_ledger
from tests.builders.crash.planted_replicas import NO_TURNS, PLANTING, STALE_READS, STALE_REPLAYS
from tests.builders.release.served import published, replay, run, serving
from tests.builders.release.small_release import STABLE, SmallRelease, ask
from tests.unit.answering.replicas.test_other_servers import two

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer


@pytest.fixture
def planted(
    tmp_path: Path, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SmallRelease]:
    """Yield a release in a new database, whose servers look around only when asked."""
    for owner, name in (
        (ConclaveService, "read_budget"),
        (Abreast, "phase_for"),
        (Writer, "start"),
        (postgresql_ledger, "_BEGIN"),
    ):
        monkeypatch.setattr(owner, name, vars(owner)[name])  # as they are again after the test
    monkeypatch.setattr(writer, "FOLLOW_SECONDS", 3600.0)
    address = postgresql.create_database()
    yield SmallRelease(tmp_path, ledger_url=address)
    postgresql.drop_database(address)


def test_stale_reads_do_not_count_what_another_has_answered(planted: SmallRelease) -> None:
    """The budget of a planted server is that of before the other's answer."""
    PLANTING[STALE_READS]()

    async def test() -> None:
        async with two(planted, [STABLE]) as (one, other):
            await one.answer_many([ask(1)])
            budget = await other.read_budget()
            assert budget.queries.answered == 0

    run(test())


def test_stale_replays_are_of_before_the_switch(planted: SmallRelease) -> None:
    """A planted server repeats an answer where the other has published a classifier."""
    PLANTING[STALE_REPLAYS]()

    async def test() -> None:
        async with two(planted, [STABLE] * 4) as (one, other):
            await one.answer_many([ask(40)])
            assert await other.answer_many([ask(40)]) == [replay(1)]
            await one.answer_many([ask(30), ask(-30), ask(-40)])
            assert await one.answer_many([ask(40)]) == [published("yes")]
            assert await other.answer_many([ask(40)]) == [replay(1)]

    run(test())


def test_without_turns_two_servers_write_at_once(planted: SmallRelease) -> None:
    """Once a planted server serves, one begins to write within the transaction of another."""
    PLANTING[NO_TURNS]()

    async def test() -> None:
        async with serving(planted, []):
            pass

    run(test())
    with planted.ledger().transaction(), planted.ledger().transaction():
        pass
