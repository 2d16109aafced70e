"""A class that is small enough to list: exact weights from every error count.

The weight of a hypothesis is ``exp(-epsilon errors / 2)`` and errors are
integers, so hypotheses with the same number of errors share one weight: a draw
takes a number of errors by its weight times its hypotheses, then one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from typing import TYPE_CHECKING

import numpy as np

from app.errors import ConfigurationError, invariant
from app.learning.encoding.encoded_rows import parts
from app.learning.lists.hypothesis_list import distinct_on
from app.learning.lists.scaled_sums import FUNCTION_ROUNDOFFS, UNIT_ROUNDOFF
from app.noise.choice import draw_repeated, truncation_variation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.lists.hypothesis_list import Encoded, HypothesisList
    from app.noise.source import NoiseSource

SIZE_MAX = 1 << 20
BINARY = 2
# A larger size is shown by its order of magnitude.
DIGITS_SHOWN = 15
FEWER_CUTS = "lower bins, list fewer cuts, or leave a feature out by an empty list of its tests"


@dataclass(frozen=True, slots=True)
class EnumeratedHypothesis:
    """One hypothesis of a list.

    Attributes:
        hypotheses: a list that holds this one alone.
        index: its place in the class it was drawn from.

    """

    hypotheses: HypothesisList
    index: int

    def predict(self, encoded: Encoded) -> NDArray[np.int64]:
        """Return the class index of every row, shape ``(n,)``."""
        labels: NDArray[np.int64] = self.hypotheses.predict(encoded)[0].astype(np.int64)
        return labels

    def to_dict(self) -> Mapping[str, object]:
        """Return its index and description, for private state."""
        return {"index": self.index, "description": dict(self.hypotheses.describe(0))}


@dataclass(frozen=True, slots=True)
class EnumeratedClass:
    """Every hypothesis of a list, each weighed by its errors.

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
        """Number of labels, L."""
        return self.hypotheses.class_count

    @property
    def size(self) -> int:
        """Number of hypotheses."""
        return len(self.hypotheses)

    @property
    def truncation_variation(self) -> Fraction:
        """One draw among all hypotheses."""
        return truncation_variation(self.size)

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows as the list reads them."""
        return self.hypotheses.encode(values)

    def log_weight_error(self, row_count: int, epsilon: float) -> float:
        """Bound eta for one draw, whatever the size of the list."""
        return log_weight_error(row_count, epsilon)

    def log_normaliser(
        self, encoded: EncodedRows, labels: NDArray[np.int64], epsilon: float
    ) -> float:
        """Return the log of the sum of all weights.  Secret."""
        errors, counts = np.unique(self._error_counts(encoded, labels), return_counts=True)
        log_weights = _log_weights(errors, epsilon)
        total = float((counts * np.exp(log_weights - log_weights[0])).sum())
        return float(log_weights[0] + np.log(total))

    def draw(
        self,
        encoded: EncodedRows,
        labels: NDArray[np.int64],
        epsilon: float,
        noise: NoiseSource,
    ) -> EnumeratedHypothesis:
        """Draw a hypothesis with probability proportional to ``exp(-epsilon errors / 2)``.

        Args:
            encoded: private rows as :meth:`encode` returns them.
            labels: private class indices, shape ``(n,)``.
            epsilon: parameter of the weights.
            noise: where the draw comes from.

        """
        error_counts = self._error_counts(encoded, labels)
        errors, counts = np.unique(error_counts, return_counts=True)
        level, place = draw_repeated(_log_weights(errors, epsilon), counts.tolist(), noise)
        index = int(np.flatnonzero(error_counts == errors[level])[place])
        return EnumeratedHypothesis(self.hypotheses.take(np.array([index])), index)

    def restricted_to(self, public_points: Encoded) -> EnumeratedClass:
        """Return one hypothesis for every dichotomy of the public points, the first of each."""
        if not len(public_points):
            return self
        kept = self.hypotheses.take(distinct_on(self.hypotheses, public_points))
        return EnumeratedClass(kept, min(self.dimension, len(kept).bit_length() - 1))

    def _error_counts(self, encoded: EncodedRows, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add the errors of every hypothesis over all parts of the rows."""
        errors = np.zeros(len(self.hypotheses), dtype=np.int64)
        for rows in parts(len(labels)):
            errors += self.hypotheses.error_counts(encoded[rows], labels[rows])
        return errors


def log_weight_error(row_count: int, epsilon: float) -> float:
    """Bound eta for one draw from any list of hypotheses.

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
    """Refuse more hypotheses than can be listed, by their public number.

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
    """Refuse more than two labels for a class that has two sides.

    Raises:
        ConfigurationError: names the class and what to use instead.

    """
    if class_count != BINARY:
        problem = f"{kind} need two classes, not {class_count}: use trees"
        raise ConfigurationError("hypotheses.class", problem)


def _log_weights(errors: NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """Return the log weights of ascending numbers of errors; the first is the largest."""
    return np.multiply(errors.astype(np.float64), -0.5 * epsilon)
