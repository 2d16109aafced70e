"""A hypothesis class given as a list, and random draws from it by numbers of errors.

The weight of a hypothesis is ``exp(-epsilon * errors / 2)``, where ``errors`` is the exact number
of mislabelled rows or, if rows have weights, the exact sum of these rows' weights. Hypotheses with
the same number of errors have the same weight. Therefore a draw first selects a number of errors,
and then one of the hypotheses with this number.

The module also has sums of these weights over very many hypotheses, such as all decision trees of a
depth. With ``decay = epsilon / 2``, a sum is stored as two numbers, ``factor`` and ``errors``::

    sum = factor * exp(-decay * errors)

The number ``errors`` is exact, and the factor is at least about 1, so a sum never leaves the range
of floating-point numbers. Only factors are rounded, and their relative rounding error does not grow
with the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError, invariant
from app.learning.encoding.encoded_rows import weighed_parts
from app.learning.enumerated.hypothesis_list import distinct_on
from app.noise.exact_choice import draw_repeated, truncation_variation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.enumerated.hypothesis_list import Encoded, HypothesisList
    from app.noise.source import NoiseSource

UNIT_ROUNDOFF = 2.0**-53
# exp and log of numpy on float64 stay below one unit in the last place; four
# (eight roundoffs) are assumed, which any libm in use satisfies.
FUNCTION_ROUNDOFFS = 8
# exp of anything below -746 is less than half of the least double.
EXPONENT_MAX = 746
# The largest log of a factor.  A term that exp rounds to nothing, or to few
# digits, is then below 2**-70 of the sum it belongs to, and no sum overflows.
LOG_FACTOR_MAX = 690.0


@dataclass(frozen=True, slots=True)
class ScaledSums:
    """An array of positive sums ``factors * exp(-decay * errors)``, stored as factors and errors.

    Attributes:
        errors: exact numbers of errors, or exact sums of rows' weights.
        factors: numbers of about 1 or more, of the same shape as ``errors``.

    """

    errors: NDArray[np.float64]
    factors: NDArray[np.float64]

    def __getitem__(self, index: int | NDArray[np.int64]) -> ScaledSums:
        """Return the sums at an index of the first axis."""
        return ScaledSums(np.asarray(self.errors[index]), np.asarray(self.factors[index]))

    def times(self, other: ScaledSums) -> ScaledSums:
        """Return the products of these sums with others; each product is rounded once."""
        return ScaledSums(self.errors + other.errors, self.factors * other.factors)

    def total(self, decay: float, axis: int) -> ScaledSums:
        """Return the sums added over ``axis``; :func:`total_roundoffs` bounds the rounding error.

        Args:
            decay: half of epsilon.
            axis: the axis of the array.

        """
        least = self.errors.min(axis=axis, keepdims=True)
        terms = np.exp((least - self.errors) * decay)
        terms *= self.factors
        return ScaledSums(least.squeeze(axis), terms.sum(axis=axis))

    def relative_logs(self, decay: float) -> NDArray[np.float64]:
        """Return the logs of the sums up to a common constant.

        :func:`choice_roundoffs` bounds their rounding errors in a random draw.

        Args:
            decay: half of epsilon.

        """
        logs: NDArray[np.float64] = np.log(self.factors)
        logs += (self.errors.min() - self.errors) * decay
        return logs


def log_sum_exp(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the sum of ``exp(log_weights)`` over the first axis.

    All logs must be finite.
    """
    largest: NDArray[np.float64] = log_weights.max(axis=0)
    total: NDArray[np.float64] = np.exp(log_weights - largest).sum(axis=0)
    return largest + np.log(total)


def total_roundoffs(term_count: int) -> int:
    """Return a bound on the relative rounding error of :meth:`ScaledSums.total`.

    The bound is in units of ``2**-53``.

    Args:
        term_count: the number of terms that are added.

    """
    # Each term is a factor times exp of an exponent, and the exponent is an exact integer times
    # decay.  Three roundings make the error of a term: that of the exponent, which is at most 746
    # in size (below -746, exp is 0), that of exp, and that of the product with the factor.  The
    # sum of N positive terms is rounded at most N - 1 times.
    return EXPONENT_MAX + FUNCTION_ROUNDOFFS + 1 + term_count


