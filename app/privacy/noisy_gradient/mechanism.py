"""A linear classifier by noisy gradient descent, with one noisy sum over rows per step.

**Algorithm.** Gradient descent over all rows on a logistic loss, with clipped rows and Gaussian
noise (Bassily, Smith, Thakurta 2014; Abadi et al. 2016, without sub-sampling). The classifier's
score of a label is a weighted sum of terms (feature tests, conjunctions of them, numeric features,
or random cosine features of them). A linear map that is computed from public points turns a row's
terms into uncorrelated coordinates, to which the weights apply. In each step a row's residual, the
difference between its label and its predicted probability, multiplies its coordinates. The mean of
the later iterates (the weights after the later steps) is released.

**Claim.** (epsilon, delta)-differentially private under replace-one, for the noise variance that
``app.privacy.noisy_gradient.calibration`` finds and checks; public points and the terms computed
from them are not protected. If a column names the person of each row, replace-one replaces all rows
of a person, and n counts persons.

**Proof.** Every step adds discrete Gaussian noise to integers that one row moves by a bounded
vector. All steps together reveal at most as much as one normal variable whose mean moves, up to a
cost of rounding that is charged: ``app/privacy/noisy_gradient/proof.md``.

**Inputs and outputs.** ``private_value``: the terms of the rows as bits or as integers of at most
16 bits, (n, terms), all at once or part by part, and labels int64 (n,), secret.
``person_row_counts``: for each row the number of rows of its person, if a column names persons
(``app/data/persons.py``), int64 (n,), secret. Out: ``Weights`` of the public coordinates, which
become public when a caller that charged for them publishes them.

**Utility.** The noise in each coordinate of a mean gradient has the standard deviation
``Parameters.step_deviation``. The mean of the later iterates has less noise than the last iterate.

**Deviations.** A row adds an integer vector: its coordinates and its residual are rounded to
multiples of public constants before they are multiplied, and sums and noise are exact, so no
rounding depends on the rows. A residual is clipped to at most a half, which halves the sensitivity.
The residuals of a person with r rows are divided by r and rounded toward zero. The noise is
discrete Gaussian. All rows are used in every step, so sampling gives no amplification.

**Raises.** ``InvariantError``: parameters at which sums would not be exact or the noise would be
too small, or a number of rows that is not the public n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.encoded_rows import parts
from app.learning.linear.integer_vectors import (
    BINARY,
    EXACT_BOUND,
    ROWS_PER_BLOCK,
    SCORE_STEPS,
    WHOLE,
    residuals,
    score_count,
    shared_out,
    squared_length_bound,
)
from app.learning.linear.linear_scores import AveragedDescent
from app.noise.discrete_gaussian import DiscreteGaussian
from app.privacy.noisy_gradient import calibration as accounting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.linear.integer_vectors import IntegerFeatures
    from app.noise.source import NoiseSource
    from app.privacy.noisy_gradient.calibration import NoisyGradientCalibration

# How finely iterates are written: a weight of 1.0 is so many steps.
WEIGHT_STEPS = 1 << 20
# No iterate is longer; a margin then stays an exact integer.
WEIGHT_MAX = 1 << 11
# Below what 64 bits hold.
INTEGER_BOUND = 1 << 62
# Two vectors of one length at most differ by twice that.
REPLACED = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """The public parameters of one noisy gradient descent.

    Attributes:
        features: the public map from a row's terms, bits or small integers, to its integer vector
            of coordinates.
        rate: the length of a step, as a multiple of the mean gradient.
        class_count: the number L of labels.
        row_count: the public number n of rows, or of persons.
        calibration: the noise variance of every step.
        has_holes: whether ``row_count`` counts slots, each the fixed place of one row or
            person, some of which may be empty; an empty slot adds zero to a sum.

    """

    features: IntegerFeatures
    rate: float
    class_count: int
    row_count: int
    calibration: NoisyGradientCalibration
    has_holes: bool = False

    def __post_init__(self) -> None:
        """Check that the number of noise values is within its limit and that every sum is exact."""
        features = self.features
        invariant(self.class_count >= BINARY, "there are two or more classes")
        invariant(self.row_count >= 1, "there is at least one row")
        largest = features.norm_bound * WHOLE
        invariant(largest * ROWS_PER_BLOCK < EXACT_BOUND, "sums over a block of rows are exact")
        invariant(largest * self.row_count < INTEGER_BOUND, "sums over all rows are exact")
        margin = features.norm_bound * WEIGHT_MAX * WEIGHT_STEPS
        invariant(margin * SCORE_STEPS < EXACT_BOUND, "margins are exact")
        invariant(self.rate > 0, "a step goes somewhere")
        draws = self.step_count * features.width * score_count(self.class_count)
        invariant(draws <= accounting.DRAWS_MAX, "the draws are few enough for what is charged")
        accounting.check(self.calibration)

    @property
    def step_count(self) -> int:
        """The number of gradient steps."""
        return len(self.calibration.step_weights)

    def step_variance(self, step: int) -> Fraction:
        """Return the noise variance of each coordinate at a step, counted from 0."""
        sensitivity = squared_sensitivity(self.features, class_count=self.class_count)
        return self.calibration.variance(step, squared_sensitivity=sensitivity)

    def step_deviation(self, step: int) -> float:
        """Return the noise's standard deviation in a step's mean gradient, per coordinate."""
        scale = self.row_count * self.features.unit * WHOLE
        return float(np.sqrt(float(self.step_variance(step)))) / scale


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The released weights of a linear score.

    Attributes:
        values: the real weights, shape ``(p, s)`` for p coordinates and s scores: one score for two
            labels, otherwise one for each label.

    """

    values: NDArray[np.float64]


