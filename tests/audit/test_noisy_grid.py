"""The exact divergence of noisy grids on small tables: the whole share, and more for faults.

The draw runs with noise that the test chooses, so that what each released integer is made of is
seen: an exact number of rows and one draw of a discrete Laplace law, or none.  The chance of an
output is a product of those laws, and the largest ratio of two neighbours' chances follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise
from app.privacy.noisy_grid import mechanism
from app.privacy.noisy_grid.mechanism import Parameters, divided
from tests.builders.mechanisms.gridding import GRID

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

    Draw = Callable[[Parameters, Any, NoiseSource], tuple[NDArray[np.int64], ...]]

pytestmark = pytest.mark.audit

EPSILON = Fraction(1, 2)
# Marks are far apart, so that a mark and a count of rows are told from their sum.
MARK = 1 << 20


@dataclass(frozen=True)
class Released:
    """One integer: rows in it, and the scale of its noise; None where it has none."""

    rows: int
    scale: Fraction | None


class Marking:
    """In place of the law: every draw is a mark of its own, and its scale is noted."""

    scales: list[Fraction]

    def __init__(self, scale: Fraction) -> None:
        """Note the scale of the draws to come."""
        self.scale = scale

    def draw(self, _: NoiseSource) -> int:
        """Return the next mark."""
        self.scales.append(self.scale)
        return len(self.scales) * MARK


def released(
    draw: Draw,
    patched: pytest.MonkeyPatch,
    class_count: int,
    rows: tuple[tuple[int, int, int], ...],
) -> list[Released]:
    """Return what each integer of a draw is made of."""
    parameters = Parameters(
        grid=GRID,
        class_count=class_count,
        row_count=len(rows),
        epsilon=EPSILON,
        level_epsilons=divided(EPSILON, len(GRID.sides)),
    )
    patched.setattr(mechanism, "DiscreteLaplace", Marking)
    patched.setattr(Marking, "scales", [], raising=False)
    ranks = np.array([row[:2] for row in rows], dtype=np.uint8)
    labels = np.array([row[2] for row in rows], dtype=np.int64)
    numbers = np.concatenate(draw(parameters, (ranks, labels), ScriptedNoise([]))).ravel()
    found, used = [], []
    for number in numbers.tolist():
        mark, rows_in = divmod(number + MARK // 2, MARK)
        used.append(mark)
        found.append(Released(rows_in - MARK // 2, Marking.scales[mark - 1] if mark else None))
    marks = [mark for mark in used if mark]
    assert len(set(marks)) == len(marks), "no draw of noise is used twice"
    return found


def divergence(first: list[Released], second: list[Released]) -> float:
    """Return the largest logarithm of a ratio of two outputs' chances; infinite where one is 0."""
    total = Fraction(0)
    for one, other in zip(first, second, strict=True):
        if one.scale != other.scale or (one.scale is None and one.rows != other.rows):
            return math.inf
        if one.scale is not None:
            # P[Y = y] is proportional to e^(-|y| / b): beyond both counts the ratio is this.
            total += abs(one.rows - other.rows) / one.scale
    return float(total)


def largest(draw: Draw, patched: pytest.MonkeyPatch, class_count: int) -> float:
    """Return the largest divergence of all pairs of neighbours of two records."""
    # Two corners of one coarse cell and two of others, with every label.
    records = [(*place, label) for place in ((0, 0), (1, 1), (0, 3), (3, 3)) for label in (0, 1)]
    stay = (0, 0, 0)
    tables = [released(draw, patched, class_count, (stay, record)) for record in records]
    return max(divergence(one, other) for one, other in combinations(tables, 2))


@pytest.mark.parametrize("class_count", [2, 3])
def test_the_divergence_is_the_share(class_count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all pairs of neighbours it is epsilon, and not more."""
    assert largest(mechanism.draw, monkeypatch, class_count) == float(EPSILON)


def one_level_only(
    parameters: Parameters, private_value: Any, noise: NoiseSource
) -> tuple[NDArray[np.int64], ...]:
    """Add noise to the finest level alone: a planted fault."""
    noisy = mechanism.draw(parameters, private_value, noise)
    exact = mechanism.level_counts(parameters, *private_value)
    return (*exact[:-1], noisy[-1])


def occupied_only(
    parameters: Parameters, private_value: Any, _: NoiseSource
) -> tuple[NDArray[np.int64], ...]:
    """Add noise where rows lie alone: a planted fault."""
    found = []
    levels = mechanism.level_counts(parameters, *private_value)
    for counts, scale in zip(levels, parameters.scales, strict=True):
        law = Marking(scale)
        drawn = [law.draw(ScriptedNoise([])) if each else 0 for each in counts.ravel()]
        found.append(counts + np.array(drawn).reshape(counts.shape))
    return tuple(found)


def half_the_noise(
    parameters: Parameters, private_value: Any, noise: NoiseSource
) -> tuple[NDArray[np.int64], ...]:
    """Draw noise for a sensitivity of one: a planted fault."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(mechanism, "SENSITIVITY", 1)
        return mechanism.draw(parameters, private_value, noise)


@pytest.mark.parametrize(
    ("fault", "shown"),
    [(one_level_only, math.inf), (occupied_only, math.inf), (half_the_noise, 2 * float(EPSILON))],
)
def test_planted_faults_show_more(
    fault: Draw, shown: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise on one level, on occupied cells, or of half its scale is caught."""
    assert largest(fault, monkeypatch, 2) == shown


def test_the_law_behind_a_draw_is_the_one_that_is_counted_with() -> None:
    """Over scripted words the draw's noise has the law's own values, one draw an integer."""
    words = list(product(range(0, 1 << 64, 1 << 60), repeat=2))
    law = DiscreteLaplace(Fraction(4))
    expected = [law.draw(ScriptedNoise(list(pair))) for pair in words]
    assert len(set(expected)) > len(words) // 16
    parameters = Parameters(
        grid=GRID,
        class_count=2,
        row_count=1,
        epsilon=Fraction(1),
        level_epsilons=divided(Fraction(1), 2),
    )
    assert parameters.scales == (Fraction(4), Fraction(4))
    scripted = [word for pair in words[: parameters.draw_count] for word in pair]
    value = (np.zeros((1, 2), dtype=np.uint8), np.array([1]))
    noisy = np.concatenate(mechanism.draw(parameters, value, ScriptedNoise(scripted))).ravel()
    exact = np.concatenate(mechanism.level_counts(parameters, *value)).ravel()
    assert (noisy - exact).tolist() == expected[: parameters.draw_count]
