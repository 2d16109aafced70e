"""The discrete Laplace law is drawn exactly: every boundary, every tie, every digit."""

from __future__ import annotations

from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import exp, floor

import pytest
from scipy.stats import chi2

from app.errors import InvariantError
from app.noise.discrete_laplace import (
    DIGIT_CELLS,
    WORDS_MAX,
    DiscreteLaplace,
    exponential_bounds,
)
from app.noise.scripted import ScriptedNoise
from app.noise.source import WORD_BOUND
from app.noise.system import SystemNoise

SCALES = [Fraction(1, 50), Fraction(1, 3), Fraction(5), Fraction(2345, 7), Fraction(3000)]
FALSE_ALARM = 1e-9


def ratio(rate: Fraction) -> Decimal:
    """Return ``e^-rate`` in the current decimal context."""
    return (-Decimal(rate.numerator) / rate.denominator).exp()


def boundaries(scale: Fraction, *, place: int, bit_count: int) -> list[int]:
    """Return the leading bits of ``P(digit < i)`` from the definition, at 200 digits."""
    with localcontext(Context(prec=200)):
        digits = DiscreteLaplace(scale)._digits
        digit = digits[place]
        power = ratio(Fraction(DIGIT_CELLS) ** place / scale)
        end = 1 if digit.leading else 1 - power**digit.cell_count
        count = digit.cell_count - (not digit.leading)
        return [floor((1 - power**i) / end * 2**bit_count) for i in range(1, count + 1)]


@pytest.mark.parametrize("exponent", ["1/1000000000", "1/3", "1", "7/2", "100"])
def test_bounds_of_the_exponential_hold_it(exponent: str) -> None:
    """The bounds enclose the value, fewer than a hundred units apart."""
    low, high = exponential_bounds(Fraction(exponent), 128)
    with localcontext(Context(prec=80)):
        assert low <= ratio(Fraction(exponent)) * 2**128 <= high
    assert high - low < 100


@pytest.mark.parametrize("scale", SCALES)
def test_tables_are_the_leading_bits_of_the_law(scale: Fraction) -> None:
    """Each entry of each digit's table is that of the definition, bit for bit."""
    for place, digit in enumerate(DiscreteLaplace(scale)._digits):
        assert list(digit.table) == boundaries(scale, place=place, bit_count=64)


def test_bounds_that_disagree_are_taken_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the bits kept beyond a boundary do not settle its floor, twice as many are kept."""
    digit = DiscreteLaplace(Fraction(5))._digits[0]
    bounds, asked = type(digit)._bounds, []

    def loose_at_first(
        given: object, bit_count: int, guard_bits: int
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        assert given is digit
        asked.append(guard_bits)
        low, high = bounds(digit, bit_count, guard_bits)
        return low, tuple(end + 1 for end in high) if len(asked) == 1 else high

    monkeypatch.setattr(type(digit), "_bounds", loose_at_first)
    assert digit._boundaries(64) == digit.table
    assert asked == [64, 128]


@pytest.mark.parametrize("scale", [Fraction(5), Fraction(3000)])
def test_a_word_beside_a_boundary_picks_its_side(scale: Fraction) -> None:
    """One below a boundary is the cell before it and one above the cell after it."""
    for digit in DiscreteLaplace(scale)._digits:
        for cell, boundary in list(enumerate(digit.table))[:-1:7]:
            assert digit.draw(boundary - 1, ScriptedNoise([])) == cell * digit.place_value
            assert digit.draw(boundary + 1, ScriptedNoise([])) == (cell + 1) * digit.place_value


@pytest.mark.parametrize("place", [0, 1])
def test_a_word_on_a_boundary_is_decided_by_further_bits(place: int) -> None:
    """The second word decides exactly as the boundary's next 64 bits do."""
    scale = Fraction(3000)
    digit = DiscreteLaplace(scale)._digits[place]
    for cell, longer in list(enumerate(boundaries(scale, place=place, bit_count=128)))[:-1:101]:
        first, second = divmod(longer, WORD_BOUND)
        below, above = ScriptedNoise([second - 1]), ScriptedNoise([second + 1])
        assert digit.draw(first, below) == cell * digit.place_value
        assert digit.draw(first, above) == (cell + 1) * digit.place_value


