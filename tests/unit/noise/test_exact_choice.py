"""A draw by integer weights follows the weights exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.exact_choice import SCALE_BITS, draw_index, draw_repeated, truncation_variation
from app.noise.scripted import ScriptedNoise
from app.noise.system import SystemNoise


def _words_of(value: int, bound: int) -> list[int]:
    """Script the words that make ``below(bound)`` return ``value``."""
    bit_count = (bound - 1).bit_length()
    word_count = -(-bit_count // 64)
    shifted = value << (64 * word_count - bit_count)
    return [(shifted >> (64 * place)) % (1 << 64) for place in reversed(range(word_count))]


@pytest.mark.parametrize(
    ("value", "index"),
    [(0, 0), (1, 0), ((1 << 192) - 1, 0), (1 << 192, 2), ((1 << 192) + (1 << 191) - 1, 2)],
)
def test_each_integer_belongs_to_one_alternative(value: int, index: int) -> None:
    """Weights 1, 0 and 1/2 own the first 2**192 integers, none, and the next 2**191."""
    total = (1 << SCALE_BITS) + (1 << (SCALE_BITS - 1))
    log_weights = np.array([0.0, -np.inf, np.log(0.5)])
    assert draw_index(log_weights, ScriptedNoise(_words_of(value, total))) == index


def test_only_differences_of_logs_matter() -> None:
    """A common offset of ten thousand neither overflows nor underflows."""
    noise = ScriptedNoise(_words_of(1 << SCALE_BITS, 2 << SCALE_BITS))
    assert draw_index(np.array([-1e4, -1e4]), noise) == 1


@pytest.mark.parametrize("log_weights", [[], [-np.inf], [np.nan, 0.0], [np.inf, 0.0]])
def test_a_draw_without_a_finite_largest_weight_is_refused(log_weights: list[float]) -> None:
    """Nothing to draw from is a broken invariant, never index zero."""
    with pytest.raises(InvariantError, match="finite"):
        draw_index(np.array(log_weights, dtype=np.float64), SystemNoise())


def test_truncation_is_one_step_a_weight() -> None:
    """Ten alternatives lose at most ten steps of a total of at least 2**192."""
    assert truncation_variation(10) == Fraction(10, 2**192)


def test_frequencies_follow_the_weights() -> None:
    """Weights 1 to 5: 4 degrees of freedom, above 45 has p < 4e-9."""
    trial_count = 6000
    weights = np.arange(1.0, 6.0)
    noise = SystemNoise()
    drawn = [draw_index(np.log(weights), noise) for _ in range(trial_count)]
    expected = trial_count * weights / weights.sum()
    seen = np.bincount(drawn, minlength=5)
    assert float(((seen - expected) ** 2 / expected).sum()) < 45


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, (0, 0)),
        ((1 << 192) - 1, (0, 0)),
        (1 << 192, (0, 1)),
        (3 << 192, (2, 0)),
        ((3 << 192) + (1 << 191), (2, 1)),
        ((4 << 192) - 1, (2, 1)),
    ],
)
def test_alternatives_of_one_weight_share_its_integers(
    value: int, expected: tuple[int, int]
) -> None:
    """Three of weight 1, five of weight 0 and two of weight 1/2 own 4 times 2**192 integers."""
    log_weights = np.array([0.0, -np.inf, np.log(0.5)])
    noise = ScriptedNoise(_words_of(value, 4 << SCALE_BITS))
    assert draw_repeated(log_weights, [3, 5, 2], noise) == expected


def test_repeated_weights_need_one_that_is_finite() -> None:
    """As a draw among single alternatives does."""
    with pytest.raises(InvariantError):
        draw_repeated(np.array([-np.inf]), [4], ScriptedNoise([]))
