"""Whatever channel tells of a record is found, and no bound comes of what tells nothing."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING

import pytest

from app.auditing.transcripts.transcripts import (
    DEPTH_MAX,
    EVERYTHING,
    Trials,
    readings_of,
    suspect,
    told_by,
)
from app.errors import InvariantError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.auditing.event_bounds import Bound
    from app.auditing.transcripts.transcripts import Transcript

    Run = Callable[[int, Random], dict[str, str]]

pytestmark = pytest.mark.audit

CHOOSING = 40
LAW = Trials(epsilon=1.0, delta=0.01, runs=200, false_alarm=1e-6)


def told(run: Run, *, seed: int = 3, law: Trials = LAW, choosing: int = CHOOSING) -> Bound:
    """Choose by some runs of a double on both sides, and test others."""
    chance = Random(seed)

    def runs(side: int, count: int) -> list[Transcript]:
        return [run(side, chance) for _ in range(count)]

    suspicion = suspect((runs(0, choosing), runs(1, choosing)), law)
    one, other = ([suspicion.seen_in(each) for each in runs(side, law.runs)] for side in (0, 1))
    return told_by(suspicion, (one, other), law)


def noise(chance: Random) -> dict[str, str]:
    """Return what tells nothing: identifiers that never come twice, and coins."""
    return {"identifier": hex(chance.getrandbits(128)), "coin": str(chance.getrandbits(1))}


def test_what_tells_nothing_shows_nothing() -> None:
    """Hashes and coins, alike on both sides, give no bound, though no transcript is another's."""
    assert told(lambda _, chance: noise(chance)).epsilon == 0


@pytest.mark.parametrize("side", [0, 1])
def test_a_channel_that_tells_is_found(side: int) -> None:
    """A member that only one side has is found by its name, in either order of the sides."""
    bound = told(lambda one, chance: noise(chance) | ({"detail": "why"} if one == side else {}))
    assert bound.adversary == "detail"
    assert bound.epsilon == pytest.approx(LAW.largest_shown)


def test_a_channel_that_tells_in_a_quarter_of_runs_is_found() -> None:
    """Rates are enough: readings are ordered by how much likelier they are on one side."""

    def run(side: int, chance: Random) -> dict[str, str]:
        return noise(chance) | {"hits": str(0 if side and chance.random() < 0.25 else 1)}

    bound = told(run, law=Trials(epsilon=0.5, delta=0.01, runs=1500, false_alarm=1e-6))
    assert bound.adversary == "hits"
    assert bound.epsilon > 2


def test_channels_that_tell_only_together_are_found() -> None:
    """Two coins that agree on one side alone show in everything that was read, and nowhere else."""

    def run(side: int, chance: Random) -> dict[str, str]:
        coin = chance.getrandbits(1)
        return {"one": str(coin), "other": str(coin ^ side), "name": hex(chance.getrandbits(128))}

    bound = told(run)
    assert bound.adversary == EVERYTHING
    assert bound.epsilon > 1


# A record in both of two chunks, as tests/audit/test_power_over_http.py works it out: seen in
# some runs only, so that whatever a channel of many readings was fitted to would show more.
OF_A_RECORD = Trials(epsilon=1.0, delta=0.3, runs=900, false_alarm=1e-6)
RATES_OF_A_RECORD = 0.717, 0.043
CHOOSING_OF_A_RECORD = 300


def clock(ticks: Iterator[int]) -> Run:
    """Return runs of which a dozen at a time show the same second, and never again."""
    return lambda *_: {"a clock": str(next(ticks) // 12)}


def coins(_: int, chance: Random) -> dict[str, str]:
    """Return a channel on which hardly any reading comes twice, though each of its parts does."""
    drawn = [str(chance.getrandbits(1)) for _ in range(12)]
    return {f"coin {number}": coin for number, coin in enumerate(drawn)} | {"all": "".join(drawn)}


@pytest.mark.parametrize("more", [clock(count()), coins], ids=["a clock", "coins"])
def test_what_separates_the_runs_that_choose_hides_nothing(more: Run) -> None:
    """A label that tells in some runs is found beside channels that any runs can be fitted to."""

    def run(side: int, chance: Random) -> dict[str, str]:
        label = str(chance.random() < RATES_OF_A_RECORD[side])
        return noise(chance) | {"label": label} | more(side, chance)

    bound = told(run, law=OF_A_RECORD, choosing=CHOOSING_OF_A_RECORD)
    assert bound.adversary == "label"
    assert bound.epsilon > OF_A_RECORD.epsilon


def test_a_bound_is_seldom_above_the_truth() -> None:
    """At a false alarm of 1 in 10, few of 200 audits at the edge of a claim exceed it."""
    # Were each audit wrong 1 time in 10, more than 43 of 200 would be once in 10^6 tries.
    law = Trials(epsilon=0.5, delta=0.0, runs=100, false_alarm=0.1)
    rates = 0.3, 0.3 * 2.718281828**0.5

    def run(side: int, chance: Random) -> dict[str, str]:
        return {"label": str(chance.random() < rates[side])} | noise(chance)

    exceeded = sum(told(run, seed=seed, law=law).epsilon > law.epsilon for seed in range(200))
    assert exceeded <= 43


def test_as_many_runs_are_tested_as_were_planned() -> None:
    """Bounds at another number of runs than was planned are refused."""
    suspicion = suspect(([{"a": "1"}], [{"a": "2"}]), LAW)
    with pytest.raises(InvariantError, match="as many runs"):
        told_by(suspicion, ([(True, True)], [(True, True)]), LAW)


def test_nothing_of_a_reply_is_left_out() -> None:
    """Every leaf is a reading, as are the names of members and the lengths of lists and texts."""
    document = {"a": [1, None], "b": {"c": "text"}, "d": True}
    assert readings_of(document, "GET /x") == {
        "GET /x, members": "['a', 'b', 'd']",
        "GET /x.a, length": "2",
        "GET /x.a[0]": "1",
        "GET /x.a[1]": "None",
        "GET /x.b, members": "['c']",
        "GET /x.b.c": "'text'",
        "GET /x.b.c, length": "4",
        "GET /x.d": "True",
    }


def test_what_is_nested_too_deeply_is_read_whole() -> None:
    """Depth costs no reading."""
    document: object = "end"
    for _ in range(2 * DEPTH_MAX):
        document = [document]
    readings = readings_of(document, "x")
    assert any("'end'" in reading for reading in readings.values())
