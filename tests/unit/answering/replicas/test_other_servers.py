"""Two servers on one ledger in PostgreSQL: what one has answered, the other knows at once.

Neither looks by itself for what the other commits, so that only looking when asked helps.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from app.answering import writer
from app.answering.queries import IdentifiedQueries, in_columns
from app.answering.queue import Decided
from app.answering.replicas.other_servers import Abreast
from app.errors import (
    BudgetExhaustedError,
    IdempotencyConflictError,
    LedgerCorruptError,
    LedgerUnavailableError,
)
from app.ledger.database.postgresql import DRAWING_LOCK
from app.ledger.ledger import Ledger
from app.release.classifier import switch as switch_phase
from app.release.classifier.switch import draw_classifier
from tests.builders.release.served import fresh, published, replay, run, serving
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from app.answering.answers import Told
    from app.answering.queries import Query
    from app.answering.queue import Pending
    from app.answering.writer import Writer
    from app.errors import IntegrityError
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.release import Release
    from tests.builders.ledger.postgresql_server import PostgresqlServer
    from tests.builders.release.served import RowService

HALTS = {"answers__after": "halt", "answers__on_cutoff": "halt"}


@pytest.fixture
def shared(
    tmp_path: Any, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SmallRelease]:
    """Yield a release in a new database, whose servers do not look around by themselves."""
    monkeypatch.setattr(writer, "FOLLOW_SECONDS", 3600.0)
    address = postgresql.create_database()
    yield SmallRelease(tmp_path, ledger_url=address)
    postgresql.drop_database(address)


@asynccontextmanager
async def two(
    release: SmallRelease,
    words: list[int],
    *,
    others: list[int] | None = None,
    stopped: list[IntegrityError] | None = None,
) -> AsyncIterator[tuple[RowService, RowService]]:
    """Serve a release twice; ``stopped`` is told what ended the second one."""
    async with (
        serving(release, words) as one,
        serving(release, others or [], stopped=stopped) as other,
    ):
        yield one, other


def test_a_read_shows_what_another_server_has_answered(shared: SmallRelease) -> None:
    """Budget, head and outlook have every answer as soon as its client has it, hits included."""

    async def test() -> None:
        async with two(shared, [STABLE, HIT, STABLE]) as (one, other):
            for answered, unstable in ((1, 0), (2, 1), (3, 1)):
                await one.answer_many([ask(answered)])
                head = await one.ledger_head()
                budget: Any = (await other.read_budget()).model_dump()
                assert budget["queries"]["answered"] == answered
                assert budget["unstable"]["count"] == unstable
                assert budget["ledger"] == {"sequence": head["sequence"], "head": head["hash"]}
                assert await other.ledger_head() == head
                outlook: Any = await other.outlook()
                assert outlook["chain"]["checked_to"] == head["sequence"]
                assert outlook["chain"]["complete"]
                assert outlook["over_time"]["answered"][-1] == answered
            assert outlook["over_answers"] == {"answers": [2], "unstable": [1]}
            # It is read and not adopted: nobody has asked it anything.
            behind = other.budget().model_dump()
            assert behind["queries"]["answered"] == 0

    run(test())


def test_an_answer_is_repeated_by_another_server_at_once(shared: SmallRelease) -> None:
    """Vector and key are known there as soon as the client has the answer, and so is a conflict."""

    async def test() -> None:
        async with two(shared, [STABLE, STABLE]) as (one, other):
            assert await one.answer_many([ask(1, "k")]) == [fresh(1)]
            assert await other.answer_many([ask(1)]) == [replay(1)]
            assert await other.answer_many([ask(1, "k")]) == [replay(1)]
            (conflict,) = await other.answer_many([ask(2, "k")])
            assert isinstance(conflict, IdempotencyConflictError)
            # A key beside a recorded answer has no entry, and is known all the same.
            assert await other.answer_many([ask(1, "beside")]) == [replay(1)]
            (conflict,) = await one.answer_many([ask(3, "beside")])
            assert isinstance(conflict, IdempotencyConflictError)

    run(test())


async def tell_alone(service: RowService, query: Query) -> Told:
    """Ask one query past the web framework, and by it where that has to decide."""
    found = service.answer_at_once(in_columns([query]))
    if found is None:
        (told,) = await service.answer_many([query])
        return told
    if not isinstance(found, IdentifiedQueries):
        return found
    decided: Pending = asyncio.get_running_loop().create_future()
    service.enqueue_alone(found, decided)
    result = await decided
    assert isinstance(result, Decided)
    return service.told_alone(found, result.decisions)


def test_a_query_past_the_framework_is_decided_by_what_all_servers_have(
    shared: SmallRelease,
) -> None:
    """A new vector goes to the writer; a known one is answered once the ledger has been read."""

    async def test() -> None:
        async with two(shared, [STABLE] * 4) as (one, other):
            assert await tell_alone(one, ask(40)) == fresh(1)
            assert isinstance(other.answer_at_once(in_columns([ask(40)])), IdentifiedQueries)
            assert await tell_alone(other, ask(40)) == replay(1)
            assert other.answer_at_once(in_columns([ask(40)])) is None
            assert await tell_alone(other, ask(40)) == replay(1)
            for vector in (30, -30, -40):
                await tell_alone(one, ask(vector))
            assert await tell_alone(one, ask(40)) == published("yes")
            assert await tell_alone(other, ask(40)) == published("yes")
            assert await tell_alone(other, ask(-45)) == published("no")

    run(test())


def test_a_query_past_the_framework_is_refused_after_a_halt_of_another_server(
    shared: SmallRelease,
) -> None:
    """The writer reads what others have committed before it decides."""
    halting = replace(shared, changes=HALTS)

    async def test() -> None:
        async with two(halting, [HIT, HIT]) as (one, other):
            await one.answer_many([ask(2), ask(3)])
            assert isinstance(await tell_alone(other, ask(4)), BudgetExhaustedError)
            assert await tell_alone(other, ask(3)) == replay(2, None, stable=False)

    run(test())


def test_a_switch_is_seen_by_every_server_at_once(shared: SmallRelease) -> None:
    """Where one has published, another one's memory answers nothing any more but keys."""

    async def test() -> None:
        async with two(shared, [STABLE] * 4) as (one, other):
            await one.answer_many([ask(40, "k")])
            assert await other.answer_many([ask(40), ask(40, "k")]) == [replay(1), replay(1)]
            await one.answer_many([ask(30), ask(-30), ask(-40)])
            assert await one.answer_many([ask(40)]) == [published("yes")]
            budget: Any = (await other.read_budget()).model_dump()
            assert (budget["phase"], budget["switching"]) == ("classifier", False)
            assert await other.answer_many([ask(40)]) == [published("yes")]
            assert await other.answer_many([ask(40), ask(-45), ask(40, "k")]) == [
                published("yes"),
                published("no"),
                replay(1),
            ]
            assert await other.classifier() == await one.classifier()
            assert await other.ledger_head() == await one.ledger_head()

    run(test())


