"""The exact worst case of a small interactive mechanism, over all adaptive adversaries.

A mechanism is a set of public states. In each state the adversary chooses one of several moves, and
each move has several possible outcomes. An outcome consists of its probability p on one of two
neighbouring data sets, its probability q on the other data set, and the next public state s'. Let
``c = e^epsilon``, and let z be the likelihood ratio of the outcomes so far, in which each outcome
is a factor p / q. The exact delta at epsilon is ``U_n(start, 1)`` for n moves, with::

    U_0(s, z) = max(0, z - c)
    U_n(s, z) = max(U_0(s, z), max over moves of the sum over outcomes of q U_(n-1)(s', z p / q))

U is convex in z. An upper bound on delta is computed by linear interpolation of U between the
points of a grid of z, a lower bound from one strategy of the adversary, which is read from the grid
and whose outcomes are computed exactly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STOPPING_GAIN: Final = 1e-15

State = TypeVar("State", bound="Hashable")
Outcome = tuple[float, float, State]
"""A probability on either side, and the public state that follows."""


class Mechanism(Protocol[State]):
    """The interface of a mechanism with finitely many public states."""

    def start(self) -> State:
        """Return the public state of a mechanism before the adversary's first move."""
        ...

    def moves(self, state: State) -> Sequence[Sequence[Outcome[State]]]:
        """Return the possible outcomes of each of the adversary's moves, with probabilities."""
        ...


class WorstCase(Generic[State]):
    """The largest delta that any adversary reaches against a mechanism, at a given epsilon.

    Args:
        mechanism: a mechanism with finitely many public states.
        epsilon: the epsilon at which delta is computed.
        moves_max: the largest number of the adversary's moves; the computation stops earlier if a
            further move increases delta by no more than ``tolerance``.
        points: the number of grid points of the likelihood ratio, evenly spaced in its logarithm.
        span: the largest absolute value of the logarithm of the likelihood ratio on the grid.
        tolerance: the smallest increase of delta that counts.

    """

    def __init__(
        self,
        mechanism: Mechanism[State],
        epsilon: float,
        *,
        moves_max: int = 30,
        points: int = 400,
        span: float = 8.0,
        tolerance: float = 1e-9,
    ) -> None:
        """Compute the worst case for a growing number of moves, starting from none."""
        self._start, self._factor = mechanism.start(), math.exp(epsilon)
        self._ratios = np.concatenate([[0.0], np.exp(np.linspace(-span, span, points | 1))])
        self._one = 1 + (points | 1) // 2
        self._ratios[self._one] = 1.0
        self._moves = _reachable(mechanism)
        self._stop = np.maximum(0.0, self._ratios - self._factor)
        self._tables: list[dict[State, Floats]] = [dict.fromkeys(self._moves, self._stop)]
        for _ in range(moves_max):
            if self._iterate() < tolerance:
                break

    @property
    def upper(self) -> float:
        """An upper bound on the worst delta, from a grid of likelihood ratios."""
        return float(self._tables[-1][self._start][self._one])

    def lower(self, depth: int) -> float:
        """Return a lower bound on the worst delta, by the best strategy of ``depth`` moves."""
        return self._play(depth, self._start, 1.0, 1.0)

    def _iterate(self) -> float:
        """Give the adversary one more move; return the largest gain."""
        before, after, gain = self._tables[-1], {}, 0.0
        for state, moves in self._moves.items():
            best = self._stop
            for outcomes in moves:
                best = np.maximum(best, self._value(outcomes, before, self._ratios))
            after[state] = best
            gain = max(gain, float(np.max(best - before[state])))
        self._tables.append(after)
        return gain

    def _value(
        self, outcomes: Sequence[Outcome[State]], tables: dict[State, Floats], ratios: Floats
    ) -> Floats:
        """Return a move's value at likelihood ratios so far."""
        total = np.zeros_like(ratios)
        for p, q, following in outcomes:
            if q <= 0.0:
                total = total + p * ratios  # an event that one side alone has
            elif p > 0.0:
                total = total + q * self._at(tables[following], ratios * (p / q))
        return total

    def _at(self, values: Floats, ratios: Floats) -> Floats:
        """Interpolate by chords, and beyond the grid by the slope 1, which U never exceeds."""
        last = self._ratios[-1]
        beyond = values[-1] + (ratios - last)
        return np.where(ratios > last, beyond, np.interp(ratios, self._ratios, values))

    def _play(self, moves_left: int, state: State, chance: float, other: float) -> float:
        """Return ``P(O) - c Q(O)`` of the policy's event from a history of both probabilities."""
        stop = max(0.0, chance - self._factor * other)
        if other == 0.0 or moves_left == 0:
            return stop
        tables = self._tables[min(moves_left - 1, len(self._tables) - 1)]
        ratio = np.array([chance / other])
        values = [float(self._value(each, tables, ratio)[0]) for each in self._moves[state]]
        best = max(values, default=0.0)
        if best <= max(0.0, chance / other - self._factor) + STOPPING_GAIN:
            return stop
        chosen = self._moves[state][values.index(best)]
        return sum(
            self._play(moves_left - 1, following, chance * p, other * q)
            for p, q, following in chosen
            if p > 0.0
        )


def _reachable(mechanism: Mechanism[State]) -> dict[State, Sequence[Sequence[Outcome[State]]]]:
    """Return the moves of every public state that the start leads to."""
    found: dict[State, Sequence[Sequence[Outcome[State]]]] = {}
    pending = [mechanism.start()]
    while pending:
        state = pending.pop()
        if state in found:
            continue
        found[state] = mechanism.moves(state)
        pending += [following for outcomes in found[state] for _, _, following in outcomes]
    return found
