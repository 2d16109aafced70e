"""A hypothesis class given as a list: a draw weighs every hypothesis by its number of errors.

The weight of a hypothesis is ``exp(-epsilon errors / 2)`` and errors are
exact, whole or on the grid of the rows' weights, so hypotheses with the same number of errors
share one weight: a draw takes a number of errors by its weight times its hypotheses, then one
of them.

Sums of weights ``exp(-decay errors)`` over astronomically many trees, in doubles.

A sum is kept as an exact number of errors and a factor of about 1 or more,

    sum = factor * exp(-decay * errors),

so that no sum leaves the range of doubles, however many rows err, and products
and references are exact.  Only factors are rounded, and their relative error
does not grow with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log10
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError, invariant
from app.learning.encoding.encoded_rows import weighed_parts
from app.learning.lists.hypothesis_list import distinct_on
from app.noise.exact_choice import draw_repeated, truncation_variation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows, Tally
    from app.learning.lists.hypothesis_list import Encoded, HypothesisList
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
    """An array of sums ``factors * exp(-decay * errors)``, kept as factors and exponents.

    Attributes:
        errors: exact numbers, whole or on the grid of the rows' weights.
        factors: about 1 or more, of the same shape.

    """

    errors: NDArray[np.float64]
    factors: NDArray[np.float64]

    def __getitem__(self, index: int | NDArray[np.int64]) -> ScaledSums:
        """Select along the first axis."""
        return ScaledSums(np.asarray(self.errors[index]), np.asarray(self.factors[index]))

    def times(self, other: ScaledSums) -> ScaledSums:
        """Return the products of these sums and others, each with one rounding."""
        return ScaledSums(self.errors + other.errors, self.factors * other.factors)

    def total(self, decay: float, axis: int) -> ScaledSums:
        """Return the sums added over ``axis``; :func:`total_roundoffs` bounds the error."""
        least = self.errors.min(axis=axis, keepdims=True)
        terms = np.exp((least - self.errors) * decay)
        terms *= self.factors
        return ScaledSums(least.squeeze(axis), terms.sum(axis=axis))

    def relative_logs(self, decay: float) -> NDArray[np.float64]:
        """Return the sums' logs up to a constant; :func:`choice_roundoffs` bounds the error."""
        logs: NDArray[np.float64] = np.log(self.factors)
        logs += (self.errors.min() - self.errors) * decay
        return logs


