"""Two servers of one release that grows, on one ledger in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.answering.queries import Fresh
from app.errors import LedgerUnavailableError, WaitingError
from app.ledger.database.postgresql import DRAWING_LOCK
from app.ledger.entries.generations import generations_of
from app.ledger.ledger import RecordedAnswer
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from tests.builders.ledger.outside_audit import faults_in, hits_between
from tests.builders.release.growing_release import MINUTE, GrowingRelease, vote_by_margin
from tests.builders.release.small_release import HIT, STABLE, ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer
    from tests.builders.release.growing_release import GrowingAnswerer


@pytest.fixture
def growing(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[GrowingRelease]:
    """Return a release whose ledger is in a database of its own."""
    address = postgresql.create_database()
    yield GrowingRelease(tmp_path, ledger_url=address)
    postgresql.drop_database(address)


def words(answerer: GrowingAnswerer, *drawn: int) -> GrowingAnswerer:
    """Return a server whose next words are these."""
    answerer._noise = ScriptedNoise(drawn)
    vote_by_margin(answerer.living)
    return answerer


def test_two_servers_charge_the_same_generations(growing: GrowingRelease) -> None:
    """One makes the tick, the other votes with who joined; a hit of either counts for both."""
    one, other = growing.answerer(), growing.answerer()
    growing.append(one.release.ledger)
    growing.pass_periods(one, 2)
    assert other.follow()
    assert other.release.ensemble_size == 10
    words(other, HIT).answer_batch([ask(1)])
    decided = words(one, HIT, STABLE).answer_batch([ask(1), ask(2), ask(3)])
    assert [type(each) for each in decided] == [RecordedAnswer, Fresh, WaitingError]
    assert other.follow()
    assert other.living.private_fitted == {}
    verify(one.release.ledger)
    entries = one.release.ledger.public_entries(0, 1000)
    assert faults_in(entries) == []
    assert hits_between(entries) == {1: (2, 2), 2: (2, 2)}
    other.release.ledger.close()
    one.release.ledger.close()


def test_a_tick_is_made_by_one_server(growing: GrowingRelease) -> None:
    """The other finds it made, and adopts it."""
    one, other = growing.answerer(), growing.answerer()
    growing.now += MINUTE
    one.tick(growing.ticker(one.release.ledger))
    other.tick(growing.ticker(other.release.ledger))
    assert one.release.state == other.release.state
    assert generations_of(one.release.state.generations).tick == 2
    other.release.ledger.close()
    one.release.ledger.close()


def test_an_answer_of_another_server_before_a_tick_is_known_after_it(
    growing: GrowingRelease,
) -> None:
    """The server that makes the tick gives it again, and draws nothing for its vector."""
    one, other = growing.answerer(), growing.answerer()
    (given,) = words(other, STABLE).answer_batch([ask(30)])
    assert isinstance(given, Fresh)
    growing.now += MINUTE
    one.tick(growing.ticker(one.release.ledger))
    (again,) = words(one, STABLE).answer_batch([ask(30)])
    assert again == given.recorded
    other.release.ledger.close()
    one.release.ledger.close()


def test_one_server_fits_what_was_appended(tmp_path: Path) -> None:
    """While its turn lasts, until the tick, no other draws a labelling."""
    growing = GrowingRelease(tmp_path)
    one = growing.answerer()
    growing.append(one.release.ledger)
    one.follow()
    ticker = growing.ticker(one.release.ledger)
    other = growing.small.ledger()
    with (
        other.turn_to_draw(other.release_number),
        pytest.raises(LedgerUnavailableError),
    ):
        ticker.fit_waiting()
    ticker.fit_waiting()
    assert set(ticker.waiting.private_fitted) == {2}
    late = growing.ticker(other)
    with pytest.raises(LedgerUnavailableError):
        late.fit_waiting()
    growing.now += 2 * MINUTE
    one.tick(ticker)
    assert ticker.waiting.private_fitted == {}
    with other.turn_to_draw(other.release_number):
        pass
    other.close()
    one.release.ledger.close()


@pytest.mark.parametrize("is_noticed", [True, False])
def test_a_turn_that_was_cut_off_is_taken_again(
    growing: GrowingRelease, postgresql: PostgresqlServer, *, is_noticed: bool
) -> None:
    """A restart of the database between fit and tick stops nothing: what waits is fitted anew."""
    one = growing.answerer()
    ledger = one.release.ledger
    growing.append(ledger)
    one.follow()
    ticker = growing.ticker(ledger)
    ticker.fit_waiting()
    assert not ticker.awaits_fit(one.release.state)
    with postgresql.connect(growing.ledger_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' "
            "AND classid::bigint = %s AND objsubid = 2",
            (DRAWING_LOCK,),
        )
    assert ticker.awaits_fit(one.release.state)
    if is_noticed:
        ticker.fit_waiting()
    growing.now += 2 * MINUTE
    if not is_noticed:
        with pytest.raises(LedgerUnavailableError):
            one.tick(ticker)
        ticker.fit_waiting()
    one.tick(ticker)
    assert one.release.ensemble_size == 10
    verify(ledger)
    ledger.close()
