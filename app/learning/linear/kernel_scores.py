"""Classifiers with integer scores: weighted sums of feature tests, and of cosine or numeric inputs.

The inputs of a row are small integers. The input for a feature test is 256 if the test is true, and
else 0. A *wave*, the cosine of a random weighted sum of numeric features, lies between -256 and
256. A numeric feature goes from 0 to 256 between its bounds. Public points (feature vectors)
determine a linear map that makes the inputs uncorrelated. The result of this map is called a row's
vector. Its length is limited to a maximum; with waves, the maximum is a multiple of the median
length of the public points' vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.halfspaces.arrangement import COORDINATE_MAX
from app.learning.linear.cosine_features import MAGNITUDE
from app.learning.linear.integer_vectors import EXACT_BOUND, NORM_MAX, IntegerFeatures, score_count
from app.learning.linear.linear_scores import SCORE_BOUND
from app.learning.linear.whitening import CURVATURE_PARTS, GRID, PublicMap, directions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.linear.conjunctions import Terms
    from app.learning.linear.cosine_features import Waves
    from app.learning.linear.quantile_steps import Numbers
    from app.learning.linear.whitening import Directions, Shrinkage

# A score of 1.0 is written as so many, a product of a feature's units and a weight's.
FINENESS: Final = 1 << 30
# Where points are few, they hardly differ in some directions in which people do: no less than
# this over the number of points is added to a curvature.
RIDGE_OF_POINTS: Final = 0.4
# A number that goes from bound to bound moves as much as so many tests do.
NUMBER_SIZE: Final = 2.0
# So many points between the bounds stand for people where there are no public ones, a prime, ...
EVERYWHERE: Final = 1021
# ... whose coordinates are multiples of powers of a number, all of which differ modulo it.
ROOT: Final = 76


@dataclass(frozen=True, slots=True, eq=False)
class NumberedTerms:
    """The inputs of a linear score: conjunctions of public feature tests, then numeric features.

    Attributes:
        terms: the public conjunctions of tests.
        numbers: the numeric features, with their public bounds.

    """

    terms: Terms
    numbers: Numbers

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.terms) + len(self.numbers)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return the inputs of each row as integers from 0 to 256, shape ``(rows, inputs)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        return np.hstack([_held(self.terms, values), self.numbers.encode(values)])


@dataclass(frozen=True, slots=True, eq=False)
class KernelInputs:
    """The inputs of a linear score: conjunctions of public feature tests, then waves.

    Attributes:
        terms: the public conjunctions of tests.
        waves: the public waves.

    """

    terms: Terms
    waves: Waves

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.terms) + len(self.waves)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int16]:
        """Return the inputs of each row as integers from -256 to 256, shape ``(rows, inputs)``.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        return np.hstack([_held(self.terms, values), self.waves.encode(values)])


def _held(terms: Terms, values: NDArray[np.float64]) -> NDArray[np.int16]:
    """Return terms as features: 0, or 256 where they hold."""
    return terms.encode(values).astype(np.int16) * np.int16(MAGNITUDE)


def numbered_features(
    inputs: NumberedTerms,
    of_terms: PublicMap,
    public_values: NDArray[np.float64],
    shrinkage: Shrinkage,
) -> IntegerFeatures:
    """Return an integer map that makes a score's inputs uncorrelated, and limits vectors' lengths.

    The inputs are feature tests and numeric features.

    Args:
        inputs: the tests and numeric features.
        of_terms: a public linear map of the tests alone, with the mean and covariance of its
            output.
        public_values: feature values of public points, encoded by the public schema, shape
            ``(points, features)``, at least one point.
        shrinkage: the shrinkage of inputs that vary little, and the limit on the length of a row's
            vector.

    """
    points = inputs.encode(public_values).astype(np.float64) / MAGNITUDE
    whole = _block_diagonal(of_terms.matrix, NUMBER_SIZE * np.eye(len(inputs.numbers)))
    found = directions(PublicMap.of_points(points, whole), shrinkage)
    usual = math.sqrt(float((found.variances / CURVATURE_PARTS).sum()))
    return _integers(found, norm=shrinkage.length * usual, finest=True)


def kernel_features(
    inputs: KernelInputs,
    of_terms: PublicMap,
    public_values: NDArray[np.float64],
    shrinkage: Shrinkage,
    *,
    wave_size: float = 1.0,
) -> IntegerFeatures:
    """Return an integer map that makes a score's inputs uncorrelated, and limits vectors' lengths.

    The inputs are feature tests and waves.

    Args:
        inputs: the tests and waves.
        of_terms: a public linear map of the tests alone, with the mean and covariance of its
            output.
        public_values: feature values of public points, encoded by the public schema, shape
            ``(points, features)``; there may be none.
        shrinkage: the shrinkage of inputs that vary little. The length of a row's vector is limited
            to ``shrinkage.length`` times the median length of the public points' vectors, or times
            the expected length if there are no points.
        wave_size: the size of a wave relative to a test; noise hides smaller inputs sooner.

    """
    points = inputs.encode(public_values) / MAGNITUDE
    point_count = len(points) or EVERYWHERE
    shrinkage = replace(shrinkage, ridge_min=RIDGE_OF_POINTS / point_count)
    whole = _block_diagonal(of_terms.matrix, wave_size * np.eye(len(inputs.waves)))
    if not len(points):
        found = directions(
            _without_points(inputs.waves, of_terms, whole, wave_size=wave_size), shrinkage
        )
        usual = math.sqrt(float(found.variances.sum()))
    else:
        found = directions(PublicMap.of_points(points, whole), shrinkage)
        images = points @ found.matrix + found.offset
        usual = float(np.median(np.sqrt((images**2).sum(axis=1))))
    return _integers(found, norm=shrinkage.length * usual, finest=False)


