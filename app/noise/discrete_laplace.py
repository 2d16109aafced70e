"""Exact samples from the discrete Laplace distribution of any rational scale.

``P(Y = y)`` is proportional to ``exp(-|y| / scale)`` for every integer ``y``. This is the
distribution of Algorithm 2 of Canonne, Kamath and Steinke (2020), but the sampling method is
another one.

``Y`` is the difference of two independent geometric variables, and the digits of a geometric
variable in a fixed base are independent. The sampler draws each digit by inversion: it compares a
uniform real number in ``[0, 1)`` with a table of the digit's cumulative probabilities. At first
only the leading 64 bits of the uniform number and of the table's entries are computed. Where these
64 bits are equal, 64 more bits of both numbers are computed, until they differ. Therefore the
distribution is exact. No floating-point number is used.

The base is 1024. At scales up to 512 each geometric variable has one digit, so a draw of ``Y``
takes two random 64-bit words and two table look-ups. At larger scales the variables have more
digits, and a draw takes two words and two look-ups for each place. The time of a draw hardly
depends on the drawn value.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Final

from app.errors import invariant
from app.noise.source import WORD_BITS

if TYPE_CHECKING:
    from fractions import Fraction

    from app.noise.source import NoiseSource

DIGIT_CELLS: Final = 1 << 10
# Beyond so many scales a leading digit's table ends; the law there is drawn anew.
LEADING_SCALES: Final = 32
# A tie of all known bits has probability below 2**-53 a digit, and 2**-64 for each
# further word: a run this long can only mean a source that is broken.
WORDS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """A discrete Laplace distribution of a given scale, from which samples are drawn.

    Attributes:
        scale: above 0; the probabilities of ``y`` and ``y + 1`` differ by the factor
            ``e^(1/scale)``.

    """

    scale: Fraction
    _digits: tuple[_Digit, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the table of cumulative probabilities of each digit."""
        invariant(self.scale > 0, "a scale is above zero")
        object.__setattr__(self, "_digits", _digits(self.scale))

    def draw(self, noise: NoiseSource) -> int:
        """Return an integer y drawn with probability proportional to ``exp(-|y| / scale)``."""
        digits = self._digits
        words = iter(noise.words(2 * len(digits)))
        difference = 0
        for digit in digits:
            difference += digit.draw(next(words), noise) - digit.draw(next(words), noise)
        return difference