def test_a_tie_of_two_words_takes_a_third() -> None:
    """Bits are added until the boundary and the draw differ."""
    digit = DiscreteLaplace(Fraction(5))._digits[0]
    longer = boundaries(Fraction(5), place=0, bit_count=192)[3]
    words = [longer >> 128, (longer >> 64) % WORD_BOUND, longer % WORD_BOUND]
    assert digit.draw(words[0], ScriptedNoise([words[1], words[2] - 1])) == 3
    assert digit.draw(words[0], ScriptedNoise([words[1], words[2] + 1])) == 4


def test_cells_thinner_than_a_word_are_reached() -> None:
    """At scale 1/50 all cells but the first share a word, and a second one tells them apart."""
    digit = DiscreteLaplace(Fraction(1, 50))._digits[0]
    assert set(digit.table) == {WORD_BOUND - 1}
    assert digit.draw(WORD_BOUND - 1, ScriptedNoise([0])) == 0


def test_a_source_that_follows_a_boundary_is_reported() -> None:
    """Words that equal a boundary for a thousand bits come from no generator."""
    digit = DiscreteLaplace(Fraction(5))._digits[0]
    longest = digit._boundaries(64 * WORDS_MAX)[0]
    words = [(longest >> (64 * place)) % WORD_BOUND for place in reversed(range(WORDS_MAX))]
    with pytest.raises(InvariantError, match="leave a boundary"):
        digit.draw(words[0], ScriptedNoise(words[1:]))


def test_beyond_its_table_the_law_starts_anew() -> None:
    """A leading digit beyond its last cell adds what a fresh word gives."""
    digit = DiscreteLaplace(Fraction(2))._digits[0]
    assert digit.cell_count == 64
    assert digit.draw(WORD_BOUND - 1, ScriptedNoise([digit.table[2] + 1])) == 64 + 3


def test_a_draw_is_a_difference_of_digits() -> None:
    """Of each digit's two words the first counts up and the second down."""
    low, high = (digit.table for digit in DiscreteLaplace(Fraction(3000))._digits)
    words = [low[4] + 1, low[1] + 1, high[1] + 1, high[0] + 1]
    assert DiscreteLaplace(Fraction(3000)).draw(ScriptedNoise(words)) == (5 - 2) + 1024 * (2 - 1)


def test_laws_are_equal_where_their_scales_are() -> None:
    """A law is a value: its scale, whatever tables it holds."""
    assert DiscreteLaplace(Fraction(6, 2)) == DiscreteLaplace(Fraction(3))
    assert DiscreteLaplace(Fraction(3)) != DiscreteLaplace(Fraction(4))


@pytest.mark.parametrize("scale", [0, -1])
def test_a_scale_is_above_zero(scale: int) -> None:
    """A law without spread is refused."""
    with pytest.raises(InvariantError, match="scale"):
        DiscreteLaplace(Fraction(scale))


def statistic(scale: Fraction, edges: list[int], draws: list[int]) -> tuple[float, int]:
    """Return Pearson's statistic over cells ``(-inf, e0], (e0, e1], ...`` and its freedom."""
    base = exp(-1 / scale)
    seen = Counter(sum(draw > edge for edge in edges) for draw in draws)
    at_most = [
        base**-edge / (1 + base) if edge < 0 else 1 - base ** (edge + 1) / (1 + base)
        for edge in edges
    ]
    expected = [
        len(draws) * (high - low)
        for low, high in zip([0.0, *at_most], [*at_most, 1.0], strict=True)
    ]
    assert min(expected) > 50
    return sum((seen[i] - e) ** 2 / e for i, e in enumerate(expected)), len(expected) - 1


@pytest.mark.parametrize(
    ("scale", "edges"),
    [
        (Fraction(1, 3), [-2, -1, 0, 1]),
        (Fraction(5), [*range(-12, 13)]),
        (Fraction(600), [-1500, -600, -300, -1, 300, 600, 1500]),
        (Fraction(4000), [-9000, -4000, -2000, -1, 2000, 4000, 9000]),
    ],
)
def test_draws_follow_the_law(scale: Fraction, edges: list[int]) -> None:
    """Pearson's statistic of fresh draws is as small as the law's."""
    # A scale that is off by the factor 1 + s has about n s^2 as non-centrality: for
    # n = 40,000 and up to 25 degrees of freedom a twelfth (s^2 n = 270, the limit is
    # 98) is missed with probability below 1e-6.  The limit is passed by chance with
    # probability 1e-9: the draws are the operating system's.
    law, noise = DiscreteLaplace(scale), SystemNoise()
    found, freedom = statistic(scale, edges, [law.draw(noise) for _ in range(40_000)])
    assert found < chi2.isf(FALSE_ALARM, freedom)