def _without_points(
    waves: Waves, of_terms: PublicMap, whole: NDArray[np.float64], *, wave_size: float
) -> PublicMap:
    """Return the map with waves as they vary between the bounds, beside terms by their shares."""
    given = waves.cosines(_everywhere(len(waves.bounds))).astype(np.float64)
    alone = PublicMap.of_points(given * (wave_size / MAGNITUDE))
    return PublicMap(
        matrix=whole,
        offset=np.concatenate([of_terms.offset, alone.offset]),
        covariance=_block_diagonal(of_terms.covariance, alone.covariance),
    )


def _everywhere(dimension: int) -> NDArray[np.int64]:
    """Return points that lie evenly between the bounds, in whole steps, shape ``(m, d)``.

    Multiples of powers of one number modulo a prime: no two numbers go together.
    """
    powers = [pow(ROOT, axis, EVERYWHERE) for axis in range(dimension)]
    places = np.outer(np.arange(EVERYWHERE), np.array(powers)) % EVERYWHERE
    return np.asarray(places * COORDINATE_MAX // (EVERYWHERE - 1), dtype=np.int64)


def _block_diagonal(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.zeros((one.shape[0] + other.shape[0], one.shape[1] + other.shape[1]))
    found[: one.shape[0], : one.shape[1]] = one
    found[one.shape[0] :, one.shape[1] :] = other
    return found


def _integers(found: Directions, *, norm: float, finest: bool) -> IntegerFeatures:
    """Write directions in integers; no entry is so large that a sum would not be exact.

    Args:
        found: the directions.
        norm: the length that rows are cut to.
        finest: whether the grid is the finest on which squares are exact, or always the same.

    """
    unit = 1 << math.floor(math.log2(NORM_MAX / norm))
    bound = math.floor(norm * unit)
    grid = GRID
    if finest:
        reach = math.isqrt((EXACT_BOUND - 1) // len(found.offset))
        grid = 1 << max((reach // bound).bit_length() - 1, 0)
    scale = float(unit * grid)
    limit = math.floor(EXACT_BOUND / 2 / (MAGNITUDE * (len(found.matrix) + 1)))
    return IntegerFeatures(
        matrix=np.clip(np.rint(found.matrix * (scale / MAGNITUDE)), -limit, limit),
        offset=np.clip(np.rint(found.offset * scale), -limit, limit),
        grid=grid,
        unit=unit,
        norm_bound=bound,
        magnitude=MAGNITUDE,
    )


@dataclass(frozen=True, slots=True, eq=False)
class KernelScores:
    """A classifier with integer scores: an intercept plus the weighted sum of the inputs.

    With two classes there is one score, and the second class is predicted if the score is above
    zero. With more classes there is one score per class, and the class with the largest score is
    predicted.

    Attributes:
        inputs: the public tests, and the waves or numeric features, that give a row's inputs.
        weights: the integer weight of each input in each score, shape ``(inputs, scores)``.
        intercepts: integers, shape ``(scores,)``.
        unit: the integer that stands for a score of 1.0.
        class_count: the number of labels.

    """

    inputs: KernelInputs | NumberedTerms
    weights: NDArray[np.int64]
    intercepts: NDArray[np.int64]
    unit: int
    class_count: int

    def __post_init__(self) -> None:
        """Refuse weights whose sums would not be exact."""
        width = score_count(self.class_count)
        invariant(self.weights.shape == (len(self.inputs), width), "every feature has weights")
        invariant(self.intercepts.shape == (width,), "there is an intercept for each score")
        rows = zip(*np.abs(self.weights).tolist(), strict=True)
        largest = [MAGNITUDE * sum(row) for row in rows]
        invariant(max(largest, default=0) < SCORE_BOUND // 2, "sums of weights are exact")
        invariant(int(np.abs(self.intercepts).max()) < SCORE_BOUND // 2, "scores are exact")

    @classmethod
    def rounded(
        cls,
        inputs: KernelInputs | NumberedTerms,
        weights: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        *,
        class_count: int,
    ) -> KernelScores:
        """Return the classifier with weights rounded to integers whose sums are exact.

        Args:
            inputs: the public tests, and the waves or numeric features, that give a row's inputs.
            weights: the real weight of each input in each score, shape ``(inputs, scores)``.
            intercepts: real numbers, shape ``(scores,)``.
            class_count: the number of labels.

        """
        largest = float((MAGNITUDE * np.abs(weights).sum(axis=0) + np.abs(intercepts)).max())
        unit = FINENESS
        while unit > 1 and largest * unit >= SCORE_BOUND / 4:
            unit //= 2
        scaled = np.rint(np.vstack([weights, intercepts[None]]) * unit)
        if largest * unit >= SCORE_BOUND / 4:
            limit = SCORE_BOUND // 4 // (MAGNITUDE * (len(inputs) + 1))
            scaled = np.clip(scaled, -limit, limit)
        whole = scaled.astype(np.int64)
        return cls(inputs, whole[:-1], whole[-1], unit, class_count)

    def scores(self, encoded: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the integer scores of rows, shape ``(rows, scores)``.

        Args:
            encoded: the inputs of each row, shape ``(rows, inputs)``.

        """
        return np.asarray(encoded.astype(np.int64) @ self.weights + self.intercepts)

    def predict(self, encoded: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the class index of every row, shape ``(rows,)``.

        Args:
            encoded: the inputs of each row, shape ``(rows, inputs)``.

        """
        scores = self.scores(encoded)
        if scores.shape[1] == 1:
            return (scores[:, 0] > 0).astype(np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)
