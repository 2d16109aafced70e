"""The table of planned mechanisms, under the names of :mod:`app.privacy.mechanisms`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from app.planning.mechanisms.noisy_vote_plan import PLANNED_NOISY_VOTE
from app.planning.mechanisms.paper_plan import PLANNED_PAPER
from app.planning.mechanisms.stability_plan import PLANNED_PROFILE, PLANNED_SVT
from app.privacy.mechanisms import row_of

if TYPE_CHECKING:
    from fractions import Fraction

    from app.planning.capacity import Capacity
    from app.planning.mechanisms.calibration_documents import Document
    from app.planning.mechanisms.planned_row import PlannedRow
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.forecast import Forecast, Weighed
    from app.planning.verdict import Verdict

PLANNED: dict[str, PlannedRow] = {
    planned.row.name: planned
    for planned in (PLANNED_PROFILE, PLANNED_SVT, PLANNED_PAPER, PLANNED_NOISY_VOTE)
}


def planned_row(calibration: object) -> PlannedRow:
    """Return the row of the mechanism that a calibration is for."""
    return PLANNED[row_of(calibration).name]


def capacity(calibration: Weighed, *, ensemble_size: int, agreement: Fraction) -> Capacity:
    """Return what queries of one agreement come to.

    Args:
        calibration: of the answers' budget.
        ensemble_size: k.
        agreement: share f, above a half and up to 1.

    """
    lead = max(0, 2 * math.floor(agreement * ensemble_size) - ensemble_size)
    return planned_row(calibration).capacity(calibration, agreement, lead)


def forecast_answers(
    calibration: Weighed, agreement: Agreement, *, ensemble_size: int, limit: int
) -> Forecast:
    """Return what a mechanism gives with k votes.

    Args:
        calibration: of the answers' budget.
        agreement: of learners on chunks of the size that k gives.
        ensemble_size: k.
        limit: m, fresh answers at most.

    """
    return planned_row(calibration).forecast(calibration, agreement, ensemble_size, limit)


def calibration_documents(verdict: Verdict) -> Document:
    """Describe the calibration that answers under its key; the others are null."""
    documents: Document = dict.fromkeys(each.key for each in PLANNED.values() if each.key)
    if verdict.calibration is not None:
        planned = planned_row(verdict.calibration)
        documents[planned.key] = planned.document(verdict)
    return documents
