"""The trial of a planned release: its expected answers on made-up records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.agreement import votes_by_cell
from app.planning.trial.prediction import Prediction, as_printed
from app.planning.trial.recommendation import recommend
from app.planning.trial.small_leaf_risk import find_cliff
from app.planning.trial.trial_size import agreement_of
from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from app.planning.plan import Plan
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.forecast import Forecast
    from app.planning.trial.trial_size import Trial


def predict(plan: Plan, trial: Trial) -> Prediction | None:
    """Return the result of trials of a planned release on made-up records.

    Args:
        plan: the plan of a release that relabels by a public class of rules, with a number of rows,
            a number of models and noise parameters.
        trial: the population and the learning method to try.

    Returns:
        The result; None if training the models takes too long, or a chunk has no row.

    """
    request, size = plan.request, plan.answers.ensemble_size
    calibration, rows = plan.answers.calibration, plan.answers.chunk_row_count
    rules = trial.rules(request)
    if size is None or not rows or calibration is None or rules is None:
        return None
    agreement = agreement_of(trial, rules, chunk_row_count=rows, ensemble_size=size)
    if agreement is None:
        return None
    limit = request.query_count
    own = forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
    return Prediction(
        own=own,
        by_mechanism=_by_mechanism(plan, agreement, own, size),
        cliff=None
        if votes_by_cell(trial.learner)
        else find_cliff(
            calibration,
            own,
            ensemble_size=size,
            chunk_row_count=trial.learner.chunk_rows(rows),
            limit=limit,
            tests=trial.tests,
        ),
        best=recommend(request, trial),
        hypothesis_count=len(agreement.leads),
        learner_count=agreement.learner_count,
        with_points=trial.population.points is not None,
    )


def _by_mechanism(
    plan: Plan, agreement: Agreement, own: Forecast, size: int
) -> dict[str, Forecast | None]:
    limit = plan.request.query_count
    found: dict[str, Forecast | None] = {
        name: forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
        for name, calibration in plan.calibrations.items()
    }
    for row in MECHANISMS.values():
        if row.is_printed:
            serves = plan.request.row is row
            found[row.name] = own if serves else as_printed(row, plan.request, agreement)
    return found
