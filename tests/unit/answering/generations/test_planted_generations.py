"""Faults planted in the charges of generations, and which check sees each.

Where the fold is right, nothing that a faulty server would write is committed; where the fold
itself is at fault, the entries alone tell a stranger of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from app.answering.generations import generations_answerer
from app.errors import ContainedError, InvariantError
from app.ledger.entries import generations
from app.ledger.entries.entry_kinds import GenerationsJoined
from app.ledger.entries.generations import Generations, generations_of
from app.noise.scripted import ScriptedNoise
from app.privacy.voting import query_decision
from app.release.generations.generations_release import LivingRelease
from app.release.generations.tick import Kept, Ticker
from tests.builders.ledger.outside_audit import faults_in
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.small_release import HIT, STABLE, ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.entries.fold import LedgerState
    from app.ledger.transaction import Transaction
    from tests.builders.release.growing_release import GrowingAnswerer


def _charging(chosen: Callable[[Generations], set[int]]) -> Callable[..., Generations]:
    """Return a charge of only some of those that vote: the fault of a server and its fold."""

    def charged(known: Generations, opened: ReleaseOpened, event: Any) -> Generations:
        del opened
        hits, numbers = event.stable.count(False), chosen(known)
        return replace(
            known,
            all=tuple(
                replace(each, unstable=each.unstable + hits) if each.number in numbers else each
                for each in known.all
            ),
        )

    return charged


def _newest(known: Generations) -> set[int]:
    return {known.active[-1].number}


def _oldest(known: Generations) -> set[int]:
    return {known.active[0].number}


def _starting_anew(original: Callable[..., Generations]) -> Callable[..., Generations]:
    """Return an append, or a tick, after which every counter begins anew."""

    def applied(known: Generations, *given: Any) -> Generations:
        after = original(known, *given)
        return replace(after, all=tuple(replace(each, unstable=0) for each in after.all))

    return applied


def _play(growing: GrowingRelease) -> GrowingAnswerer:
    """Play a life of two generations in which most answers are unstable, as long as it goes."""
    answerer = growing.answerer([HIT])
    answerer.answer_batch([ask(1)])
    for number in (2, 3):
        growing.append(answerer.release.ledger, seed=20 + number)
        growing.pass_periods(answerer, 2)
        answerer._noise = ScriptedNoise([HIT] * 4)
        answerer.answer_batch([ask(10 * number), ask(10 * number + 1)])
    return answerer


FOLDS: dict[str, tuple[str, Callable[[Callable[..., Generations]], Callable[..., Generations]]]] = {
    "1: counters begin anew at an append": ("appended", _starting_anew),
    "1: counters begin anew at a tick": ("ticked", _starting_anew),
    "3: only the newest is charged": ("charged", lambda _: _charging(_newest)),
    "4: only the oldest is charged": ("charged", lambda _: _charging(_oldest)),
}


@pytest.mark.parametrize(("name", "fault"), FOLDS.values(), ids=FOLDS)
def test_a_fault_of_the_fold_shows_in_the_entries_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    fault: Callable[[Callable[..., Generations]], Callable[..., Generations]],
) -> None:
    """Hits between join and retirement come to more than T, whatever the server counts."""
    monkeypatch.setattr(generations, name, fault(getattr(generations, name)))
    answerer = _play(GrowingRelease(tmp_path))
    entries = answerer.release.ledger.public_entries(0, 1000)
    assert any("hits and T 2" in each for each in faults_in(entries))


def test_the_right_fold_has_no_fault_in_its_entries(tmp_path: Path) -> None:
    """The same life without a fault ends each generation at its T."""
    answerer = _play(GrowingRelease(tmp_path))
    assert faults_in(answerer.release.ledger.public_entries(0, 1000)) == []


def _counters(chosen: Callable[[Generations], int]) -> Callable[..., query_decision.State]:
    """Return the counters of a server that takes another generation's hits for all."""

    def counters_at(self: LivingRelease, state: LedgerState) -> query_decision.State:
        del self
        return query_decision.State(state.answered, chosen(generations_of(state.generations)))

    return counters_at


SERVERS = {
    "1: counters begin anew at a restart": lambda _: 0,
    "2: one counter for all, of the newest": lambda known: known.active[-1].unstable,
    "3: the newest alone decides": lambda known: min(each.unstable for each in known.active),
}


@pytest.mark.parametrize("chosen", SERVERS.values(), ids=SERVERS)
def test_a_fault_of_the_server_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: Callable[[Generations], int]
) -> None:
    """The fold refuses answers past the hit that retires a generation, and the server stops."""
    growing = GrowingRelease(tmp_path)
    answerer = growing.answerer([HIT])
    answerer.answer_batch([ask(1)])
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer, 2)
    monkeypatch.setattr(LivingRelease, "counters_at", _counters(chosen))
    answerer._noise = ScriptedNoise([HIT, HIT, STABLE])
    with pytest.raises(InvariantError, match="past the unstable answer"):
        answerer.answer_batch([ask(2), ask(3), ask(4)])
    assert answerer.release.ledger.read_state().answered == 1


def test_the_retired_do_not_vote_to_the_end_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8: a server that decides the rest by the same votes is refused the whole batch."""
    growing = GrowingRelease(tmp_path)
    answerer = growing.answerer([HIT])
    answerer.answer_batch([ask(1)])
    growing.append(answerer.release.ledger)
    growing.pass_periods(answerer, 2)
    monkeypatch.setattr(generations_answerer, "_retire", lambda _: None)
    answerer._noise = ScriptedNoise([HIT, STABLE, STABLE, STABLE])
    with pytest.raises((InvariantError, ContainedError)):
        answerer.answer_batch([ask(2), ask(3)])
    assert answerer.release.ledger.read_state().answered == 1


class JoinsAtOnce(Ticker):
    """A clock that lets a generation join at the next tick after its fit."""

    def _append(self, transaction: Transaction, known: Generations, period: int) -> dict[int, Kept]:
        early = replace(known, all=tuple(replace(each, joins_at=1) for each in known.all))
        kept = Ticker._append(self, transaction, early, period)
        active = generations_of(transaction.state.generations).active_set + 1
        transaction.append(GenerationsJoined(numbers=[2], active=active))
        return kept


def test_a_join_at_the_end_of_the_fit_is_refused(tmp_path: Path) -> None:
    """26: a server that lets a generation join as soon as it is fitted commits nothing."""
    growing = GrowingRelease(tmp_path)
    answerer = growing.answerer([])
    growing.append(answerer.release.ledger)
    answerer.follow()
    right = growing.ticker(answerer.release.ledger)
    ticker = JoinsAtOnce(right.configuration, right.ledger, right.noise, right.clock)
    ticker.fit_waiting()
    growing.now += 60
    with pytest.raises(InvariantError, match="where none is due"):
        answerer.tick(ticker)
    assert answerer.release.ledger.read_state() == answerer.release.state
