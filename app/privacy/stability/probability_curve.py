"""A floating-point model of the probabilities of unstable answers, by distance.

The distance of a query is the number of votes that may change without changing the leading label.

The price ``ln R`` of an answer is its cost in the privacy proof. By the answer the moment (of order
``alpha``, the Renyi order) of the likelihood ratio of the outputs on two neighbouring data sets
grows at most by the factor ``R``.

The model approximates the integer table by which queries are answered. An inequality limits how far
the probabilities at two neighbouring distances may differ (``table_inequality.py``). The search for
this table starts from the model, and planning uses the model; no claim relies on it. A probability
is stored as its log-odds (logit), so that the probability and its complement both have full
relative precision near 0 and 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

HELD_BELOW: Final = 1e-12
STEPS_MAX: Final = 200
ESTIMATE_POINTS: Final = 32
_EXPONENT_MAX: Final = 700.0
_LOGIT_TOLERANCE: Final = 1e-14


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The probabilities of an unstable and a stable answer at one distance.

    Attributes:
        hit: the probability of an unstable answer, in (0, 1).
        answer: the probability ``1 - hit`` of a stable answer, computed separately so that it is
            precise near ``hit = 1``.

    """

    hit: float
    answer: float


def point(logit: float) -> CurvePoint:
    """Return the probabilities of an unstable and a stable answer, given the log-odds."""
    return CurvePoint(_share(logit), _share(-logit))


def _share(logit: float) -> float:
    """Return the probability of given log-odds, which may be beyond the range of exp."""
    return 1.0 / (1.0 + math.exp(min(-logit, _EXPONENT_MAX)))


def logit_of(probability: float) -> float:
    """Return the log-odds of a small probability, to full relative precision."""
    return math.log(probability) - math.log1p(-probability)


@dataclass(frozen=True, slots=True)
class CurveInequality:
    """The inequality between neighbouring probabilities, in floating point, for estimates.

    It limits how far the probabilities of an unstable answer may differ between two neighbouring
    distances, which is how far they may differ between neighbouring data sets.

    Attributes:
        alpha: the Renyi order, above 1.
        ln_ratio: ``ln R``, the price of an unstable answer, above 0.
        ln_answer_ratio: the price of a stable answer.

    """

    alpha: float
    ln_ratio: float
    ln_answer_ratio: float = 0.0

    def _excess(self, previous: tuple[float, float], following: tuple[float, float]) -> float:
        """Return how far two neighbouring probabilities violate the inequality, in the worse order.

        Each is given by the logarithms of the probabilities of an unstable and of a stable answer.
        """
        return max(self._side(previous, following), self._side(following, previous))

    def _side(self, first: tuple[float, float], second: tuple[float, float]) -> float:
        order, rest = self.alpha, 1.0 - self.alpha
        hit = order * first[0] + rest * second[0] - self.ln_ratio
        answer = order * first[1] + rest * second[1] - self.ln_answer_ratio
        # e^hit <= 1 - e^answer in logarithms, which are nearly linear in a log-odds: few steps find
        # the root.
        return hit - math.log(-math.expm1(answer)) if answer < 0 else _EXPONENT_MAX

    def following_logit(self, previous: float, *, step: float) -> float:
        """Return the smallest log-odds below ``previous`` that the inequality accepts.

        The log-odds are those of an unstable answer, at a distance one vote larger than that of
        ``previous``.

        Args:
            previous: the log-odds at the previous distance.
            step: a guess of the difference to the next log-odds, above 0.

        Returns:
            The log-odds at which the inequality is an equation, to about 1e-14 relative.

        """
        before = _ln_sides(previous)

        def excess(logit: float) -> float:
            return self._excess(before, _ln_sides(logit))

        width = step
        while excess(previous - width) <= 0:
            width *= 2
        return _falling_root(excess, low=previous - width, high=previous)


def curve_points(
    *,
    alpha: float,
    ln_ratio: float,
    first_logit: float,
    count_max: int,
    ln_answer_ratio: float = 0.0,
) -> tuple[float, ...]:
    """Return log-odds of an unstable answer by vote distance, until it is negligibly rare.

    Args:
        alpha: the Renyi order, above 1.
        ln_ratio: ``ln R``, the price of an unstable answer, above 0.
        first_logit: the log-odds at distance 0.
        count_max: the number of entries after which the computation is given up.
        ln_answer_ratio: the price of a stable answer.

    """
    inequality = CurveInequality(alpha, ln_ratio, ln_answer_ratio)
    logits = [first_logit]
    step = 1.0
    while point(logits[-1]).hit >= HELD_BELOW and len(logits) < count_max:
        logits.append(inequality.following_logit(logits[-1], step=step))
        step = 1.1 * (logits[-2] - logits[-1])
    return tuple(logits)


def _ln_sides(logit: float) -> tuple[float, float]:
    """Return the logarithms of the probabilities of an unstable and a stable answer."""
    correction = math.log1p(math.exp(-abs(logit)))
    if logit > 0:
        return -correction, -logit - correction
    return logit - correction, -correction


def _falling_root(excess: Callable[[float], float], *, low: float, high: float) -> float:
    """Find where a function falls through zero, by false position with bisection.

    Args:
        excess: positive at ``low``, not positive at ``high``.
        low: lower end.
        high: upper end.

    """
    low_value, high_value = excess(low), excess(high)
    moved = 0  # the end that moved last: its value is halved where the other would stay again
    for _ in range(STEPS_MAX):
        middle = _between(low, low_value, high, high_value)
        value = excess(middle)
        if value > 0:
            low, low_value = middle, value
            high_value = high_value / 2 if moved < 0 else high_value
            moved = -1
        else:
            high, high_value = middle, value
            low_value = low_value / 2 if moved > 0 else low_value
            moved = 1
        if value == 0 or high - low <= _LOGIT_TOLERANCE * (1.0 + abs(high)):
            break
    return high


def _between(low: float, low_value: float, high: float, high_value: float) -> float:
    """Illinois point, or the middle where the lower end says only that it is too low."""
    if low_value >= _EXPONENT_MAX / 2 or high_value == low_value:
        return (low + high) / 2
    return high - high_value * (high - low) / (high_value - low_value)


def estimated_count(
    inequality: CurveInequality, *, first_logit: float, down_to: float = HELD_BELOW
) -> float:
    """Return an estimate of the number of distances until the probability falls to ``down_to``.

    The estimate is for the table of probabilities of an unstable answer, with an entry for each
    distance.
    """
    last_logit = math.log(down_to)
    width = (first_logit - last_logit) / ESTIMATE_POINTS
    middles = (first_logit - (index + 0.5) * width for index in range(ESTIMATE_POINTS))
    steps = (
        logit - inequality.following_logit(logit, step=1.0 / inequality.alpha) for logit in middles
    )
    return sum(width / step for step in steps)
