"""Made-up people with mixed features and labels, on whom learners are tuned: no benchmark's data.

Census-like on purpose: four latent traits drive numbers that are rounded, skewed, heaped on
one value or zero for most, and categories from two to thirty of unequal size.  The log-odds
of the label add one effect a feature, among them steps, waves and strong rare ones, and five
products of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRAITS: Final = 4
CATEGORY_COUNTS: Final = (2, 5, 6, 7, 8, 14, 30)
PRODUCTS: Final = 5
SPIKED: Final = (2, 3)
LABELLED: Final = 16_281
ROWS: Final = 32_561


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Rows and labels of made-up people.

    Attributes:
        values: float64 (n, 13): six numbers, then codes of seven categories.
        labels: int64 (n,), 0 or 1.

    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]


def population(seed: int, *, row_count: int = ROWS + LABELLED, rare: bool) -> Population:
    """Return the people that a seed makes.

    Args:
        seed: of everything, the kinds of effects included.
        row_count: how many.
        rare: whether features that are zero for most have strong effects of both signs.

    """
    generator = np.random.default_rng(1000 + seed)
    traits = generator.standard_normal((row_count, TRAITS))
    numbers = _numbers(generator, traits)
    effects = [
        _spiked_effect(generator, column, rare=rare)
        if index in {2, 3}
        else _effect(generator, column)
        for index, column in enumerate(numbers)
    ]
    codes = [_codes(generator, traits, count) for count in CATEGORY_COUNTS]
    effects += [
        generator.normal(0, generator.uniform(0.2, 0.9), count)[column]
        for column, count in zip(codes, CATEGORY_COUNTS, strict=True)
    ]
    labels = _labels(generator, np.column_stack(effects), share=0.25 if rare else 0.35)
    return Population(np.column_stack([*numbers, *codes]).astype(np.float64), labels)


def _numbers(
    generator: np.random.Generator, traits: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Return ages, years, two mostly-zero amounts, heaped hours and a skewed amount."""
    count = len(traits)
    age, years, first, second, hours, amount = (_mixed(generator, traits) for _ in range(6))
    heaped = generator.random(count) < 0.45
    return [
        np.clip(np.round(38 + 13 * age), 17, 90),
        np.clip(np.round(10 + 2.5 * years), 1, 16),
        _mostly_zero(generator, traits, first),
        _mostly_zero(generator, traits, second),
        np.where(heaped, 40, np.clip(np.round(40 + 12 * hours), 1, 99)),
        np.round(np.exp(10 + 0.7 * amount) / 100) * 100,
    ]


def _mixed(generator: np.random.Generator, traits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a standardised mixture of some traits and noise of its own."""
    weights = generator.standard_normal(TRAITS) * generator.binomial(1, 0.6, TRAITS)
    mixed = traits @ weights + 0.8 * generator.standard_normal(len(traits))
    return np.asarray(mixed / mixed.std())


def _mostly_zero(
    generator: np.random.Generator, traits: NDArray[np.float64], size: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return an amount that few have, which for some of them is one of a few round ones."""
    have = _mixed(generator, traits) > generator.uniform(1.2, 1.9)
    common = np.round(np.exp(generator.normal(8, 0.8, generator.integers(15, 60))))
    shares = generator.dirichlet(np.full(len(common), 0.5))
    picked = generator.choice(common, len(size), p=shares)
    own = np.round(np.exp(8 + 0.8 * size))
    return np.where(have, np.where(generator.random(len(size)) < 0.3, picked, own), 0.0)


def _effect(generator: np.random.Generator, column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a saturating rise, a step and a small wave over ranks."""
    ranks = np.argsort(np.argsort(column + 1e-9 * generator.random(len(column)))) / len(column)
    height = generator.uniform(0.3, 1.2) * generator.choice([-1, 1])
    knee, edge = generator.uniform(0.2, 0.8), generator.uniform(0.3, 0.9)
    step = generator.normal(0, 0.4) * (ranks > edge)
    rise = height * (1.5 * np.minimum(ranks, knee) / knee + step)
    return np.asarray(rise + generator.normal(0, 0.3) * np.sin(6 * ranks))


def _spiked_effect(
    generator: np.random.Generator, column: NDArray[np.float64], *, rare: bool
) -> NDArray[np.float64]:
    """Return an effect of those who have any: of one sign, or up and down, and strong."""
    have = column > 0
    if not rare:
        return np.where(have, generator.normal(0, 1.2), 0.0)
    cuts = np.quantile(column[have], np.sort(generator.uniform(0.1, 0.9, 3)))
    levels = generator.permutation([-2.0, 4.0, -1.0, 5.0])
    return np.where(have, levels[np.searchsorted(cuts, column)], 0.0)


def _codes(
    generator: np.random.Generator, traits: NDArray[np.float64], count: int
) -> NDArray[np.int64]:
    """Return categories of unequal size that follow the traits."""
    sizes = np.log(generator.dirichlet(np.full(count, 0.6)) + 1e-3)
    drawn = sizes + 0.9 * traits @ generator.standard_normal((TRAITS, count))
    return np.asarray((drawn + generator.gumbel(size=drawn.shape)).argmax(axis=1), dtype=np.int64)


def _labels(
    generator: np.random.Generator, effects: NDArray[np.float64], *, share: float
) -> NDArray[np.int64]:
    """Return labels whose log-odds add the effects and products of pairs of them."""
    odds = effects.sum(axis=1)
    scaled = (effects - effects.mean(axis=0)) / (effects.std(axis=0) + 1e-9)
    for _ in range(PRODUCTS):
        one, other = generator.choice(effects.shape[1], 2, replace=False)
        odds += generator.normal(0, 0.45) * scaled[:, one] * scaled[:, other].clip(-2, 2)
    odds = (odds - odds.mean()) / odds.std() * generator.uniform(2.0, 2.8)
    chances = 1 / (1 + np.exp(np.quantile(odds, 1 - share) - odds))
    return np.asarray(generator.random(len(odds)) < chances, dtype=np.int64)
