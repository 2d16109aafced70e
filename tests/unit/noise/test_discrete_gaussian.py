"""The discrete Gaussian law is drawn exactly: its coins, and what they thin out."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, fsum
from typing import TYPE_CHECKING

import pytest
from scipy.stats import chi2

from app.errors import InvariantError
from app.noise import discrete_gaussian
from app.noise.discrete_gaussian import ATTEMPTS_MAX, DiscreteGaussian, bernoulli_exponential
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise
from app.noise.system import SystemNoise
from tests.builders.mechanisms.outcomes import exact_law

if TYPE_CHECKING:
    from app.noise.source import NoiseSource

FALSE_ALARM = 1e-9
VARIANCES = [Fraction(1, 9), Fraction(3, 2), Fraction(20)]


@pytest.mark.parametrize(
    ("numerator", "denominator"), [(0, 1), (1, 3), (1, 2), (2, 3), (1, 1), (3, 2), (2, 1)]
)
def test_coins_fall_with_the_exponential_probability(numerator: int, denominator: int) -> None:
    """Over all uniform integers, a coin's exact probability is the exponential."""
    law, undecided = exact_law(
        lambda noise: bernoulli_exponential(numerator, denominator, noise), depth=11
    )
    assert sum(law.values()) + undecided == 1
    assert law[True] <= exp(-numerator / denominator) <= law[True] + undecided
    assert undecided < Fraction(1, 1000)


@pytest.mark.parametrize(("numerator", "denominator"), [(-1, 2), (1, 0), (1, -1)])
def test_a_coin_needs_a_rational_that_is_not_negative(numerator: int, denominator: int) -> None:
    """An exponent that is no probability's is refused."""
    with pytest.raises(InvariantError, match="rational"):
        bernoulli_exponential(numerator, denominator, ScriptedNoise([]))


@pytest.mark.parametrize("variance", VARIANCES)
def test_a_proposal_is_kept_as_the_algorithm_says(
    variance: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coin's exponent is ``(|y| - variance/t)^2 / (2 variance)``, as a rational."""
    tossed: list[Fraction] = []

    def toss(numerator: int, denominator: int, noise: NoiseSource) -> bool:
        del noise
        tossed.append(Fraction(numerator, denominator))
        return True

    monkeypatch.setattr(discrete_gaussian, "bernoulli_exponential", toss)
    law = DiscreteGaussian(variance)
    scale = law._proposal.scale
    for magnitude in range(9):
        assert law._kept(magnitude, ScriptedNoise([]))
        assert tossed.pop() == (magnitude - variance / scale) ** 2 / (2 * variance)


@pytest.mark.parametrize(
    ("variance", "scale"), [("1/9", 1), ("1", 2), ("3/2", 2), ("99/25", 2), ("4", 3), ("20", 5)]
)
def test_proposals_are_wide_enough(variance: str, scale: int) -> None:
    """The proposal's scale is the whole part of the deviation, and one."""
    assert DiscreteGaussian(Fraction(variance))._proposal == DiscreteLaplace(Fraction(scale))


def test_a_proposal_that_is_not_kept_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is returned is the first proposal whose coin falls right."""
    law = DiscreteGaussian(Fraction(20))
    coins = iter([False, False, True])
    monkeypatch.setattr(discrete_gaussian, "bernoulli_exponential", lambda *_: next(coins))
    zero, one = 0, law._proposal._digits[0].table[0] + 1
    assert law.draw(ScriptedNoise([one, zero, zero, zero, zero, one])) == -1


def test_a_source_that_keeps_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins that never fall right come from no generator."""
    monkeypatch.setattr(discrete_gaussian, "bernoulli_exponential", lambda *_: False)
    with pytest.raises(InvariantError, match="keeps a draw"):
        DiscreteGaussian(Fraction(20)).draw(ScriptedNoise([0] * 2 * ATTEMPTS_MAX))


@pytest.mark.parametrize("variance", [0, -1])
def test_a_variance_is_above_zero(variance: int) -> None:
    """A law without spread is refused."""
    with pytest.raises(InvariantError, match="variance"):
        DiscreteGaussian(Fraction(variance))


@pytest.mark.parametrize(("variance", "end"), [("1/9", 1), ("3/2", 3), ("20", 12)])
def test_draws_follow_the_law(variance: str, end: int) -> None:
    """Pearson's statistic of fresh draws is as small as the law's."""
    # Like the Laplace test: a deviation off by the factor 1 + s has about 2 n s^2 as
    # non-centrality, so n = 20,000 shows a twelfth; the limit is passed by chance
    # with probability 1e-9.
    law, noise, count = DiscreteGaussian(Fraction(variance)), SystemNoise(), 20_000
    weight = [exp(-(y**2) / 2 / Fraction(variance)) for y in range(-60, 61)]
    seen = Counter(min(end, max(-end, law.draw(noise))) for _ in range(count))
    cells = {y: weight[y + 60] for y in range(-end + 1, end)}
    cells[end] = cells[-end] = fsum(weight[60 + end :])
    expected = {y: count * share / fsum(weight) for y, share in cells.items()}
    assert min(expected.values()) > 50
    found = sum((seen[y] - e) ** 2 / e for y, e in expected.items())
    assert found < chi2.isf(FALSE_ALARM, len(expected) - 1)