def squared_sensitivity(features: IntegerFeatures, *, class_count: int) -> int:
    """Return a bound on the squared change of a step's sum if one row or person is replaced.

    A row adds the outer product of its vector and its residuals, and the squared length of this
    product is the product of the two squared lengths. All rows of a person together add a product
    that is no longer than the longest for one row. The contributions of two persons differ by at
    most twice the longest.
    """
    return REPLACED**2 * features.norm_bound**2 * squared_length_bound(class_count)


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
    person_row_counts: NDArray[np.int64] | None = None,
    start: NDArray[np.float64] | None = None,
) -> Weights:
    """Return weights found by gradient descent, with one noisy sum of row vectors per step."""
    encoded, labels = private_value
    _check_rows(parameters, private_value, person_row_counts)
    features = parameters.features
    rows = _private_vectors(features, encoded)

    def private_sum(weights: NDArray[np.float64]) -> NDArray[np.int64]:
        return gradient_sum(features, rows, labels, weights, person_row_counts)

    return draw_summed(parameters, private_sum, noise, start)


def draw_summed(
    parameters: Parameters,
    private_sum: Callable[[NDArray[np.float64]], NDArray[np.int64]],
    noise: NoiseSource,
    start: NDArray[np.float64] | None = None,
) -> Weights:
    """Return weights as :func:`draw` does, given a function that sums gradients over rows.

    Args:
        parameters: the public parameters of the descent.
        private_sum: :func:`gradient_sum` over all rows, as a function of the weights; secret.
        noise: the source of randomness.
        start: the first iterate, public, shape ``(p, s)`` for p coordinates and s scores; None for
            zero.

    """
    features = parameters.features
    shape = features.width, score_count(parameters.class_count)
    invariant(start is None or start.shape == shape, "a start has a weight for each coordinate")
    state = AveragedDescent(
        np.zeros(shape) if start is None else start,
        rate=parameters.rate,
        step_count=parameters.step_count,
        length_max=WEIGHT_MAX / 2,
    )
    for step in range(parameters.step_count):
        weights = whole_weights(state.weights)
        law = DiscreteGaussian(parameters.step_variance(step))
        noisy_sum = [[int(each) + law.draw(noise) for each in row] for row in private_sum(weights)]
        mean = np.array(noisy_sum, dtype=np.float64) / (parameters.row_count * features.unit)
        state.update(mean / WHOLE)
    return Weights(state.mean())


def _check_rows(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    person_row_counts: NDArray[np.int64] | None,
) -> None:
    """Check that the rows are of the public n, or of fewer where slots may hold nothing."""
    encoded, labels = private_value
    count, unit = len(labels), "rows"
    if person_row_counts is not None:
        invariant(len(labels) == len(person_row_counts), "every row is a person's")
        count, unit = _person_count(person_row_counts), "persons"
    has_room = parameters.has_holes and count < parameters.row_count
    invariant(count == parameters.row_count or has_room, f"the rows are of the public n {unit}")
    invariant(len(encoded) == len(labels), "every row has features and a label")


def whole_weights(iterate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an iterate's weights as whole multiples of ``1 / WEIGHT_STEPS``, shape ``(p, s)``."""
    return np.rint(iterate * WEIGHT_STEPS)


def gradient_sum(
    features: IntegerFeatures,
    vectors: NDArray[np.int16],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
    person_row_counts: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the exact sum, over rows, of vectors times residuals, shape ``(p, s)``.

    Here p is the number of coordinates of a vector and s the number of scores.

    Args:
        features: the public map that gave the vectors.
        vectors: the vectors of the rows, shape ``(n, p)``; secret.
        labels: the labels of the rows, shape ``(n,)``; secret.
        weights: the iterate's weights as integers, shape ``(p, s)``; their length stays below
            :data:`WEIGHT_MAX` times :data:`WEIGHT_STEPS`.
        person_row_counts: for each row the number of its person's rows, by which the residual is
            divided, shape ``(n,)``; secret. None if each row is a person.

    """
    total = np.zeros(weights.shape, dtype=np.int64)
    for rows in _blocks(len(vectors)):
        block = vectors[rows].astype(np.float64)
        missed = residuals(_scores(features, block, weights), labels[rows])
        if person_row_counts is not None:
            missed = shared_out(missed, person_row_counts[rows])
        total += (block.T @ missed.astype(np.float64)).astype(np.int64)
    return total


def _person_count(person_row_counts: NDArray[np.int64]) -> int:
    """Return how many persons the rows are of: where one has r rows, so many say r."""
    row_counts, said = np.unique(person_row_counts, return_counts=True)
    return int((said // row_counts).sum())


def _scores(
    features: IntegerFeatures, vectors: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the rows' scores on the grid of residuals: products of integers, then one floor."""
    margins = (vectors @ weights).astype(np.int64)
    return margins * SCORE_STEPS // (features.unit * WEIGHT_STEPS)


def _private_vectors(features: IntegerFeatures, encoded: EncodedRows) -> NDArray[np.int16]:
    """Return the vectors of all rows, part by part; secret."""
    vectors = np.empty((len(encoded), features.width), dtype=np.int16)
    for rows in parts(len(encoded)):
        vectors[rows] = features.coordinates(encoded[rows].astype(np.int16, copy=False))
    return vectors


def _blocks(row_count: int) -> Iterator[slice]:
    """Yield slices of rows whose vectors as doubles take some megabytes."""
    for start in range(0, row_count, ROWS_PER_BLOCK):
        yield slice(start, min(start + ROWS_PER_BLOCK, row_count))
