"""The result of trials: how many answers a release gives, and settings that give more.

In a trial, made-up rules label made-up records, and models are trained on these records.
``docs/algorithms.md`` names the research papers whose constants the calibration ``paper`` uses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.planning.mechanisms.planning_table import forecast_answers

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.forecast import Forecast
    from app.planning.trial.recommendation import Choice
    from app.planning.trial.small_leaf_risk import Cliff
    from app.privacy.mechanism_registration import MechanismRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The results of the trials on made-up records.

    Attributes:
        own: the forecast of the release as configured.
        by_mechanism: the forecast of each answering mechanism at the same budget, by its name; None
            for a mechanism that needs more chunks than there are rows.
        cliff: the risk that models disagree on a tree leaf with few rows, so that few answers are
            stable; None if no leaf is a risk.
        best: the recommended settings; None if no other settings could be tried.
        hypothesis_count: the number of made-up labelling rules.
        learner_count: the number of models that were trained for each rule.
        with_points: whether the made-up people were public points, and not drawn by public
            frequencies.

    """

    own: Forecast
    by_mechanism: dict[str, Forecast | None]
    cliff: Cliff | None
    best: Choice | None
    hypothesis_count: int
    learner_count: int
    with_points: bool


def as_printed(
    row: MechanismRegistration, request: PlanRequest, agreement: Agreement
) -> Forecast | None:
    """Return a mechanism's forecast with the papers' constants; None if there are too few rows."""
    if request.row_count is None or row.own_size is None:
        return None
    asked = replace(request.asked, private_grid=False)
    try:
        size, budget = row.own_size(asked), row.budget(asked)
        if budget is None or budget.sampled_row_count(request.row_count) < size:
            return None
        share = {"epsilon": budget.answers_epsilon, "delta": budget.answers_delta}
        calibration = row.calibrate(asked, **share)
    except ConfigurationError:
        return None
    # Its chunks are smaller than those tried out, so that this is the most it could give.
    return forecast_answers(calibration, agreement, ensemble_size=size, limit=request.query_count)