def test_one_server_draws_what_all_publish(
    shared: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all have come to the switch, one has the turn, and the others find its classifier."""
    drawn: list[PublishedClassifier] = []

    def slow_draw(release: Release, noise: NoiseSource) -> PublishedClassifier:
        time.sleep(0.5)
        drawn.append(draw_classifier(release, noise))
        return drawn[-1]

    monkeypatch.setattr(switch_phase, "draw_classifier", slow_draw)

    async def test() -> None:
        async with two(shared, [STABLE] * 4) as (one, other):
            await one.answer_many([ask(40), ask(30), ask(-30), ask(-40)])
            both = await asyncio.gather(one.answer_many([ask(45)]), other.answer_many([ask(-45)]))
            assert list(both) == [[published("yes")], [published("no")]]
            assert await one.classifier() == await other.classifier() == drawn[0].json

    run(test())
    assert len(drawn) == 1


def test_what_was_drawn_when_the_turn_was_lost_is_published_by_nobody(
    shared: SmallRelease, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may draw by then, and so it is drawn again in a turn of its own."""
    drawn: list[PublishedClassifier] = []

    def draw_and_lose_the_turn(release: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn.append(draw_classifier(release, noise))
        if len(drawn) == 1:
            with postgresql.connect(shared.ledger_url) as connection:
                ended = connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
                    "AND classid::bigint = %s AND objsubid = 2",
                    (DRAWING_LOCK,),
                )
                assert ended.fetchall() == [(True,)]
        return drawn[-1]

    monkeypatch.setattr(switch_phase, "draw_classifier", draw_and_lose_the_turn)

    async def test() -> None:
        async with serving(shared, [STABLE] * 4) as service:
            await service.answer_many([ask(40), ask(30), ask(-30), ask(-40)])
            assert await service.answer_many([ask(45)]) == [published("yes")]
            assert await service.classifier() == drawn[1].json

    run(test())
    assert len(drawn) == 2


def test_a_halt_is_seen_by_every_server_at_once(shared: SmallRelease) -> None:
    """New vectors are refused everywhere, and recorded ones are answered as before."""
    halting = replace(shared, changes=HALTS)

    async def test() -> None:
        async with two(halting, [HIT, HIT], others=[STABLE]) as (one, other):
            assert await other.answer_many([ask(1)]) != []
            await one.answer_many([ask(2), ask(3)])
            budget: Any = (await other.read_budget()).model_dump()
            assert (budget["phase"], budget["unstable"]["left"]) == ("halted", 0)
            assert [type(each) for each in await other.answer_many([ask(4)])] == [
                BudgetExhaustedError
            ]
            assert await other.answer_many([ask(3)]) == [replay(3, None, stable=False)]

    run(test())


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, LedgerUnavailableError), (HALTS, type(replay(1)))]
)
def test_without_the_ledger_a_server_repeats_what_cannot_have_changed(
    shared: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    expected: type,
) -> None:
    """Where a switch may have come it refuses, as it does to tell a budget."""

    def unreadable(_: Ledger) -> None:
        raise LedgerUnavailableError("the ledger is away")

    async def test() -> None:
        async with two(replace(shared, changes=changes), [STABLE]) as (one, _):
            await one.answer_many([ask(1)])
            with monkeypatch.context() as away:
                away.setattr(Ledger, "read_state", unreadable)
                with pytest.raises(LedgerUnavailableError):
                    await one.read_budget()
                given = await one.answer_many([ask(1)]) + await one.answer_many([ask(1), ask(1)])
                assert [type(each) for each in given] == [expected] * 3

    run(test())


