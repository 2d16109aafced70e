"""A search, in floating point, for the Renyi order that allows the most unstable answers.

No claim relies on the search: ``accounts.py`` checks the order and the number of unstable answers
exactly. The order is that of the Renyi divergence by which the cost of answers is computed. The
distance of a query is the number of votes that may change without changing the leading label.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from app.privacy.stability.profile_parameters import ALPHA_GRID
from app.privacy.stability.table_inequality import ALPHA_MAX, WORD_RANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

ORDERS_TRIED: Final = 160
ORDER_LEAST: Final = 0.3
ORDER_MOST: Final = 4.0
"""Orders are sought between these, in parts of ln(1/delta_svt) / epsilon above 1."""


def best_order(
    thresholds: tuple[int, ...], *, own_order: Fraction, epsilon: Fraction, delta_svt: Fraction
) -> tuple[Fraction, int]:
    """Return the Renyi order that allows the most unstable answers, and a bound on their number.

    A generation (batch of rows) pays for unstable answers from its share of epsilon. The cost of
    each unstable answer is computed by Renyi divergence.

    Args:
        thresholds: the stability table: for each distance of a query, the number of 64-bit words,
            out of ``2**64``, that make an answer unstable.
        own_order: the Renyi order for which the table was made; it is one of the orders tried.
        epsilon: the generation's share of epsilon for answers.
        delta_svt: the part of delta that covers the unstable answers.

    """
    excesses = _excesses(own_order, epsilon=epsilon, delta_svt=delta_svt)
    budgets = _budgets(excesses, epsilon=float(epsilon), delta_svt=float(delta_svt))
    hits = budgets / _prices(thresholds, excesses)
    best = int(np.argmax(hits))
    order = own_order if best == len(excesses) - 1 else 1 + _on_grid(float(excesses[best]))
    return order, max(0, math.ceil(hits[best]))


def _excesses(
    own_order: Fraction, *, epsilon: Fraction, delta_svt: Fraction
) -> NDArray[np.float64]:
    """Return the excesses over 1 of the orders that are tried; the table's own is the last."""
    unit = -math.log(delta_svt) / float(epsilon)
    tried = np.geomspace(ORDER_LEAST * unit, ORDER_MOST * unit, ORDERS_TRIED)
    tried = np.clip(tried, 1 / ALPHA_GRID, float(ALPHA_MAX - 1))
    return np.append(tried, float(own_order - 1))


def _on_grid(excess: float) -> Fraction:
    return Fraction(round(excess * ALPHA_GRID), ALPHA_GRID)


def _budgets(
    excesses: NDArray[np.float64], *, epsilon: float, delta_svt: float
) -> NDArray[np.float64]:
    """Return B_g at each excess of the order over 1, in doubles."""
    return np.asarray(
        excesses * epsilon
        + math.log(delta_svt)
        + excesses * np.log1p(1 / excesses)
        + np.log1p(excesses)
    )


def _prices(thresholds: tuple[int, ...], excesses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return r(P, alpha) at each excess of the order over 1; infinite where there is none."""
    hits = np.array([float(threshold) for threshold in thresholds]) / WORD_RANGE
    rests = np.array([float(WORD_RANGE - threshold) for threshold in thresholds]) / WORD_RANGE
    ln_hits, ln_rests = np.log(hits), np.where(hits < 1 / 2, np.log1p(-hits), np.log(rests))
    least = np.full(len(excesses), 1e-300)
    one, other = np.arange(len(hits) - 1), np.arange(1, len(hits))
    for index, excess in enumerate(excesses):
        for p, q in ((one, other), (other, one)):
            answer = ln_rests[p] + excess * (ln_rests[p] - ln_rests[q])
            hit = ln_hits[p] + excess * (ln_hits[p] - ln_hits[q])
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = hit - np.log(-np.expm1(np.minimum(answer, 0.0)))
            worst = float(np.max(np.where(answer < 0, needed, np.inf), initial=0.0))
            least[index] = max(least[index], worst)
    return least
