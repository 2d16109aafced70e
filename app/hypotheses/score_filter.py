"""Iterates of a linear score from noisy mean gradients, by a filter of public precisions.

Nothing here touches a row: gradients come with noise, and all else is public.  At an
iterate w the loss is taken as quadratic, with curvature ``h V`` along each coordinate,
where V is the coordinate's public variance and h the mean slope of the logistic.  A
gradient g of noise s then says that the optimum is ``w - g / (h V)``, with precision
``(h V / s)^2``.  The filter's iterate is the mean of the prior's zero and of what all
gradients said, weighed by precision; what was said at early iterates, where the loss
looked otherwise, is discounted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.hypotheses.integer_residuals import BINARY, score_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOPE_MIN: Final = 0.05
SLOPE_MAX: Final = 0.25
# Points at which the slope's mean over a normal law of scores is taken.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
VARIANCE_MIN: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicDirections:
    """What is publicly known, or held likely, of the coordinates of rows.

    Attributes:
        variances: of the coordinates among people, shape ``(p,)``; the last, of the
            coordinate that all share, is its square.
        prior: precision with which each weight is held to be zero, shape ``(p,)``.
        discount: power with which early gradients lose weight, 0 for not at all.

    """

    variances: NDArray[np.float64]
    prior: NDArray[np.float64]
    discount: float

    def __post_init__(self) -> None:
        """Refuse what is no list of variances and precisions."""
        invariant(self.variances.shape == self.prior.shape, "every coordinate has a prior")
        invariant(bool((self.variances >= 0).all()), "a variance is not negative")
        invariant(bool((self.prior > 0).all()), "a precision is above zero")
        invariant(self.discount >= 0, "a discount is not negative")

    @property
    def width(self) -> int:
        """Number of coordinates, p."""
        return len(self.variances)


class ScoreFilter:
    """The state of a descent: an iterate, and how precisely it is known."""

    def __init__(self, directions: PublicDirections, *, class_count: int) -> None:
        """Start at zero, with the prior's precision."""
        shape = (directions.width, score_count(class_count))
        self._directions = directions
        self._class_count = class_count
        self._prior = np.broadcast_to(directions.prior[:, None], shape)
        self._precision = self._prior.copy()
        self._evidence = np.zeros(shape)
        self._step = 0
        self.weights = np.zeros(shape)

    def update(self, gradient: NDArray[np.float64], *, deviation: float) -> None:
        """Take in a noisy mean gradient at the present iterate.

        Args:
            gradient: shape ``(p, s)``, in units of a coordinate.
            deviation: of its noise, above 0.

        """
        curvature = np.maximum(self._slopes() * self._directions.variances[:, None], VARIANCE_MIN)
        precision = (curvature / deviation) ** 2
        kept = (self._step / (self._step + 1)) ** self._directions.discount
        said = precision * self.weights - curvature * gradient / deviation**2
        self._precision = self._prior + kept * (self._precision - self._prior) + precision
        self._evidence = kept * self._evidence + said
        self.weights = self._evidence / self._precision
        self._step += 1

    def shorten(self, length: float) -> None:
        """Cut the iterate to a length, which nothing but very much noise makes it have."""
        found = float(np.sqrt((self.weights**2).sum()))
        self.weights = self.weights * min(1.0, length / max(found, 1.0))

    def _slopes(self) -> NDArray[np.float64]:
        """Return the mean slope of the logistic for each score, as if scores were normal."""
        variances = self._directions.variances
        middle = self.weights[-1] * np.sqrt(variances[-1])
        spread = np.sqrt((self.weights[:-1] ** 2 * variances[:-1, None]).sum(axis=0))
        offset = 0.0 if self._class_count == BINARY else np.log(self._class_count - 1)
        scores = np.clip(middle - offset + _NODES[:, None] * spread, -500.0, 500.0)
        shares = 1 / (1 + np.exp(-scores))
        means = _NODE_WEIGHTS @ (shares * (1 - shares)) / _NODE_WEIGHTS.sum()
        return np.asarray(np.clip(means, SLOPE_MIN, SLOPE_MAX), dtype=np.float64)
