"""A linear classifier by gradient descent on noisy sums over all rows.

**Algorithm.** Full-batch gradient descent of the logistic loss, or of its form for
more classes, with clipped rows and Gaussian noise (Bassily, Smith, Thakurta 2014;
Abadi et al. 2016, without sub-sampling), over terms that public points whitened.

**Claim.** (epsilon, delta)-differentially private under replace-one, for the variance
that ``app.accounting.noisy_gradient`` finds and checks; public points and their terms
are not protected.

**Proof.** Every step adds discrete Gaussian noise to integers that one row moves by a
bounded vector; Renyi divergences add: ``docs/proofs/noisy_gradient.md``.

**Inputs and outputs.** ``private_value``: bits of the terms on the rows, uint8
(n, t), whole or part by part, and labels int64 (n,), secret.  Out: ``Weights`` over
the public coordinates, public once whoever charged for it publishes it.

**Utility.** The mean of the last iterates errs by some (s / n) sqrt(T p) / (unit
WHOLE) in length, beside what T steps leave of the loss and the clipping of long rows.

**Deviations.** What a row adds is an integer vector: its coordinates and the residual
of its label are rounded on public grids before they are multiplied, and sums and
noise are exact, so that no rounding depends on the rows.  Noise is the discrete
Gaussian.  The whole data enter every step, so nothing is amplified by sampling.

**Raises.** ``InvariantError``: parameters whose sums would not be exact or whose noise
does not cover them, or rows that are not the public n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.accounting import noisy_gradient as accounting
from app.accounting.gradient_sensitivity import squared_sensitivity
from app.errors import invariant
from app.hypotheses.encoded_rows import parts
from app.hypotheses.integer_features import EXACT_BOUND, ROWS_PER_BLOCK
from app.hypotheses.integer_residuals import (
    SCORE_STEPS,
    WHOLE,
    residuals,
    score_count,
)
from app.noise.discrete_gaussian import DiscreteGaussian

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.accounting.noisy_gradient import NoisyGradientCalibration
    from app.hypotheses.encoded_rows import EncodedRows
    from app.hypotheses.integer_features import IntegerFeatures
    from app.noise.source import NoiseSource

# How finely iterates are written: a weight of 1.0 is so many steps.
WEIGHT_STEPS = 1 << 20
# No iterate is longer; a margin then stays an exact integer.
WEIGHT_MAX = 1 << 11
# Below what 64 bits hold.
INTEGER_BOUND = 1 << 62
BINARY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """How released sums become iterates; nothing here touches a row.

    Attributes:
        step_count: T.
        rate: step length, for sums as means over rows.
        decay: weight of half the squared length of an iterate, beside the loss.
        averaged_count: how many of the last iterates the result is the mean of.

    """

    step_count: int
    rate: float
    decay: float
    averaged_count: int

    def __post_init__(self) -> None:
        """Refuse what is no descent."""
        invariant(self.step_count >= 1, "there is a step")
        invariant(0 < self.rate < float("inf"), "a rate is positive")
        invariant(0 <= self.decay < float("inf"), "a decay is not negative")
        invariant(1 <= self.averaged_count <= self.step_count, "some iterates are averaged")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parameters:
    """Public parameters of one draw.

    Attributes:
        features: the public map from bits to integer vectors.
        class_count: number of labels, L.
        row_count: the public n.
        calibration: of the noise.
        descent: what becomes of the noisy sums.

    """

    features: IntegerFeatures
    class_count: int
    row_count: int
    calibration: NoisyGradientCalibration
    descent: Descent

    def __post_init__(self) -> None:
        """Check that the noise covers every step and that every sum is exact."""
        features = self.features
        invariant(self.class_count >= BINARY, "there are two or more classes")
        invariant(self.row_count >= 1, "there is at least one row")
        largest = features.norm_bound * WHOLE
        invariant(largest * ROWS_PER_BLOCK < EXACT_BOUND, "sums over a block of rows are exact")
        invariant(largest * self.row_count < INTEGER_BOUND, "sums over all rows are exact")
        margin = features.norm_bound * WEIGHT_MAX * WEIGHT_STEPS
        invariant(margin * SCORE_STEPS < EXACT_BOUND, "margins are exact")
        accounting.check(self.calibration)
        invariant(
            self.calibration.step_count == self.descent.step_count, "every step is accounted for"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What is released: weights of the coordinates.

    Attributes:
        values: real weights, shape ``(p, s)``, a mean of iterates.

    """

    values: NDArray[np.float64]


