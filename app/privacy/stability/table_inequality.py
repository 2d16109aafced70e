"""The inequality between neighbouring thresholds of a stability table, in decimals.

A stability table (Theorem A) is a list of thresholds, integers ``P`` out of ``M = 2**64``; a query
at distance ``d`` is unstable if a random 64-bit integer is below ``P[d]``, so with probability
``P[d] / M``. The distance is the number of votes that may change without changing the leading
label. On neighbouring data sets the distances of one query differ by at most 1, which gives
adjacent thresholds ``P`` and ``Q``. The inequality limits how far they may differ. The theorem
requires, for both orders of the pair, with the Renyi order alpha and the price ``ln R`` of an
unstable answer::

    (P/M)^alpha (Q/M)^(1-alpha) / R + (1-P/M)^alpha (1-Q/M)^(1-alpha) <= 1

The price is the privacy cost of an unstable answer. By each unstable answer the moment (of order
alpha) of the likelihood ratio of the outputs on two neighbouring data sets grows at most by the
factor ``R``. A stable answer costs nothing here. The number of queries is unlimited, so an excess
``v`` over 1 would compound to ``(1+v)^queries``. Therefore everything here is computed in exact
integers and in decimals of :data:`DIGITS` digits, and a left side is accepted only if it is below 1
by at least :data:`MARGIN`, which is far larger than every rounding error (see
:func:`rounding_error`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

from app.errors import invariant

WORD_BITS: Final = 64
WORD_RANGE: Final = 1 << WORD_BITS
DIGITS: Final = 60
MARGIN: Final = Decimal("1e-30")
ALPHA_MAX: Final = Fraction(1 << 21)
SERIES_SHARE_MAX: Final = Decimal("0.01")
# Five roundings meet in one exponent, and exp and two products follow; ten is ample.
ROUNDINGS_MAX: Final = 10


def precise_context() -> Context:
    """Return a new decimal context of :data:`DIGITS` digits."""
    return Context(prec=DIGITS)


def to_decimal(value: Fraction) -> Decimal:
    """Return a rational rounded to the precision of the current decimal context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def rounding_error(magnitude: Decimal) -> Decimal:
    """Return a bound on a sum's rounding error, from the total magnitude of its terms."""
    return ROUNDINGS_MAX * (magnitude + 1) * Decimal(10) ** (1 - DIGITS)


def _ln_of_ratio(share: Decimal) -> Decimal:
    """Return the logarithm of ``a / b``, by its series in ``share``, which is ``(a-b)/(a+b)``.

    The share is at most :data:`SERIES_SHARE_MAX` in size, so that the terms left out are below
    the precision of the current decimal context.
    """
    square, total, odd = share * share, share, 3
    power = share * square
    while power and power.adjusted() >= share.adjusted() - DIGITS:
        total += power / odd
        power *= square
        odd += 2
    return 2 * total


@dataclass(frozen=True, slots=True)
class Entry:
    """A threshold of a stability table, with the logs of its probability and complement.

    Attributes:
        hit: the threshold ``P``, the number of 64-bit random words, out of ``2**64``, that make an
            answer unstable.
        answer: ``2**64 - P``, stored as an integer.
        ln_hit: the natural logarithm of ``hit``.
        ln_answer: the natural logarithm of ``answer``.

    """

    hit: int
    answer: int
    ln_hit: Decimal
    ln_answer: Decimal


@dataclass(frozen=True, slots=True)
class Excess:
    """The violation of the inequality by two neighbouring thresholds, and its slope.

    Attributes:
        value: the larger of the inequality's left sides for both orders, minus ``1 - MARGIN``.
        slope: the derivative of this left side with respect to the second threshold ``Q``.

    """

    value: Decimal
    slope: Decimal

    @property
    def accepted(self) -> bool:
        """Whether the inequality holds in both orders, with a margin for rounding."""
        return self.value <= 0


