"""Lower bounds on epsilon for the stability test ``profile``: repeated and adaptive queries.

The repeated adversary asks one query until the run ends: n queries with the same votes, which
differ on the two data sets by the votes that one record can change. The event is that fewer than T
of the answers are unstable, or that T are, where T is the cutoff. Both probabilities are those of
independent trials. The probability of an unstable answer is found by running the mechanism's own
step (the function that answers one query) on its random 64-bit words.

The adaptive adversary chooses each next query after the last answer. In a turn this adversary asks
one query until its answer is unstable, or a certain number of times, and remembers a rounded
likelihood ratio of all answers so far. The queries are chosen by dynamic programming over the
remaining turns, the remaining unstable answers and the ratio, so that ``P - e^epsilon Q`` is
largest, where P and Q are the probabilities of an event on the two data sets. The choice is made by
interpolation and proves nothing; the lower bound is computed from the exact distribution of
outcomes under this choice. The bound is valid despite the rounding, because an adversary who
remembers a rounded ratio is a possible adversary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import (
    Bound,
    at_least_hits,
    epsilon_between,
    epsilon_shown,
    fewer_hits,
    strongest,
)
from app.auditing.laws.step_law import hit_words, hits_allowed
from app.noise.source import WORD_BOUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited

    Floats = NDArray[np.float64]
    Choices = NDArray[np.int64]

QUERIES_MAX: Final = 1e12
QUERY_COUNTS: Final = 160


def hit_table(audited: Audited) -> Floats:
    """Return the probabilities of an unstable and a stable answer, for each lead in votes.

    A lead is the number of votes above half for the audited label.

    Returns:
        An array of shape (leads, 2): the probability of an unstable answer, and of a stable one.

    """
    words = [hit_words(audited, lead) for lead in range(audited.lead_max + 1)]
    return np.array([[float(hit), float(WORD_BOUND - hit)] for hit in words]) / WORD_BOUND


def repeated_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon from repeating one query until the answers end."""
    return constant_bound(audited, hit_table(audited))


def constant_bound(audited: Audited, table: Floats) -> Bound:
    """Return the largest lower bound on epsilon from one repeated query, given its probabilities.

    Args:
        audited: the mechanism under audit.
        table: the probabilities of an unstable and a stable answer for each lead in votes, shape
            (leads, 2), as :func:`hit_table` returns them.

    """
    hits = hits_allowed(audited)
    limit = min(QUERIES_MAX, float(audited.parameters.answer_limit))
    if limit < hits:
        return strongest([])
    counts = np.unique(np.round(np.geomspace(hits, limit, QUERY_COUNTS)))
    return strongest([_of_count(audited, table, trials=trials, hits=hits) for trials in counts])


def _of_count(audited: Audited, table: Floats, *, trials: float, hits: int) -> Bound:
    """Return the most that one number of queries shows, over all votes and both orders."""
    hit, stable = table.T
    moved, delta, found = audited.votes_moved, float(audited.delta), []
    for name, law in (("fewer than", fewer_hits), ("at least", at_least_hits)):
        chance = law(hit, stable, trials=trials, hits=hits)
        for nearer, further in (
            (chance[:-moved], chance[moved:]),
            (chance[moved:], chance[:-moved]),
        ):
            shown = epsilon_shown(nearer, further, delta)
            lead = int(np.argmax(shown))
            text = f"{trials:.0f} queries that lead by {2 * lead} votes or {moved} moved: "
            found.append(Bound(float(shown[lead]), f"{text}{name} {hits} hits"))
    return max(found)


HITS_MAX: Final = 3
"""With more hits the constant adversary is as strong, and turns take their time."""
TURNS_BEYOND_HITS: Final = 10
LEADS: Final = 40
EXPECTED_HITS: Final = (0.0, 1.0, 4.0, 10.0, 18.0)
"""Hits expected in a turn's queries if none ended it; 0 stands for a single query."""
LOG_RATIO_MAX: Final = 24.0
CELLS: Final = 2401
ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class _Turns:
    """What a turn may be: the logs of its chances of a hit and of none, on either side."""

    log_hit: Floats
    log_hit_other: Floats
    log_none: Floats
    log_none_other: Floats


def adaptive_bound_beyond(audited: Audited, constant: Bound) -> Bound:
    """Return the largest lower bound on epsilon found for an adaptive adversary.

    Args:
        audited: the mechanism under audit.
        constant: the lower bound of an adversary who repeats one query.

    Returns:
        The adaptive adversary's bound, or a bound of 0 if it is no larger than ``constant``.

    """
    return adaptive_bound(audited, hit_table(audited), start=constant.epsilon)