def test_a_switch_that_cannot_be_adopted_is_answered_by_nobody(
    shared: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that knows that another one switched, and to what it cannot read, refuses."""

    async def test() -> None:
        async with two(shared, [STABLE] * 4) as (one, other):
            await one.answer_many([ask(40)])
            assert await other.answer_many([ask(40)]) == [replay(1)]
            await one.answer_many([ask(30), ask(-30), ask(-40)])
            assert await one.answer_many([ask(40)]) == [published("yes")]
            with monkeypatch.context() as away:

                def unreadable(*_: object) -> None:
                    raise LedgerUnavailableError("the ledger is away")

                away.setattr(Ledger, "answers_after", unreadable)
                (refused,) = await other.answer_many([ask(40)])
                assert isinstance(refused, LedgerUnavailableError)
            assert await other.answer_many([ask(40)]) == [published("yes")]

    run(test())


def test_a_ledger_that_is_not_what_was_written_stops_a_reader(
    shared: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the budget finds it out, and nothing is answered after."""
    stopped: list[IntegrityError] = []

    def altered(_: Ledger) -> None:
        raise LedgerCorruptError("an entry was altered")

    async def test() -> None:
        async with two(shared, [STABLE], stopped=stopped) as (_, other):
            with monkeypatch.context() as reading:
                reading.setattr(Ledger, "read_state", altered)
                with pytest.raises(LedgerCorruptError):
                    await other.read_budget()
            with pytest.raises(LedgerCorruptError):
                await other.answer_many([ask(1)])

    run(test())
    assert [type(error) for error in stopped] == [LedgerCorruptError]


def test_many_who_ask_at_once_share_a_read_that_began_after_they_asked(
    shared: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that is under way is nobody's who comes later: all those share the one after it."""
    begun: list[int] = []
    read_state = Ledger.read_state

    def counted(self: Ledger) -> Any:
        begun.append(1)
        return read_state(self)

    async def test() -> None:
        answerer = shared.answerer([])
        monkeypatch.setattr(Ledger, "read_state", counted)
        abreast = Abreast(answerer, cast("Writer", None))
        first = asyncio.create_task(abreast.state())
        while not begun:  # noqa: ASYNC110 -- it begins on another thread
            await asyncio.sleep(0)
        await asyncio.gather(first, *(abreast.state() for _ in range(50)))
        assert len(begun) == 2
        hung_up = asyncio.create_task(abreast.state())
        await asyncio.sleep(0)
        hung_up.cancel()
        assert (await abreast.state()).head == answerer.release.state.head

    run(test())
