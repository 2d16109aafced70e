"""Encoding of rows as integer vectors of bounded length, and integer residuals of their labels.

All numbers are integers that a floating-point number represents exactly, so sums are exact in any
order. Therefore the vector of a row does not depend on other rows, and its length is checked
exactly.

A score is a weighted sum of the coordinates of a row's vector, and a linear classifier derives the
probabilities of the classes from the scores. A residual is the classifier's probability of a class,
less 1 if this class is the row's label. Its absolute value is limited to 1/2: the loss is the
logistic loss where the score agrees with the row's label, and linear elsewhere. Therefore the
residuals of two rows differ by at most 1 for any classifier. Scores are integers, and so are
residuals, which are read from a public table. So a residual depends only on the row's own scores
and label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Integers below it are doubles, and so are their sums while those stay below it.
EXACT_BOUND: Final = 1 << 53
# Coordinates are kept in 16 bits.
NORM_MAX: Final = 1 << 14
# So much shorter than the bound asks is what is cut to it: far above a double's rounding.
SHRINKAGE: Final = 1 - 2**-40
ROWS_PER_BLOCK: Final = 8192


def are_exact(matrix: NDArray[np.float64], offset: NDArray[np.float64]) -> bool:
    """Return whether the integers of a linear map are small enough for exact sums.

    Args:
        matrix: integers as float64, shape ``(inputs, coordinates)``.
        offset: integers as float64, shape ``(coordinates,)``.

    """
    return sum(each**2 for each in _largest(matrix, offset, 1)) < EXACT_BOUND


def _largest(matrix: NDArray[np.float64], offset: NDArray[np.float64], magnitude: int) -> list[int]:
    """Bound the magnitude of every coordinate, and of every partial sum that leads to it."""
    return [
        magnitude * int(whole) + int(shift)
        for whole, shift in zip(np.abs(matrix).sum(axis=0), np.abs(offset), strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerFeatures:
    """A public linear map from small integer inputs to integer vectors of bounded length.

    The vector of a row is ``(features @ matrix + offset) / grid``. If it is longer than the bound,
    it is scaled down to the bound. Then every coordinate is rounded towards zero.

    Attributes:
        matrix: integers as float64, shape ``(inputs, coordinates)``.
        offset: integers as float64, shape ``(coordinates,)``.
        grid: the factor, a power of two, by which the integers of the map are larger than the
            coordinates.
        unit: the integer that stands for a coordinate of 1.0.
        norm_bound: the largest Euclidean length of a vector, in integer coordinates.
        magnitude: the largest absolute value of an input; 1 for inputs that are 0 or 1.

    """

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]
    grid: int
    unit: int
    norm_bound: int
    magnitude: int = 1
    _reach: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that all sums of the map, and the sums of their squares, are exact."""
        invariant(self.grid >= 1 <= self.unit, "grid and unit are positive")
        invariant(1 <= self.norm_bound <= NORM_MAX, "coordinates fit 16 bits")
        for integers in (self.matrix, self.offset):
            invariant(bool((integers == np.trunc(integers)).all()), "the map is of integers")
        invariant(self.magnitude >= 1, "a feature has a bound")
        largest = _largest(self.matrix, self.offset, self.magnitude)
        invariant(max(largest) < EXACT_BOUND, "coordinates are exact")
        reach = math.inf
        if sum(each**2 for each in largest) >= EXACT_BOUND:
            reach = math.isqrt((EXACT_BOUND - 1) // self.width)
            invariant(reach >= self.norm_bound * self.grid, "no vector within the bound is cut")
        object.__setattr__(self, "_reach", reach)

    @property
    def width(self) -> int:
        """The number of coordinates of a row's vector."""
        return len(self.offset)

    def coordinates(self, features: NDArray[np.integer]) -> NDArray[np.int16]:
        """Return rows as integer vectors, int16, shape ``(rows, coordinates)``.

        Args:
            features: the inputs of each row, integers with absolute values up to :attr:`magnitude`,
                shape ``(rows, inputs)``.

        """
        vectors = np.empty((len(features), self.width), dtype=np.int16)
        for start in range(0, len(features), ROWS_PER_BLOCK):
            block = features[start : start + ROWS_PER_BLOCK].astype(np.float64)
            vectors[start : start + ROWS_PER_BLOCK] = self._bounded(block @ self.matrix)
        return vectors

    def _bounded(self, image: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cut vectors to the bound; what is still too long, which nothing is, is left out.

        Squares are summed of coordinates that are not beyond the reach, so the sum is exact.
        """
        image = image + self.offset
        if self._reach < math.inf:
            image = np.clip(image, -self._reach, self._reach)
        length = np.sqrt((image * image).sum(axis=1))
        bound = float(self.norm_bound * self.grid)
        shares = np.minimum(1.0, bound / np.maximum(length, 1.0)) * SHRINKAGE
        vectors = np.trunc(image * (shares / self.grid)[:, None])
        fits = (vectors * vectors).sum(axis=1) <= self.norm_bound**2
        return np.where(fits[:, None], vectors, 0.0)


BINARY: Final = 2
# What a probability of one is written as: fine enough that a thousandth of it is a number too.
WHOLE: Final = 1 << 20
HALF: Final = WHOLE // 2
# Scores are told apart on this grid, up to 16 above or below zero.
SCORE_STEPS: Final = 1 << 7
SCORE_MAX: Final = 16
# Odds of more than two classes, before they are divided.
ODDS: Final = 1 << 20

_PLACES: Final = SCORE_MAX * SCORE_STEPS
_ABOVE: Final = np.array(
    [round(WHOLE / (1 + math.exp(-(place + 0.5) / SCORE_STEPS))) for place in range(_PLACES)],
    dtype=np.int64,
)
# What lies below zero is what the mirrored place leaves of a whole, to the last unit.
_LOGISTIC: Final = np.concatenate([WHOLE - _ABOVE[::-1], _ABOVE])
_DECAY: Final = np.array(
    [round(ODDS * math.exp(-place / SCORE_STEPS)) for place in range(_PLACES + 1)],
    dtype=np.int64,
)


def score_count(class_count: int) -> int:
    """Return the number of linear scores per row: one for two classes, else one per class."""
    return 1 if class_count == BINARY else class_count


def squared_length_bound(class_count: int) -> int:
    """Return a bound on the squared length of the vector of one row's residuals.

    Residuals are integers; the integer :data:`HALF` stands for one half. With two classes there is
    one residual, between -:data:`HALF` and :data:`HALF`. With more classes, the residual of the
    row's label lies in [-:data:`HALF`, 0]; the others are not negative, and their sum is at most
    the absolute value of the label's residual.
    """
    return HALF**2 if class_count == BINARY else 2 * HALF**2


def shared_out(
    missed: NDArray[np.int64], person_row_counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return each residual divided by the number of rows of the same person, rounded toward zero.

    Therefore the residuals of all rows of a person add up to at most the bound for one row.
    Rounding to the nearest integer would break this: three residuals of 5 over 3 rows would each
    become 2, and their sum 6.

    Args:
        missed: residuals, shape ``(rows, scores)``.
        person_row_counts: for each row, the number of rows of its person, shape ``(rows,)``.

    """
    return np.sign(missed) * (np.abs(missed) // person_row_counts[:, None])


def logistic(scores: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the logistic function of integer scores as integers; it increases with the score.

    Args:
        scores: scores in steps of 1/:data:`SCORE_STEPS`, which is 1/128.

    Returns:
        Probabilities as integers; a probability of 1 is :data:`WHOLE`, which is ``2**20``.

    """
    return np.asarray(_LOGISTIC[np.clip(scores, -_PLACES, _PLACES - 1) + _PLACES])


def residuals(scores: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return residuals: the probability of each class, less 1 for the row's label; at most 1/2.

    The limit 1/2 is on the absolute value.

    Args:
        scores: scores in steps of 1/:data:`SCORE_STEPS`, which is 1/128, shape ``(rows, scores)``.
        labels: class indices, shape ``(rows,)``.

    Returns:
        Residuals as integers, shape ``(rows, scores)``; a residual of 1 is :data:`WHOLE`, which is
        ``2**20``. For two classes there is one residual, for the second class.

    """
    if scores.shape[1] == 1:
        missed = np.clip(logistic(scores[:, 0]) - WHOLE * labels, -HALF, HALF)
        return np.asarray(missed, dtype=np.int64).reshape(-1, 1)
    behind = np.minimum(scores.max(axis=1, keepdims=True) - scores, _PLACES)
    odds = _DECAY[behind]
    shares = odds * WHOLE // odds.sum(axis=1, keepdims=True)
    own = np.arange(len(labels)), labels
    shares[own] -= WHOLE
    excess = np.maximum(-shares[own], HALF)[:, None]
    shares[own] = np.maximum(shares[own], -HALF)
    others = np.ones(shares.shape, dtype=bool)
    others[own] = False
    shares = np.where(others, shares * HALF // excess, shares)
    return np.asarray(shares, dtype=np.int64)
