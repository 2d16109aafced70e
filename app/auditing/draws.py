"""Audit the draws of hypotheses that a configuration would make; no private row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.auditing.draw_bound import draw_bound, rows_wanted
from app.auditing.gradient_bound import gradient_bound
from app.auditing.outcome_events import ROUNDING, Bound
from app.data.schema import NumericFeature
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential.mechanism import Parameters
from app.release.classifier.learner_choice import is_linear
from app.release.classifier.linear import linear_draw
from app.release.terms.pipeline import release_budget
from app.release.terms.public_choices import charges_by_mechanism, public_class, published_class

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.learning.hypothesis import HypothesisClass
    from app.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class DrawReport:
    """What one draw shows, beside what it may cost.

    Attributes:
        mechanism: what it is drawn for.
        epsilon: what it may cost.
        delta: withheld for its integer weights, or all of it where noise is added.
        exact: the largest bound.

    """

    mechanism: str
    epsilon: float
    delta: float
    exact: Bound

    @property
    def holds(self) -> bool:
        """Whether the bound stays within the claim."""
        return self.exact.epsilon <= self.epsilon + ROUNDING


def audit_draws(settings: Settings) -> tuple[DrawReport, ...]:
    """Bound the epsilon of each draw from a class that public choices fix.

    A class of the rows' own labellings is fixed by no public choice, and is left out.
    """
    budget, charges = release_budget(settings), charges_by_mechanism(settings)
    reports = []
    if budget is not None and budget.relabel_epsilon and not budget.relabel_is_private:
        epsilon, delta = budget.relabel_epsilon, budget.relabel_delta
        reports.append(_report(settings, "relabelling", public_class(settings), epsilon, delta))
    charge = charges.get(Mechanism.CLASSIFIER)
    no_points = np.empty((0, len(settings.data.features)))
    if charge is not None and is_linear(settings, row_count=settings.data.rows):
        rows = settings.data.rows or 1
        parameters = linear_draw(settings, charge, no_points, row_count=rows).parameters
        claimed = (float(charge.epsilon), float(charge.delta))
        bound = gradient_bound(parameters, delta=claimed[1])
        reports.append(DrawReport("published classifier", *claimed, bound))
    elif charge is not None:
        published = published_class(settings, no_points)
        given = ("published classifier", published, charge.epsilon, charge.delta)
        reports.append(_report(settings, *given))
    return tuple(reports)


def _report(
    settings: Settings, name: str, hypotheses: HypothesisClass, epsilon: Fraction, delta: Fraction
) -> DrawReport:
    parameters = Parameters(
        epsilon=epsilon,
        delta_truncation=delta,
        row_count=rows_wanted(float(epsilon)),
        hypotheses=hypotheses,
    )
    bound = draw_bound(parameters, _point(settings))
    return DrawReport(name, float(epsilon), float(delta), bound)


def _point(settings: Settings) -> NDArray[np.float64]:
    """Return the middle of every feature's bounds, and the first of its categories."""
    return np.array(
        [
            (feature.lower + feature.upper) / 2 if isinstance(feature, NumericFeature) else 0.0
            for feature in settings.data.public_schema().features
        ]
    )
