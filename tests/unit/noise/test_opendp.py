"""The samplers draw as those of an independent library do."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import opendp.prelude as dp
import pytest
from scipy.stats import chi2

from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.system import SystemNoise

# Two samples of 20,000: their statistic has the non-centrality of one of 10,000, so a
# scale that is off by an eighth is seen.  By chance the limit is passed with
# probability 1e-9; both libraries draw from the operating system.
DRAW_COUNT = 20_000
FALSE_ALARM = 1e-9


@pytest.fixture(autouse=True)
def _features() -> None:
    """Allow the library's contributed constructors."""
    dp.enable_features("contrib")


def assert_same_law(ours: list[int], theirs: list[int], *, end: int) -> None:
    """Compare two samples by Pearson's statistic, everything beyond ``end`` in one cell."""
    first, second = (
        Counter(min(end, max(-end, drawn)) for drawn in sample) for sample in (ours, theirs)
    )
    cells = range(-end, end + 1)
    assert min(first[cell] + second[cell] for cell in cells) > 100
    found = sum((first[y] - second[y]) ** 2 / (first[y] + second[y]) for y in cells)
    assert found < chi2.isf(FALSE_ALARM, 2 * end)


@pytest.mark.parametrize(("scale", "end"), [(0.5, 2), (5.0, 16)])
def test_discrete_laplace_draws_are_those_of_opendp(scale: float, end: int) -> None:
    """Our draws and OpenDP's have one law at the same scale."""
    law, noise = DiscreteLaplace(Fraction(scale)), SystemNoise()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = dp.m.make_laplace(*space, scale=scale)([0] * DRAW_COUNT)
    assert_same_law([law.draw(noise) for _ in range(DRAW_COUNT)], theirs, end=end)


@pytest.mark.parametrize(("deviation", "end"), [(0.5, 1), (5.0, 11)])
def test_discrete_gaussian_draws_are_those_of_opendp(deviation: float, end: int) -> None:
    """Our draws and OpenDP's have one law at the same variance."""
    law, noise = DiscreteGaussian(Fraction(deviation) ** 2), SystemNoise()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = dp.m.make_gaussian(*space, scale=deviation)([0] * DRAW_COUNT)
    assert_same_law([law.draw(noise) for _ in range(DRAW_COUNT)], theirs, end=end)
