"""From settings to what planning is asked; no private row is read."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.planning.request import PlanRequest
from app.service.public_choices import (
    CALIBRATIONS_PLANNED,
    charges_by_mechanism,
    public_class,
    published_class,
    refuse_unknown,
)

if TYPE_CHECKING:
    from app.settings import Settings


def plan_request(settings: Settings, rows: int | None) -> PlanRequest:
    """Return what planning is asked; calibration ``paper`` can be planned, not served.

    Args:
        settings: the whole configuration.
        rows: n in place of ``data.rows``; None to take that.

    Raises:
        ConfigurationError: names a setting that this version does not know to plan.

    """
    refuse_unknown(settings, calibrations=CALIBRATIONS_PLANNED)
    answers = settings.answers
    no_points = np.empty((0, len(settings.data.features)))
    return PlanRequest(
        calibration="paper" if settings.privacy.calibration == "paper" else "profile",
        row_count=settings.data.rows if rows is None else rows,
        epsilon=Fraction(settings.privacy.epsilon),
        delta=Fraction(settings.privacy.delta),
        charges=tuple(charges_by_mechanism(settings).values()),
        query_count=answers.queries,
        cutoff=answers.cutoff,
        ensemble_size=answers.ensemble if isinstance(answers.ensemble, int) else None,
        class_count=len(settings.data.classes),
        hypothesis_count=public_class(settings).size,
        classifier_hypothesis_count=published_class(settings, no_points).size,
        universal=answers.after == "classifier",
        alpha=answers.alpha,
        beta=answers.beta,
    )