def draw(
    parameters: Parameters,
    private_value: tuple[EncodedRows, NDArray[np.int64]],
    noise: NoiseSource,
) -> Weights:
    """Descend T steps by noisy sums, and return the mean of the last iterates."""
    encoded, labels = private_value
    invariant(len(labels) == parameters.row_count, "the rows are the public n rows")
    invariant(len(encoded) == parameters.row_count, "every row has bits and a label")
    descent = parameters.descent
    rows = _private_vectors(parameters.features, encoded)
    width = (parameters.features.width, score_count(parameters.class_count))
    iterate, total = np.zeros(width), np.zeros(width)
    for step in range(descent.step_count):
        weights = whole_weights(iterate)
        private_sum = gradient_sum(parameters.features, rows, labels, weights)
        law = DiscreteGaussian(step_variance(parameters, weights))
        noisy_sum = [[int(each) + law.draw(noise) for each in row] for row in private_sum]
        iterate = _descended(parameters, iterate, np.array(noisy_sum, dtype=np.float64))
        if step >= descent.step_count - descent.averaged_count:
            total += iterate
    return Weights(total / descent.averaged_count)


def whole_weights(iterate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an iterate in whole steps, which is what rows meet, shape ``(p, s)``."""
    return np.rint(iterate * WEIGHT_STEPS)


def step_variance(parameters: Parameters, weights: NDArray[np.float64]) -> Fraction:
    """Return the variance of a step's noise, for all that one row can move at its iterate.

    Args:
        parameters: public.
        weights: of the iterate in whole steps, released already.

    """
    length = float(np.sqrt((weights * weights).sum())) * (1 + 2**-40)
    sensitivity = squared_sensitivity(
        norm_bound=parameters.features.norm_bound,
        class_count=parameters.class_count,
        steps=length * SCORE_STEPS / (parameters.features.unit * WEIGHT_STEPS),
    )
    return parameters.calibration.variance_ratio * sensitivity


def gradient_sum(
    features: IntegerFeatures,
    vectors: NDArray[np.int16],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return the sum over rows of vectors times residuals, exactly, shape ``(p, s)``.

    Args:
        features: the public map that gave the vectors.
        vectors: of the rows, shape ``(n, p)``; secret.
        labels: of the rows, shape ``(n,)``; secret.
        weights: of the iterate in whole steps, shape ``(p, s)``; their length stays
            below :data:`WEIGHT_MAX` times :data:`WEIGHT_STEPS`.

    """
    total = np.zeros(weights.shape, dtype=np.int64)
    for rows in _blocks(len(vectors)):
        block = vectors[rows].astype(np.float64)
        missed = residuals(_scores(features, block, weights), labels[rows])
        total += (block.T @ missed.astype(np.float64)).astype(np.int64)
    return total


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
        vectors[rows] = features.coordinates(encoded[rows].astype(np.uint8, copy=False))
    return vectors


def _descended(
    parameters: Parameters, iterate: NDArray[np.float64], noisy_sum: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the next iterate, a function of what is released already."""
    features, descent = parameters.features, parameters.descent
    gradient = noisy_sum / (parameters.row_count * features.unit * WHOLE)
    moved = iterate - descent.rate * (gradient + descent.decay * iterate)
    length = float(np.sqrt((moved * moved).sum()))
    return np.asarray(moved * min(1.0, WEIGHT_MAX / 2 / max(length, 1.0)))


def _blocks(row_count: int) -> Iterator[slice]:
    """Yield slices of rows whose vectors as doubles take some megabytes."""
    for start in range(0, row_count, ROWS_PER_BLOCK):
        yield slice(start, min(start + ROWS_PER_BLOCK, row_count))
