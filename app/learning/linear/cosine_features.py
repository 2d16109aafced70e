"""Random Fourier features ("waves"): cosines of random weighted sums of numeric features.

They are inputs of a linear classifier, beside the outcomes of feature tests. The inner product of
two rows' random Fourier features (Rahimi and Recht 2007) approximates a Gaussian kernel. Here
everything is computed in integers: a numeric value becomes a whole number of steps between its
public bounds, the angle (phase) of a cosine is a 64-bit sum of products of integers, of which the
last 32 bits count, and the cosine is read from a table. Therefore the waves of a row depend on this
row only, to the last bit. Floating-point matrix products do not have this property, because their
rounding can depend on the other rows.

The random frequencies and shifts are public and are published with the classifier; no privacy claim
depends on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.halfspaces.arrangement import COORDINATE_MAX
from app.learning.halfspaces.lattice import whole_steps
from app.noise.discrete_gaussian import DiscreteGaussian

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

# A full turn.
PHASES: Final = 1 << 32
# Places of the table of cosines, ...
PLACES: Final = 1 << 10
# ... and what a cosine of one is written as: features have 8 bits and a sign.
MAGNITUDE: Final = 1 << 8
PHASES_PER_PLACE: Final = PHASES // PLACES
SUM_BOUND: Final = 1 << 63
ROWS_PER_BLOCK: Final = 4096

# Deviations of all phases together, of people as public points have them, times the number
# of numbers: docs/utility.md, "How the kernel score was tuned".
ROUGHNESS: Final = 9.0
# Waves of more than so many numbers together are smaller, and their tests weigh more.
NUMBERS_OF_FULL_SIZE: Final = 2
# Points that hardly differ in a number are held to differ by so many steps, ...
SPREAD_MIN: Final = 1 << 10
# ... and without points people are anywhere between the bounds.
SPREAD_WITHOUT_POINTS: Final = COORDINATE_MAX / math.sqrt(12)

DIGITS: Final = 60
# Halvings of a quarter turn that lead to half a place of the table.
HALVINGS: Final = (PLACES // 2).bit_length() - 1


@cache
def cosine_table() -> NDArray[np.int64]:
    """Return a table of cosines as integers, scaled by 256, for 1,024 equal angles of a circle.

    The cosines are computed in decimal numbers with far more digits than the rounded result has.
    """
    with localcontext(Context(prec=DIGITS)):
        half = step = Decimal(0)
        for _ in range(HALVINGS):
            step, half = half, ((1 + half) / 2).sqrt()
        before, cosine = half, half
        table = []
        for _ in range(PLACES):
            table.append(round(MAGNITUDE * cosine))
            before, cosine = cosine, 2 * step * cosine - before
    found = np.array(table, dtype=np.int64)
    found.flags.writeable = False
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """Random Fourier features: public cosines of weighted sums of numeric features.

    A phase is the angle of a cosine; a phase of 2^32 is a full turn.

    Attributes:
        feature_indices: the indices of the numeric features, in the order of the schema.
        bounds: the lower and the upper bound of each of these features.
        frequencies: the phase that one step of a feature adds to a wave, from 0 to 2^32 - 1, shape
            ``(features, waves)``.
        shifts: the phase of each wave at step 0 of all features, shape ``(waves,)``.

    """

    feature_indices: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...]
    frequencies: NDArray[np.int64]
    shifts: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check that every sum of phases fits into 64 bits."""
        invariant(len(self.feature_indices) == len(self.bounds), "a number has its bounds")
        shape = (len(self.bounds), len(self.shifts))
        invariant(self.frequencies.shape == shape, "a wave has a frequency for each number")
        for phases in (self.frequencies, self.shifts):
            invariant(bool(((phases >= 0) & (phases < PHASES)).all()), "a phase has 32 bits")
        largest = len(self.bounds) * COORDINATE_MAX * PHASES + PHASES
        invariant(largest < SUM_BOUND, "sums of phases are exact")

    def __len__(self) -> int:
        """Return the number of waves."""
        return len(self.shifts)

    def steps(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the numeric features in whole steps between their bounds, ``(rows, features)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, all features)``.

        """
        columns = [
            whole_steps(values[:, index], bounds)
            for index, bounds in zip(self.feature_indices, self.bounds, strict=True)
        ]
        return np.stack(columns, axis=1)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return the waves of rows: cosines scaled by 256, as integers, shape ``(rows, waves)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, all features)``.

        """
        return self.cosines(self.steps(values))

    def cosines(self, steps: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the waves of rows that are given in whole steps, shape ``(rows, waves)``.

        Args:
            steps: the numeric features in whole steps, as :meth:`steps` returns them.

        """
        found = np.empty((len(steps), len(self)), dtype=np.int16)
        for start in range(0, len(steps), ROWS_PER_BLOCK):
            phases = steps[start : start + ROWS_PER_BLOCK] @ self.frequencies + self.shifts
            places = phases % PHASES // PHASES_PER_PLACE
            found[start : start + ROWS_PER_BLOCK] = cosine_table()[places]
        return found


def wave_size(number_count: int) -> float:
    """Return the factor by which waves are scaled relative to feature tests.

    It is 1 for up to two numeric features, and smaller for more.

    Args:
        number_count: the number of numeric features.

    """
    return min(1.0, NUMBERS_OF_FULL_SIZE / number_count)


def spreads(steps: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the standard deviation of each numeric feature among public points, in steps.

    Args:
        steps: the numeric features of the points in whole steps, shape ``(points, features)``.
            Without points, the deviation of a uniform distribution is returned.

    """
    if not len(steps):
        return (SPREAD_WITHOUT_POINTS,) * int(steps.shape[1])
    deviations: list[float] = steps.std(axis=0).tolist()
    return tuple(max(each, float(SPREAD_MIN)) for each in deviations)


def drawn_waves(
    feature_indices: Sequence[int],
    bounds: Sequence[tuple[float, float]],
    spread: Sequence[float],
    *,
    count: int,
    noise: NoiseSource,
) -> Waves:
    """Return random waves: frequencies from a discrete Gaussian, and uniform shifts.

    The Euclidean distance between two people's features grows with the number of features.
    Frequencies are lower for more features, so that similar people still have similar waves.

    Args:
        feature_indices: the indices of the numeric features, in the order of the schema.
        bounds: the lower and the upper bound of each of these features.
        spread: the standard deviation of each feature among people, in steps.
        count: the number of waves.
        noise: the source of randomness.

    """
    dimension = len(bounds)
    turns = ROUGHNESS / (dimension * math.sqrt(2 * dimension)) / math.tau
    frequencies = []
    for each in spread:
        law = DiscreteGaussian(Fraction(max(round((turns * PHASES / each) ** 2), 1)))
        frequencies.append([law.draw(noise) % PHASES for _ in range(count)])
    return Waves(
        tuple(feature_indices),
        tuple(bounds),
        np.array(frequencies, dtype=np.int64).reshape(dimension, count),
        np.array([noise.below(PHASES) for _ in range(count)], dtype=np.int64),
    )