def choice_roundoffs(log_factor_max: float) -> int:
    """Return a bound on the rounding error of a log weight in one random draw.

    The draw uses the logs that :meth:`ScaledSums.relative_logs` returns. The bound is in units of
    ``2**-53``.

    Args:
        log_factor_max: an upper bound on the log of the factor of any sum.

    """
    # A log weight is rounded three times: as a product, when the log of the factor is added, and
    # when the draw subtracts the largest one.  The functions log and exp have rounding errors of
    # their own.  A result whose weight rounds to 0 in the draw is never drawn, so only log weights
    # of at most 746 + log_factor_max in size count.
    exponent_max = EXPONENT_MAX + log_factor_max
    return ceil(3 * exponent_max + FUNCTION_ROUNDOFFS * (log_factor_max + 1))


SIZE_MAX = 1 << 20
BINARY = 2
# A larger size is shown by its order of magnitude.
DIGITS_SHOWN = 15
FEWER_CUTS = "lower bins, list fewer cuts, or leave a feature out by an empty list of its tests"


@dataclass(frozen=True, slots=True)
class EnumeratedHypothesis:
    """One hypothesis of a listed hypothesis class.

    Attributes:
        hypotheses: a list whose only element is this hypothesis.
        index: the index of the hypothesis in the class from which it was drawn.

    """

    hypotheses: HypothesisList
    index: int

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the hypothesis's class index for every encoded row, shape ``(rows,)``."""
        labels: NDArray[np.int64] = self.hypotheses.predict(encoded)[0].astype(np.int64)
        return labels

    def to_dict(self) -> Mapping[str, object]:
        """Return the index and the description of the hypothesis, for private storage."""
        return {"index": self.index, "description": dict(self.hypotheses.describe(0))}


@dataclass(frozen=True, slots=True)
class EnumeratedClass:
    """A hypothesis class given as a list, from which a hypothesis is drawn by its number of errors.

    Attributes:
        hypotheses: the list.
        dimension: the VC dimension of the class, or a public upper bound on it.

    """

    hypotheses: HypothesisList
    dimension: int

    def __post_init__(self) -> None:
        """Refuse a list that is empty or too long for exact draws."""
        invariant(len(self.hypotheses) >= 1, "a class has a hypothesis")
        refuse_size(len(self.hypotheses), "hypotheses")

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return self.hypotheses.class_count

    @property
    def size(self) -> int:
        """The number of hypotheses in the class."""
        return len(self.hypotheses)

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance by which rounded weights change a random draw."""
        return truncation_variation(self.size)

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the encoding that the listed hypotheses need."""
        return self.hypotheses.encode(values)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound on the rounding errors of the hypotheses' log weights in one random draw.

        With a bound ``eta``, a draw is ``(epsilon + 4 eta)``-DP up to a total variation distance of
        :attr:`truncation_variation`.

        Args:
            row_count: the public number of rows.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``, or an upper bound
                on it.

        """
        return log_weight_error(row_count, epsilon)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; the result is secret.

        Args:
            encoded: the private rows, encoded by :meth:`encode`.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        error_counts = self._error_counts(encoded, labels, row_weights)
        errors, counts = np.unique(error_counts, return_counts=True)
        log_weights = _log_weights(errors, epsilon)
        total = float((counts * np.exp(log_weights - log_weights[0])).sum())
        return float(log_weights[0] + np.log(total))

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
        row_weights: NDArray[np.float64] | None = None,
    ) -> EnumeratedHypothesis:
        """Return a hypothesis drawn with probability proportional to its weight.

        The weight is ``exp(-epsilon * errors / 2)``.

        Args:
            encoded: the private rows, encoded by :meth:`encode`.
            labels: private class indices, shape ``(rows,)``.
            epsilon: the parameter of the weights.
            noise: the source of randomness.
            row_weights: the weight of an error on each row, shape ``(rows,)``; None for 1 each.

        """
        return self._drawn(self._error_counts(encoded, labels, row_weights), epsilon, noise)

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each hypothesis's number of errors on the rows, shape ``(hypotheses,)``.

        Args:
            encoded: the private rows, encoded by :meth:`encode`.
            labels: private class indices, shape ``(rows,)``.

        """
        return self.hypotheses.error_counts(encoded, labels)

    def draw_tallied(
        self, tally: Tally, epsilon: float, noise: NoiseSource
    ) -> EnumeratedHypothesis:
        """Draw a hypothesis as :meth:`draw` does, from each hypothesis's number of errors.

        Args:
            tally: the numbers of errors that :meth:`tally` returns.
            epsilon: the parameter in the weights ``exp(-epsilon * errors / 2)``.
            noise: the source of randomness.

        """
        return self._drawn(tally.weighed, epsilon, noise)

    def _drawn(
        self, error_counts: NDArray[np.float64], epsilon: float, noise: NoiseSource
    ) -> EnumeratedHypothesis:
        """Draw by the errors of every hypothesis, shape ``(N,)``."""
        errors, counts = np.unique(error_counts, return_counts=True)
        level, place = draw_repeated(_log_weights(errors, epsilon), counts.tolist(), noise)
        index = int(np.flatnonzero(error_counts == errors[level])[place])
        return EnumeratedHypothesis(self.hypotheses.take(np.array([index])), index)

    def restricted_to(self, public_points: Encoded) -> EnumeratedClass:
        """Return the class with one hypothesis for each labelling of public points."""
        if not len(public_points):
            return self
        kept = self.hypotheses.take(distinct_on(self.hypotheses, public_points))
        return EnumeratedClass(kept, min(self.dimension, len(kept).bit_length() - 1))

    def _error_counts(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        row_weights: NDArray[np.float64] | None,
    ) -> NDArray[np.float64]:
        """Add the errors of every hypothesis over all parts of the rows, exactly."""
        errors = np.zeros(len(self.hypotheses))
        for weight, rows, row_labels in weighed_parts(encoded, labels, row_weights):
            errors += weight * self.hypotheses.error_counts(rows, row_labels)
        return errors


