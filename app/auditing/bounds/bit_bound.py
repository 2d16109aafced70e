"""Lower bounds on epsilon for the noisy two-label vote: repeated and adaptive queries.

The repeated adversary asks one query until the answers end. The adaptive adversary chooses each
next query by the number of answers left and the likelihood ratio of the answers so far. A query is
a pair of neighbouring votes, and the adversary chooses the pair that distinguishes the two data
sets best.

The *audited label* is one fixed label; one other label gets all other votes.

The choices are found by dynamic programming with interpolation, which proves nothing. The lower
bound is then computed from the exact distribution of outcomes under these choices, in which
likelihood ratios are rounded. The bound is valid despite the rounding, because an adversary who
remembers a rounded ratio is a possible adversary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.event_bounds import Bound, counting_bounds, epsilon_between, strongest
from app.auditing.laws.step_law import answers_moved, label_words, vote_of_bit
from app.noise.source import WORD_BOUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited

    Floats = NDArray[np.float64]

LEADS: Final = 24
CELLS: Final = 2401
LOG_RATIO_MAX: Final = 24.0
ANSWERS_MAX: Final = 256
"""With more answers the constant adversary is as strong, and a plan takes its time."""
BEYOND: Final = 1.02


def label_table(audited: Audited) -> Floats:
    """Return the probability of each of two labels for each lead in votes, shape (leads, 2).

    A lead is the number of votes above half for the audited label.
    """
    words = [label_words(audited, lead) for lead in range(audited.lead_max + 1)]
    return np.array([[float(word), float(WORD_BOUND - word)] for word in words]) / WORD_BOUND


def bit_bound(audited: Audited) -> Bound:
    """Return the largest lower bound on epsilon from asking one query until the answers end."""
    table, moved = label_table(audited), audited.votes_moved
    answers, delta = answers_moved(audited, vote_of_bit), float(audited.delta)
    one, other = table[:-moved, 0], table[moved:, 0]
    shown = counting_bounds(one, other, trials=answers, delta=delta)
    lead = int(np.argmax(shown))
    text = f"{answers} queries that lead by {2 * lead} votes or {moved} moved"
    return strongest([Bound(float(shown[lead]), f"{text}: how often a label comes")])


def adaptive_bit_bound(audited: Audited, constant: Bound) -> Bound:
    """Return the largest lower bound on epsilon from adversaries that adapt their queries.

    Args:
        audited: the mechanism under audit.
        constant: the lower bound that :func:`bit_bound` returns; the adversary's choices are made
            for a slightly larger epsilon.

    """
    answers = answers_moved(audited, vote_of_bit)
    if not 0 < answers <= ANSWERS_MAX:
        return strongest([])
    epsilon = max(constant.epsilon, 1e-3) * BEYOND
    pairs = pairs_of(label_table(audited), moved=audited.votes_moved)
    one, other = planned_outcomes(pairs, answers=answers, epsilon=epsilon)
    shown = epsilon_between(one, other, float(audited.delta))
    return Bound(max(0.0, shown), f"{answers} queries, each chosen by the answers before")


def pairs_of(table: Floats, *, moved: int) -> Floats:
    """Return label probabilities on pairs of neighbouring data sets, shape (pairs, 2, 2).

    Args:
        table: the probability of each label for each lead in votes, shape (leads, 2).
        moved: the largest number of votes that one record can change.

    Returns:
        For each pair, the probability of each label (second axis) on each data set (third axis).

    """
    leads = np.unique(np.linspace(0, len(table) - 1 - moved, LEADS).astype(np.int64))
    forward = np.stack([table[leads], table[leads + moved]], axis=2)
    both = np.concatenate([forward, forward[:, :, ::-1]])
    # The label of the other side of the tie is asked for as well.
    return np.asarray(np.concatenate([both, both[:, ::-1]]))


def planned_outcomes(pairs: Floats, *, answers: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return the distribution of an adaptive adversary's log likelihood ratio on both data sets.

    Args:
        pairs: the probability of each label on each data set, for each pair of neighbouring votes,
            shape (pairs, 2, 2).
        answers: the number m of answers.
        epsilon: the epsilon for which the adversary's choices are best.

    """
    grid = np.linspace(-LOG_RATIO_MAX, LOG_RATIO_MAX, CELLS)
    logs = np.log(pairs)
    shifts = logs[:, :, 1] - logs[:, :, 0]
    value, plans = np.maximum(0.0, -np.expm1(np.minimum(grid, 0.0))), []
    for _ in range(answers):
        gains = np.stack(
            [
                sum(
                    pairs[index, label, 0] * np.interp(grid + shifts[index, label], grid, value)
                    for label in (0, 1)
                )
                for index in range(len(pairs))
            ]
        )
        plans.append(gains.argmax(axis=0))
        value = gains.max(axis=0)
    one, other = np.zeros(CELLS), np.zeros(CELLS)
    start = _cell_of(np.array([epsilon]))
    one[start], other[start] = 1.0, 1.0
    for plan in reversed(plans):
        one, other = _after_an_answer(pairs, plan, one, other, epsilon=epsilon)
    return one, other


def _after_an_answer(
    pairs: Floats, plan: NDArray[np.int64], one: Floats, other: Floats, *, epsilon: float
) -> tuple[Floats, Floats]:
    """Ask the pair that each cell plans, and put its outcomes into cells by their ratio."""
    after = np.zeros((2, CELLS))
    cells = np.flatnonzero((one > 0) | (other > 0))
    for label in (0, 1):
        chance = pairs[plan[cells], label]
        likely, unlikely = one[cells] * chance[:, 0], other[cells] * chance[:, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = epsilon + np.log(unlikely) - np.log(likely)
        place = _cell_of(np.nan_to_num(ratio, nan=LOG_RATIO_MAX))
        np.add.at(after[0], place, likely)
        np.add.at(after[1], place, unlikely)
    return after[0], after[1]


def _cell_of(log_ratio: Floats) -> NDArray[np.int64]:
    scaled = (np.clip(log_ratio, -LOG_RATIO_MAX, LOG_RATIO_MAX) / LOG_RATIO_MAX + 1) / 2
    return np.rint(scaled * (CELLS - 1)).astype(np.int64)
