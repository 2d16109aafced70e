"""What planning is asked: public configuration values and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.errors import invariant

if TYPE_CHECKING:
    from fractions import Fraction

    from app.accounting.composition import Charge, Mechanism

Calibration = Literal["profile", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A release as configured.

    Attributes:
        calibration: which constants the answers use.
        row_count: n, which is public; None where it is not known yet.
        epsilon: of the whole release, above 0.
        delta: of the whole release, in (0, 1).
        charges: what each mechanism with a share is charged.
        query_count: m, fresh answers of the ensemble, at least 1.
        cutoff: T, unstable answers until the ensemble ends, at least 1.
        ensemble_size: k; None where it is left to :func:`ensemble_size_auto`.
        class_count: the number L of labels, at least 2.
        hypothesis_count: number of hypotheses that relabel and that learners search.
        classifier_hypothesis_count: number among which the classifier is drawn.
        universal: whether the classifier follows query m, so that m is m_o.
        alpha: accuracy target, in (0, 1).
        beta: failure probability, in (0, 1).

    """

    calibration: Calibration
    row_count: int | None
    epsilon: Fraction
    delta: Fraction
    charges: tuple[Charge, ...]
    query_count: int
    cutoff: int
    ensemble_size: int | None
    class_count: int
    hypothesis_count: int
    classifier_hypothesis_count: int
    universal: bool
    alpha: float
    beta: float

    def __post_init__(self) -> None:
        """Refuse what the settings never let through."""
        invariant(self.row_count is None or self.row_count >= 1, "n is at least one")
        invariant(self.ensemble_size is None or self.ensemble_size >= 1, "k is at least one")
        invariant(self.query_count >= 1 <= self.cutoff, "m and T are at least one")
        invariant(0 < self.alpha < 1 and 0 < self.beta < 1, "alpha and beta are probabilities")
        counts = (self.hypothesis_count, self.classifier_hypothesis_count)
        invariant(min(counts) >= 1, "a hypothesis class is not empty")

    def charge(self, mechanism: Mechanism) -> Charge | None:
        """Return what a mechanism is charged; None where it has no share."""
        return next((charge for charge in self.charges if charge.mechanism == mechanism), None)

    @property
    def dimension(self) -> int:
        """A bound on the VC dimension of the class that relabels."""
        return dimension_bound(self.hypothesis_count)

    @property
    def classifier_dimension(self) -> int:
        """A bound on the VC dimension of the classifier's class."""
        return dimension_bound(self.classifier_hypothesis_count)


def dimension_bound(hypothesis_count: int) -> int:
    """Bound a finite class's VC dimension: ``log2`` of its size, rounded down."""
    return max(1, hypothesis_count.bit_length() - 1)