def log_weight_error(row_count: int, epsilon: float) -> float:
    """Return a bound on the rounding errors of the hypotheses' log weights in one random draw.

    The weight of a hypothesis is ``exp(-epsilon * errors / 2)``, where ``errors`` is its number of
    errors.

    Args:
        row_count: the public number of rows.
        epsilon: the parameter of the weights, or an upper bound on it.

    """
    # The numbers of errors, the number of hypotheses with each number of errors, and epsilon / 2
    # are exact.  With u = 2**-53 and B = epsilon * row_count / 2, the product of epsilon / 2 and
    # errors, and the subtraction of the largest log weight, have a rounding error of at most u * B
    # each, and exp has one of at most 8 * u.  Doubling the sum covers second-order terms.
    largest = 0.5 * epsilon * row_count
    return 2 * UNIT_ROUNDOFF * (2 * largest + FUNCTION_ROUNDOFFS)


def refuse_size(size: int, what: str, *, advice: str = FEWER_CUTS) -> None:
    """Refuse a class with more hypotheses than can be listed.

    Args:
        size: the number of hypotheses, or a public upper bound on it.
        what: a noun for the hypotheses in the error message, for example "rectangles over these
            cuts (thresholds)".
        advice: the change of the configuration that the error message proposes.

    Raises:
        ConfigurationError: there are too many hypotheses; the message says the number and the
            advice.

    """
    if size > SIZE_MAX:
        digits = log10(size)
        shown = str(size) if digits < DIGITS_SHOWN else f"about 10^{digits:.0f}"
        problem = f"{what} number {shown}, and at most {SIZE_MAX} can be listed: {advice}"
        raise ConfigurationError("hypotheses", problem)


def refuse_labels(kind: str, class_count: int) -> None:
    """Refuse more than two labels for a class of two-label hypotheses.

    Raises:
        ConfigurationError: the number of labels is not two; the message names the class, and
            another class to use.

    """
    if class_count != BINARY:
        problem = f"{kind} need two classes, not {class_count}: use trees"
        raise ConfigurationError("hypotheses.class", problem)


def _log_weights(errors: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return the log weights of ascending numbers of errors; the first is the largest."""
    return np.multiply(errors, -0.5 * epsilon)