def log_sum_exp(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the sum of weights over the first axis, if all are finite."""
    largest: NDArray[np.float64] = log_weights.max(axis=0)
    total: NDArray[np.float64] = np.exp(log_weights - largest).sum(axis=0)
    return largest + np.log(total)


def total_roundoffs(term_count: int) -> int:
    """Return a bound on the rounding error of :meth:`ScaledSums.total`, in roundoff units.

    A term takes exp of an exact whole number times decay: one rounding of an
    exponent of at most 746 in size, and that of exp, then one product.  N
    positive terms add with at most N - 1 roundings each.
    """
    return EXPONENT_MAX + FUNCTION_ROUNDOFFS + 1 + term_count


def choice_roundoffs(log_factor_max: float) -> int:
    """Return a bound on the rounding error of a draw by :meth:`ScaledSums.relative_logs`.

    A choice whose exponent is 746 below the least and more than a factor makes
    up for weighs nothing on the grid of a draw, whatever its digits.  Another's
    exponent is rounded three times, as a product, as a sum with the factor's
    log and where the draw subtracts the largest; log and exp have their own
    error.
    """
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
        hypotheses: a list that holds this one alone.
        index: its place in the class it was drawn from.

    """

    hypotheses: HypothesisList
    index: int

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the hypothesis's class index for every row, shape ``(n,)``."""
        labels: NDArray[np.int64] = self.hypotheses.predict(encoded)[0].astype(np.int64)
        return labels

    def to_dict(self) -> Mapping[str, object]:
        """Return the hypothesis's index and description, to be stored privately."""
        return {"index": self.index, "description": dict(self.hypotheses.describe(0))}


@dataclass(frozen=True, slots=True)
class EnumeratedClass:
    """A hypothesis class given as a list; a draw weighs each hypothesis by its errors.

    Attributes:
        hypotheses: the list.
        dimension: its VC dimension, or a public upper bound of it.

    """

    hypotheses: HypothesisList
    dimension: int

    def __post_init__(self) -> None:
        """Refuse a list that is empty or too long for exact weights."""
        invariant(len(self.hypotheses) >= 1, "a class has a hypothesis")
        refuse_size(len(self.hypotheses), "hypotheses")

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        return self.hypotheses.class_count

    @property
    def size(self) -> int:
        """The number of hypotheses in the class."""
        return len(self.hypotheses)

    @property
    def truncation_variation(self) -> Fraction:
        """A bound on the total variation distance that rounding causes in one draw."""
        return truncation_variation(self.size)

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the encoding that the listed hypotheses need."""
        return self.hypotheses.encode(values)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Return a bound (eta) on the rounding errors of hypotheses' log weights in one draw."""
        return log_weight_error(row_count, epsilon)

    def log_normaliser(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        row_weights: NDArray[np.float64] | None = None,
    ) -> float:
        """Return the log of the sum of all hypotheses' weights; secret."""
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
        """Return a hypothesis drawn with probability proportional to ``exp(-epsilon errors / 2)``.

        Args:
            encoded: private rows as :meth:`encode` returns them.
            labels: private class indices, shape ``(n,)``.
            epsilon: parameter of the weights.
            noise: where the draw comes from.
            row_weights: what each row counts for, shape ``(n,)``; None for 1 each.

        """
        return self._drawn(self._error_counts(encoded, labels, row_weights), epsilon, noise)

    def tally(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each hypothesis's number of errors on the rows, shape ``(N,)``."""
        return self.hypotheses.error_counts(encoded, labels)

    def draw_tallied(
        self, tally: Tally, epsilon: float, noise: NoiseSource
    ) -> EnumeratedHypothesis:
        """Draw a hypothesis as :meth:`draw` does, from each hypothesis's number of errors."""
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
        """Return the class reduced to one hypothesis for each labelling of the public points."""
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
    """Return a bound (eta) on the rounding errors of hypotheses' log weights in one draw.

    Numbers of errors, and of the hypotheses that have them, are exact and
    ``epsilon / 2`` is too.  With ``u = 2**-53`` and ``B = epsilon row_count / 2``,
    the product and the subtraction of the largest round by at most ``u B`` each
    and exp by 8 u; the sum is doubled for the second-order terms.

    Args:
        row_count: public number of rows.
        epsilon: at least the epsilon of the draw.

    """
    largest = 0.5 * epsilon * row_count
    return 2 * UNIT_ROUNDOFF * (2 * largest + FUNCTION_ROUNDOFFS)


def refuse_size(size: int, what: str, *, advice: str = FEWER_CUTS) -> None:
    """Refuse a class with more hypotheses than can be listed, by their public number.

    Args:
        size: how many there are, or a public bound of it.
        what: what they are, as in "rectangles over these cuts".
        advice: what to change.

    Raises:
        ConfigurationError: says the size and what to change.

    """
    if size > SIZE_MAX:
        digits = log10(size)
        shown = str(size) if digits < DIGITS_SHOWN else f"about 10^{digits:.0f}"
        problem = f"{what} number {shown}, and at most {SIZE_MAX} can be listed: {advice}"
        raise ConfigurationError("hypotheses", problem)


def refuse_labels(kind: str, class_count: int) -> None:
    """Refuse more than two labels for a class of two-label hypotheses.

    Raises:
        ConfigurationError: names the class and what to use instead.

    """
    if class_count != BINARY:
        problem = f"{kind} need two classes, not {class_count}: use trees"
        raise ConfigurationError("hypotheses.class", problem)


def _log_weights(errors: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return the log weights of ascending numbers of errors; the first is the largest."""
    return np.multiply(errors, -0.5 * epsilon)
