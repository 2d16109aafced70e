"""What a release is expected to give, mechanism by mechanism, and what would give more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.planning.trial.forecast import forecast_answers
from app.privacy.budget.composition import Mechanism
from app.privacy.paper.paper_pipeline import paper_budget, paper_calibration, printed

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.cliff import Cliff
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
