"""Planning of noisy votes: whether the winning label's lead in votes exceeds the noise.

The module also writes the noise as a JSON document, with the lead in votes at which a label wins
despite the noise.

A noisy vote gives every query a label, which the noise may change, so no answer is unstable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.planning.capacity import capacity_of_votes
from app.planning.mechanisms.planning_registration import (
    SHOWN_PROBABILITIES,
    Document,
    PlanningRegistration,
)
from app.planning.mechanisms.release_sizes import (
    chunk_rows_wanted,
    fed_size,
    resolve_ensemble_size,
    rows_for,
    starved_reasons,
)
from app.planning.plan_result import NoisyLead, Verdict
from app.planning.trial.forecast import forecast_of_votes, labels_beside_leaves
from app.privacy.budget.ensemble_size import AGREEMENT_FACTOR, HIT_PROBABILITY_MAX
from app.privacy.mechanism_registration import own
from app.privacy.noisy_vote.answering_registration import (
    NOISY_BIT,
    NOISY_BIT_OF_CELLS,
    NOISY_VOTE,
    NOISY_VOTE_OF_CELLS,
    quick_bit,
    quick_bit_of_cells,
)
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration, voted
from app.privacy.noisy_vote.vote_table import VoteTable

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.privacy.budget.sampled_budget import PipelineBudget

FEWER_QUERIES: Final = "or lower answers.queries, with whose square root the noise grows"
FEWER_VOTES_OF_CELLS: Final = "a noisy vote of the cells would need fewer votes: k = {size}"
FEWER_VOTES: Final = "with so few queries a noisy vote would need fewer votes: k = {size}"


def plan_noisy_vote(request: PlanRequest, budget: PipelineBudget) -> Verdict:
    """Return the number of models, the noise, and whether a unanimous label wins despite it.

    A release is infeasible if it has more chunks than rows, or if even a label that gets all votes
    would lose to the noise more than once in a hundred queries.

    Raises:
        ConfigurationError: no noise suffices for the budget.

    """
    calibration = request.row.calibrate(
        request.asked, epsilon=budget.answers_epsilon, delta=budget.answers_delta
    )
    size = resolve_ensemble_size(request, calibration)
    lead = voted(calibration).lead_at(HIT_PROBABILITY_MAX)
    reasons = starved_reasons(request, size) + _drowned_reasons(lead, size)
    sampled = request.sampled_row_count
    needed = request.ensemble_size or lead * chunk_rows_wanted(request)
    return Verdict(
        calibration=calibration,
        reasons=reasons,
        advice=_advice(request, lead) if reasons else (),
        notes=_notes(lead, size),
        ensemble_size=size,
        chunk_row_count=None if sampled is None else sampled // size,
        rows_needed=rows_for(request, needed),
        noisy_lead=NoisyLead(
            calibration=voted(calibration),
            wanted_probability=HIT_PROBABILITY_MAX,
            wanted_lead=lead,
            wanted_agreement=(size + lead) / (2 * size),
        ),
    )


def _drowned_reasons(lead: int, size: int) -> tuple[str, ...]:
    if size >= lead:
        return ()
    reason = (
        f"even if all k = {size} votes agree, their label loses to the noise more than once in"
        f" a hundred queries: that takes a lead of {lead} votes"
    )
    return (reason,)


def _advice(request: PlanRequest, lead: int) -> tuple[str, ...]:
    fed = fed_size(request)
    if fed is None:
        return (f"set answers.ensemble to {lead} or more, or leave it to auto",)
    if fed >= lead:
        return (f"set answers.ensemble to {lead} up to {fed}, or leave it to auto",)
    needed = rows_for(request, lead * chunk_rows_wanted(request))
    return (
        f"have n = {needed} {request.unit}s or more: at this budget k = {lead} votes are the least",
        *((FEWER_QUERIES,) if not request.counts_decisions else ()),
    )


def _notes(lead: int, size: int) -> tuple[str, ...]:
    if not lead <= size < AGREEMENT_FACTOR * lead:
        return ()
    note = (
        f"queries on which {(size + lead) / (2 * size):.0%} of the votes agree are safe;"
        f" k = {AGREEMENT_FACTOR * lead} would do for two thirds"
    )
    return (note,)


def noise_document(verdict: Verdict) -> Document:
    """Return the noise of a noisy vote as a JSON document."""
    served = own(verdict.calibration, NoisyVoteCalibration)
    order = None if served.alpha is None else float(served.alpha)
    return {"alpha": order, "variance": float(served.variance), **_lead_document(verdict)}


def bit_document(verdict: Verdict) -> Document:
    """Return the noise of a two-label vote as a JSON document."""
    served = own(verdict.calibration, VoteTable)
    return {"alpha": float(served.alpha), "variance": None, **_lead_document(verdict)}


def _lead_document(verdict: Verdict) -> Document:
    lead = own(verdict.noisy_lead, NoisyLead)
    return {
        "lead_needed": lead.wanted_lead,
        "lead_loses": lead.wanted_probability,
        "agreement_needed": lead.wanted_agreement,
        "lead_at": {
            probability: lead.calibration.lead_at(float(probability))
            for probability in SHOWN_PROBABILITIES
        },
    }


PLANNED_NOISY_VOTE: Final = PlanningRegistration(
    row=NOISY_VOTE,
    plan=plan_noisy_vote,
    key="noisy_vote",
    document=noise_document,
    capacity=capacity_of_votes,
    forecast=forecast_of_votes,
    beside_leaves=labels_beside_leaves,
    variants={NOISY_VOTE.shown: NOISY_VOTE.calibrate},
    quick=NOISY_VOTE.calibrate,
    takes_cutoff=False,
    fewer_votes=FEWER_VOTES,
)
PLANNED_NOISY_BIT: Final = PlanningRegistration(
    row=NOISY_BIT,
    plan=plan_noisy_vote,
    key="noisy_vote",
    document=bit_document,
    capacity=capacity_of_votes,
    forecast=forecast_of_votes,
    beside_leaves=labels_beside_leaves,
    variants={NOISY_BIT.shown: quick_bit},
    quick=quick_bit,
    takes_cutoff=False,
    fewer_votes=FEWER_VOTES,
)
PLANNED_NOISY_VOTE_OF_CELLS: Final = replace(
    PLANNED_NOISY_VOTE,
    row=NOISY_VOTE_OF_CELLS,
    variants={NOISY_VOTE_OF_CELLS.shown: NOISY_VOTE_OF_CELLS.calibrate},
    quick=NOISY_VOTE_OF_CELLS.calibrate,
    fewer_votes=FEWER_VOTES_OF_CELLS,
)
PLANNED_NOISY_BIT_OF_CELLS: Final = replace(
    PLANNED_NOISY_BIT,
    row=NOISY_BIT_OF_CELLS,
    variants={NOISY_BIT_OF_CELLS.shown: quick_bit_of_cells},
    quick=quick_bit_of_cells,
    fewer_votes=FEWER_VOTES_OF_CELLS,
)
