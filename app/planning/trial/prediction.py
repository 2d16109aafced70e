"""What a release is expected to give, mechanism by mechanism, and what would give more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.planning.mechanisms.comparison import serving_name
from app.planning.trial.agreement import try_out, votes_by_cell
from app.planning.trial.cliff import find_cliff
from app.planning.trial.effort import extent_of
from app.planning.trial.forecast import forecast_answers
from app.planning.trial.recommendation import recommend
from app.privacy.budget.composition import Mechanism
from app.privacy.paper.paper_pipeline import paper_budget, paper_calibration, printed

if TYPE_CHECKING:
    from app.planning.plan import Plan
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.cliff import Cliff
    from app.planning.trial.effort import Trial
    from app.planning.trial.forecast import Forecast, Weighed
    from app.planning.trial.recommendation import Choice

PAPER: Final = "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What was found by trying out.

    Attributes:
        own: of the release as configured.
        by_mechanism: of each mechanism at its budget with its k and T; for ``paper``
            with the printed ones.  None where a mechanism has more chunks than rows.
        cliff: where the risk lies; None where no leaf is a risk.
        best: what is recommended; None where nothing else could be tried.
        hypothesis_count: made-up hypotheses.
        learner_count: learners fitted for each.
        with_points: whether people were public points, and not drawn by public shares.

    """

    own: Forecast
    by_mechanism: dict[str, Forecast | None]
    cliff: Cliff | None
    best: Choice | None
    hypothesis_count: int
    learner_count: int
    with_points: bool


def predict(plan: Plan, trial: Trial) -> Prediction | None:
    """Try a planned release out on made-up people.

    Args:
        plan: with n, k and a calibration of the answers, relabelled by a public class.
        trial: whom and what to try.

    Returns:
        None where the learner takes too long to be tried, or a chunk has no row.

    """
    request, size = plan.request, plan.answers.ensemble_size
    calibration, rows = plan.answers.calibration, plan.answers.chunk_row_count
    rules = trial.rules(request)
    if size is None or not rows or calibration is None or rules is None:
        return None
    extent = extent_of(trial, chunk_row_count=rows)
    if extent is None:
        return None
    agreement = try_out(
        rules,
        trial.learner,
        chunk_row_count=rows,
        learner_count=min(size, extent.learner_count),
        hypothesis_count=extent.hypothesis_count,
    )
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
            chunk_row_count=rows,
            limit=limit,
            tests=trial.tests,
        ),
        best=recommend(request, trial),
        hypothesis_count=extent.hypothesis_count,
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
    serving = serving_name(plan.request)
    found[PAPER] = own if serving == PAPER else _as_printed(plan.request, agreement)
    return found


def _as_printed(request: PlanRequest, agreement: Agreement) -> Forecast | None:
    """Return what the papers' own parameters give; None where rows do not feed their chunks."""
    relabel, answers = request.charge(Mechanism.RELABEL), request.charge(Mechanism.ANSWERS)
    if answers is None or request.row_count is None:
        return None
    try:
        found = printed(
            request.targets,
            relabel=relabel,
            answers=answers,
            row_count=request.row_count,
            dimension=request.dimension,
        )
        calibration: Weighed = paper_calibration(request.targets, relabel=relabel, answers=answers)
        budget = paper_budget(
            request.targets,
            relabel=relabel,
            answers=answers,
            private_grid=False,
            class_count=request.class_count,
        )
    except ConfigurationError:
        return None
    if budget is None or budget.sampled_row_count(request.row_count) < found.ensemble_size:
        return None
    # Its chunks are smaller than those tried out, so that this is the most it could give.
    return forecast_answers(
        calibration,
        agreement,
        ensemble_size=found.ensemble_size,
        limit=request.query_count,
    )