def adaptive_bound(audited: Audited, table: Floats, *, start: float) -> Bound:
    """Return the largest lower bound on epsilon found for an adaptive adversary.

    Args:
        audited: the mechanism under audit.
        table: the probabilities of an unstable and a stable answer for each lead in votes, shape
            (leads, 2).
        start: a known lower bound on epsilon; the adversary's choices are made for a slightly
            larger epsilon.

    """
    hits = hits_allowed(audited)
    if not 0 < hits <= HITS_MAX:
        return strongest([])
    count = hits + TURNS_BEYOND_HITS
    turns = _turns(audited, table, queries_max=audited.parameters.answer_limit // count)
    shown, delta = max(start, 1e-3), float(audited.delta)
    for _ in range(ROUNDS):
        chances = _outcomes(turns, hits=hits, turns_left=count, epsilon=shown)
        shown = max(shown, epsilon_between(*chances, delta))
    return Bound(shown if shown > start else 0.0, f"{count} turns, each chosen by the last")


def _turns(audited: Audited, table: Floats, *, queries_max: int) -> _Turns:
    """List turns over leads, lengths and which side leads by more."""
    moved = audited.votes_moved
    log_stable = _log_stable(*table.T)
    leads = np.unique(np.linspace(0, len(table) - 1 - moved, LEADS).astype(np.int64))
    ones, others, lengths = [], [], []
    for lead in leads.tolist():
        for expected in EXPECTED_HITS:
            length = min(max(1.0, math.ceil(-expected / log_stable[lead])), max(1, queries_max))
            ones += [lead, lead + moved]
            others += [lead + moved, lead]
            lengths += [length, length]
    chosen = (np.array(lengths) * log_stable[np.array(side)] for side in (ones, others))
    none, none_other = chosen
    return _Turns(_log_rest(none), _log_rest(none_other), none, none_other)


def _log_stable(hit: Floats, stable: Floats) -> Floats:
    """Return the log of the chance of no hit, by whichever of both has the digits."""
    with np.errstate(divide="ignore"):
        return np.where(hit < stable, np.log1p(-np.minimum(hit, stable)), np.log(stable))


def _log_rest(log_chance: Floats) -> Floats:
    """Return ``ln(1 - e^x)`` for x below zero."""
    return np.log(-np.expm1(np.minimum(log_chance, -1e-300)))


def _outcomes(
    turns: _Turns, *, hits: int, turns_left: int, epsilon: float
) -> tuple[Floats, Floats]:
    """Return the probabilities of all that the adversary may remember in the end, by side."""
    choices = _choices(turns, hits=hits, turns_left=turns_left)
    one, other = np.zeros((hits + 1, CELLS)), np.zeros((hits + 1, CELLS))
    at = _cell_of(np.array([epsilon]))
    one[hits, at], other[hits, at] = 1.0, 1.0
    for left in range(turns_left, 0, -1):
        one, other = _after_a_turn(turns, choices[left - 1], one, other, epsilon=epsilon)
    return one.ravel(), other.ravel()


def _after_a_turn(
    turns: _Turns, choices: Choices, one: Floats, other: Floats, *, epsilon: float
) -> tuple[Floats, Floats]:
    """Take the turn that each cell chooses, and put its outcomes into cells by their ratio."""
    next_one, next_other = np.zeros_like(one), np.zeros_like(other)
    next_one[0], next_other[0] = one[0], other[0]
    for hits_left in range(1, len(one)):
        cells = np.flatnonzero((one[hits_left] > 0) | (other[hits_left] > 0))
        turn = choices[hits_left, cells]
        mass, mass_other = one[hits_left, cells], other[hits_left, cells]
        for after, log_one, log_other in (
            (hits_left - 1, turns.log_hit[turn], turns.log_hit_other[turn]),
            (hits_left, turns.log_none[turn], turns.log_none_other[turn]),
        ):
            likely, unlikely = mass * np.exp(log_one), mass_other * np.exp(log_other)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = epsilon + np.log(unlikely) - np.log(likely)
            place = _cell_of(np.nan_to_num(ratio, nan=LOG_RATIO_MAX))
            np.add.at(next_one[after], place, likely)
            np.add.at(next_other[after], place, unlikely)
    return next_one, next_other


def _choices(turns: _Turns, *, hits: int, turns_left: int) -> list[Choices]:
    """Return the turn to take for each number of turns and hits left and each cell."""
    grid = np.linspace(-LOG_RATIO_MAX, LOG_RATIO_MAX, CELLS)
    final = np.maximum(0.0, -np.expm1(np.minimum(grid, 0.0)))
    values, found = np.tile(final, (hits + 1, 1)), []
    for _ in range(turns_left):
        following, choice = values.copy(), np.zeros((hits + 1, CELLS), dtype=np.int64)
        for left in range(1, hits + 1):
            gains = np.stack(
                [_gain(turns, turn, grid, values, left) for turn in range(len(turns.log_hit))]
            )
            choice[left] = gains.argmax(axis=0)
            following[left] = gains.max(axis=0)
        values = following
        found.append(choice)
    return found


def _gain(turns: _Turns, turn: int, grid: Floats, values: Floats, left: int) -> Floats:
    """Return what a turn is worth at each ratio."""
    hit, none = turns.log_hit[turn], turns.log_none[turn]
    after_hit = np.interp(grid + turns.log_hit_other[turn] - hit, grid, values[left - 1])
    after_none = np.interp(grid + turns.log_none_other[turn] - none, grid, values[left])
    return np.asarray(math.exp(hit) * after_hit + math.exp(none) * after_none)


def _cell_of(log_ratio: Floats) -> Choices:
    scaled = (np.clip(log_ratio, -LOG_RATIO_MAX, LOG_RATIO_MAX) / LOG_RATIO_MAX + 1) / 2
    return np.rint(scaled * (CELLS - 1)).astype(np.int64)