class Inequality:
    """The module's inequality at one Renyi order, with prices given as exact rationals.

    The left side has one term for an unstable answer, divided by ``R``, and one for a stable
    answer. If a stable answer has a price too, the second term is divided by the exponential of
    this price. The two-label noisy vote, which draws each label by a table, uses the inequality
    with the same price for both labels.
    """

    def __init__(
        self, *, alpha: Fraction, ln_ratio: Fraction, ln_answer_ratio: Fraction = Fraction(0)
    ) -> None:
        """Compute the constants of the inequality.

        Args:
            alpha: the Renyi order, above 1.
            ln_ratio: ``ln R``, the price of an unstable answer, above 0.
            ln_answer_ratio: the price of a stable answer, from 0 to ``ln R``.

        Raises:
            InvariantError: ``alpha`` and ``ln_ratio`` are outside the range for which the bound on
                rounding errors is proved.

        """
        invariant(1 < alpha <= ALPHA_MAX, "alpha lies above 1 and below its bound")
        invariant(ln_ratio > 0, "R is above 1")
        invariant(0 <= ln_answer_ratio <= ln_ratio, "an answer costs no more than a hit")
        with localcontext(precise_context()):
            self._alpha = to_decimal(alpha)
            self._ln_ratio = to_decimal(ln_ratio)
            self._ln_answer_ratio = to_decimal(ln_answer_ratio)
            self._ln_range = Decimal(WORD_RANGE).ln()
            inverse_square = 1 / (Decimal(WORD_RANGE) ** 2)
            self._hit_product = inverse_square * (-2 * self._ln_ratio).exp()
            self._answer_product = inverse_square * (-2 * self._ln_answer_ratio).exp()
            largest_exponent = 4 * self._alpha * self._ln_range + self._ln_ratio
            invariant(
                rounding_error(largest_exponent) < MARGIN / 1000, "the margin covers rounding"
            )

    @staticmethod
    def entry(hit: int) -> Entry:
        """Return a threshold strictly between 0 and ``2**64`` with its logarithms."""
        invariant(0 < hit < WORD_RANGE, "a threshold lies strictly inside the word's range")
        with localcontext(precise_context()):
            answer = WORD_RANGE - hit
            return Entry(hit, answer, Decimal(hit).ln(), Decimal(answer).ln())

    @classmethod
    def entry_near(cls, hit: int, known: Entry) -> Entry:
        """Return what :meth:`entry` returns, in less time if ``known`` is near.

        The logarithms are those of ``known`` and of two ratios. The rounding errors of a whole
        table's steps add up, far below :data:`MARGIN`. A check of a table uses :meth:`entry`.
        """
        answer = WORD_RANGE - hit
        with localcontext(precise_context()):
            sides = ((hit, known.hit), (answer, known.answer))
            shares = [Decimal(one - other) / (one + other) for one, other in sides]
            if max(map(abs, shares)) > SERIES_SHARE_MAX:
                return cls.entry(hit)
            ratios = map(_ln_of_ratio, shares)
            return Entry(hit, answer, known.ln_hit + next(ratios), known.ln_answer + next(ratios))

    def excess(self, previous: Entry, following: Entry) -> Excess:
        """Return the violation of the inequality by two thresholds, in the worse order.

        The thresholds are those of a stability table at two distances that differ by one vote.

        Args:
            previous: the threshold ``P``.
            following: the threshold ``Q``.

        Returns:
            The excess of the larger left side over its limit, and its derivative with respect to
            ``Q``.

        """
        with localcontext(precise_context()):
            forward, backward = self._left_sides(previous, following)
            larger = forward if forward.value >= backward.value else backward
            return Excess(larger.value - (1 - MARGIN), larger.slope)

    def _left_sides(self, previous: Entry, following: Entry) -> tuple[Excess, Excess]:
        """Both left sides; the second order costs no further exponential.

        The hit terms of the two orders multiply to ``P Q / (M R)^2`` and the answer
        terms to ``(M-P)(M-Q) / M^2``, over the square of their own ratio.
        """
        order, rest = self._alpha, 1 - self._alpha
        hit = order * previous.ln_hit + rest * following.ln_hit - self._ln_range - self._ln_ratio
        answer = order * previous.ln_answer + rest * following.ln_answer - self._ln_range
        answer -= self._ln_answer_ratio
        hit_forward, answer_forward = hit.exp(), answer.exp()
        hit_backward = self._hit_product * (previous.hit * following.hit) / hit_forward
        answer_backward = (
            self._answer_product * (previous.answer * following.answer) / answer_forward
        )
        forward_slope = rest * (hit_forward / following.hit - answer_forward / following.answer)
        backward_slope = order * (hit_backward / following.hit - answer_backward / following.answer)
        return (
            Excess(hit_forward + answer_forward, forward_slope),
            Excess(hit_backward + answer_backward, backward_slope),
        )