@dataclass(frozen=True, slots=True)
class _Digit:
    """One digit of a geometric variable, its place value included.

    Attributes:
        place_value: ``DIGIT_CELLS`` to the power of the digit's place.
        cell_count: values of the digit; a leading digit may lie beyond them too.
        leading: whether this is the last digit, which has no upper end.
        rate: ``place_value / scale``; the digit's probabilities fall by ``e^-rate``.
        table: the 64 leading bits of each boundary between cells.

    """

    place_value: int
    cell_count: int
    leading: bool
    rate: Fraction
    table: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compute the table."""
        object.__setattr__(self, "table", self._boundaries(WORD_BITS))

    def draw(self, word: int, noise: NoiseSource) -> int:
        """Return a random digit of the noise times its place value, by 64 random bits."""
        table = self.table
        cell = bisect_right(table, word)
        if cell and (table[cell - 1] == word or cell == self.cell_count):
            return self._draw_at_an_edge(word, noise) * self.place_value
        return cell * self.place_value

    def _draw_at_an_edge(self, word: int, noise: NoiseSource) -> int:
        """Finish a draw whose first word is on a boundary or beyond the table."""
        passed, cell = 0, self._cell(word, noise)
        while cell == self.cell_count:  # the law has no memory: it starts anew there
            passed += cell
            cell = self._cell(noise.word(), noise)
        return passed + cell

    def _cell(self, known: int, noise: NoiseSource) -> int:
        """Return the cell of a uniform real number whose first bits are ``known``."""
        table = self.table
        for word_count in range(2, WORDS_MAX):
            cell = bisect_right(table, known)
            if not cell or table[cell - 1] != known:
                return cell
            known = (known << WORD_BITS) | noise.word()
            table = self._boundaries(word_count * WORD_BITS)
        invariant(holds=False, claim="uniform bits leave a boundary at last")
        return 0  # pragma: no cover -- the line above always raises

    def _boundaries(self, bit_count: int) -> tuple[int, ...]:
        """Return ``floor(2**bit_count P(digit < i))`` for every ``i`` from 1.

        Each is irrational, so that bounds which are close enough have one floor.
        """
        guard_bits = WORD_BITS
        while True:
            low, high = self._bounds(bit_count, guard_bits)
            if low == high:
                return low
            guard_bits *= 2

    def _bounds(self, bit_count: int, guard_bits: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bound the boundaries from below and above, with bits beyond those kept.

        ``P(digit < i)`` is ``1 - e^(-i rate)`` for the leading digit; the others end
        at ``cell_count``, and theirs is that divided by its value there.
        """
        one = 1 << (bit_count + guard_bits)
        powers = _power_bounds(self.rate, self.cell_count, bit_count + guard_bits)
        low = [one - above for _, above in powers]
        high = [one - below for below, _ in powers]
        if self.leading:
            return tuple(end >> guard_bits for end in low), tuple(end >> guard_bits for end in high)
        low_end, high_end = max(low.pop(), 1), high.pop()
        return (
            tuple((end << bit_count) // high_end for end in low),
            tuple((end << bit_count) // low_end for end in high),
        )


def _digits(scale: Fraction) -> tuple[_Digit, ...]:
    """Return the digits of a geometric variable of this scale, the lowest first."""
    digits, place_value = [], 1
    while place_value * DIGIT_CELLS < 2 * scale:
        digits.append(_Digit(place_value, DIGIT_CELLS, leading=False, rate=place_value / scale))
        place_value *= DIGIT_CELLS
    cell_count = min(DIGIT_CELLS, ceil(LEADING_SCALES * scale / place_value))
    return (*digits, _Digit(place_value, cell_count, leading=True, rate=place_value / scale))


def _power_bounds(rate: Fraction, count: int, scale_bits: int) -> list[tuple[int, int]]:
    """Bound ``2**scale_bits e^(-i rate)`` for ``i`` from 1 to ``count``."""
    low, high = exponential_bounds(rate, scale_bits)
    powers = [(low, high)]
    while len(powers) < count:
        below, above = powers[-1]
        powers.append((below * low >> scale_bits, -(-above * high >> scale_bits)))
    return powers


def exponential_bounds(exponent: Fraction, scale_bits: int) -> tuple[int, int]:
    """Return a lower and an upper integer bound on ``2**scale_bits * e**-exponent``.

    Args:
        exponent: above 0.
        scale_bits: the number of binary digits after the point that the result keeps.

    Returns:
        ``(low, high)``; the difference ``high - low`` is a few tens.

    """
    halvings = (exponent.numerator // exponent.denominator).bit_length()
    low, high = _series_bounds(exponent / (1 << halvings), scale_bits)
    for _ in range(halvings):
        low, high = low * low >> scale_bits, -(-high * high >> scale_bits)
    return low, high


def _series_bounds(exponent: Fraction, scale_bits: int) -> tuple[int, int]:
    """Bound ``2**scale_bits e^-exponent`` for an exponent in (0, 1], by ``1 / e^exponent``.

    Each term of the series of ``e^exponent`` is computed from a rounded one and
    rounded down, so it is low by less than two units; from the first that becomes
    zero on, the true terms are below two units and at least halve: four together.
    """
    term, total, count = 1 << scale_bits, 0, 0
    while term:
        total += term
        count += 1
        term = term * exponent.numerator // (exponent.denominator * count)
    square = 1 << (2 * scale_bits)
    return square // (total + 2 * count + 4), -(-square // total)
