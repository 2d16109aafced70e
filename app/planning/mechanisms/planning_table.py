"""The planning functions of every answering mechanism, looked up by the mechanism's name.

The module also finds the mechanism that would need the fewest votes at a release's budget.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from app.errors import ConfigurationError
from app.planning.mechanisms.noisy_vote_plan import (
    PLANNED_NOISY_BIT,
    PLANNED_NOISY_BIT_OF_CELLS,
    PLANNED_NOISY_VOTE,
    PLANNED_NOISY_VOTE_OF_CELLS,
)
from app.planning.mechanisms.paper_plan import PLANNED_PAPER
from app.planning.mechanisms.stability_plan import (
    PLANNED_CERTIFIED,
    PLANNED_PROFILE,
    PLANNED_PROFILE_OF_CELLS,
    PLANNED_SVT,
)
from app.privacy.mechanisms import row_of, size_wanted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from app.planning.capacity import Capacity
    from app.planning.mechanisms.planning_registration import Document, PlanningRegistration
    from app.planning.plan_result import Verdict
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.forecast import Forecast, Weighed
    from app.privacy.mechanism_registration import Calibration

PLANNED: dict[str, PlanningRegistration] = {
    planned.row.name: planned
    for planned in (
        PLANNED_PROFILE,
        PLANNED_SVT,
        PLANNED_PAPER,
        PLANNED_CERTIFIED,
        PLANNED_NOISY_VOTE,
        PLANNED_NOISY_BIT,
        PLANNED_PROFILE_OF_CELLS,
        PLANNED_NOISY_VOTE_OF_CELLS,
        PLANNED_NOISY_BIT_OF_CELLS,
    )
}


def planned_row(calibration: object) -> PlanningRegistration:
    """Return the planning functions of the mechanism to which these noise parameters belong."""
    return PLANNED[row_of(calibration).name]


def capacity(calibration: Weighed, *, ensemble_size: int, agreement: Fraction) -> Capacity:
    """Return the number of answers to queries on which a given fraction of models agrees.

    Args:
        calibration: the noise parameters for the budget of the answers.
        ensemble_size: the number k of models.
        agreement: the fraction f of agreeing models, above 1/2 and at most 1.

    """
    lead = max(0, 2 * math.floor(agreement * ensemble_size) - ensemble_size)
    return planned_row(calibration).capacity(calibration, agreement, lead)


def forecast_answers(
    calibration: Weighed, agreement: Agreement, *, ensemble_size: int, limit: int
) -> Forecast:
    """Return the forecast number of answers of a mechanism with k votes.

    Args:
        calibration: the noise parameters for the budget of the answers.
        agreement: the measured agreement of models trained on chunks of the size that k gives.
        ensemble_size: the number k of models.
        limit: the largest number m of new answers.

    """
    return planned_row(calibration).forecast(calibration, agreement, ensemble_size, limit)


def calibration_documents(verdict: Verdict) -> Document:
    """Return noise parameters as JSON, by mechanism; null for all but the planned mechanism."""
    documents: Document = dict.fromkeys(each.key for each in PLANNED.values() if each.key)
    if verdict.calibration is not None:
        planned = planned_row(verdict.calibration)
        documents[planned.key] = planned.document(verdict)
    return documents


def calibrations(
    request: PlanRequest, epsilon: Fraction, delta: Fraction, *, known: Calibration | None
) -> dict[str, Weighed]:
    """Return the noise parameters of each mechanism for the same budget.

    Args:
        request: the planned release, with the number m of answers, the cutoff T and the number of
            labels.
        epsilon: the epsilon of the answers; it includes randomly drawn rules, for relabelling or as
            the classifier, if they have one joint budget with the answers.
        delta: the delta of the same budget.
        known: noise parameters that are already computed for this budget, or None.

    Returns:
        The noise parameters of each mechanism, by its name in a plan. The sparse vector technique
        has two entries: for a threshold that is drawn once, and for one that is drawn again after
        each unstable answer. A mechanism for which no parameters fit the budget is left out.

    """
    found: dict[str, Weighed] = {}
    for planned in PLANNED.values():
        most = planned.cutoff_compared_max
        if not planned.is_compared_by(request) or (most is not None and request.cutoff > most):
            continue
        for name, calibrate in planned.variants.items():
            if (
                name == planned.row.shown
                and known is not None
                and type(known) is planned.row.calibrations[0]
            ):
                found[name] = known
                continue
            asked, own = request.asked_of(planned.row, epsilon)
            with suppress(ConfigurationError):
                found[name] = calibrate(asked, epsilon=own, delta=delta)
    return found


def votes_needed(request: PlanRequest, found: Mapping[str, Weighed]) -> dict[str, int]:
    """Return how many votes each mechanism needs to give a label if two thirds of them agree.

    Args:
        request: the planned release.
        found: the noise parameters of each mechanism, by name.

    """
    return {
        name: size_wanted(table=calibration, query_count=request.query_count)
        for name, calibration in found.items()
    }


def best_mechanism(needed: dict[str, int]) -> str | None:
    """Return the name of the mechanism that needs the fewest votes; None for no mechanisms.

    Args:
        needed: the number of votes that each mechanism needs to give a label, by its name.

    """
    if not needed:
        return None
    return min(needed, key=lambda name: needed[name]).split(" ", maxsplit=1)[0]
