"""What a release would be: every parameter, whether it can work, what to change.

Nothing private is read: a plan is a function of :class:`PlanRequest`, hence of the
configuration and of the public number of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.accounting.composition import Mechanism
from app.accounting.paper import public_query_count
from app.planning.paper_plan import plan_paper
from app.planning.profile_plan import plan_profile
from app.planning.sample_size import excess_error
from app.planning.verdict import Verdict

if TYPE_CHECKING:
    from app.accounting.paper import PaperParameters
    from app.planning.profile_plan import Stability
    from app.planning.request import PlanRequest

# Section 6 of the privacy design: with fewer queries than this a noisy vote on every
# query needs fewer votes than a stability test does.
NOISY_VOTE_QUERIES: Final = 130
NOISY_VOTE_QUERIES_A_HIT: Final = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A release's parameters and whether it can work.

    Attributes:
        request: what was asked.
        feasible: whether it can work at the n given, where one is given.
        reasons: why it cannot, in plain sentences.
        advice: what to change then.
        notes: what else to know.
        cutoff: T of the answers; None where answers have no share.
        ensemble_size: k; None where answers have no share.
        sampled_row_count: n', rows that reach the ensemble; None where n is unknown
            or answers have no share.
        chunk_row_count: rows of the smallest chunk; None where n' is.
        rows_needed: smallest n for a release like this; None where any will do.
        stability: the table of calibration profile and what it means for k votes.
        paper: the parameters of calibration paper.
        public_query_count: m_o that NB Algorithm 4 asks for, to weigh m against.
        excess_errors: bound on the excess error rate of each drawn hypothesis, by
            mechanism, at failure probability beta; empty where n is unknown.
        best_mechanism: ``stability`` or ``noisy-vote``, by rule of thumb.

    """

    request: PlanRequest
    feasible: bool
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    notes: tuple[str, ...]
    cutoff: int | None
    ensemble_size: int | None
    sampled_row_count: int | None
    chunk_row_count: int | None
    rows_needed: int | None
    stability: Stability | None
    paper: PaperParameters | None
    public_query_count: int
    excess_errors: dict[Mechanism, float]
    best_mechanism: str


def plan_release(request: PlanRequest) -> Plan:
    """Work out what a configuration gives.

    Args:
        request: public configuration values.

    Raises:
        ConfigurationError: where the calibration refuses the budget.

    """
    answers = _plan_answers(request)
    excess_errors = _excess_errors(request)
    public_queries = math.ceil(
        public_query_count(
            alpha=request.alpha, beta=request.beta, dimension=request.classifier_dimension
        )
    )
    return Plan(
        request=request,
        feasible=not answers.reasons,
        reasons=answers.reasons,
        advice=answers.advice,
        notes=answers.notes + _general_notes(request, excess_errors, public_queries),
        cutoff=answers.cutoff,
        ensemble_size=answers.ensemble_size,
        sampled_row_count=answers.sampled_row_count,
        chunk_row_count=answers.chunk_row_count,
        rows_needed=answers.rows_needed,
        stability=answers.stability,
        paper=answers.paper,
        public_query_count=public_queries,
        excess_errors=excess_errors,
        best_mechanism=best_mechanism(query_count=request.query_count, cutoff=request.cutoff),
    )


def best_mechanism(*, query_count: int, cutoff: int) -> str:
    """Name the answering mechanism that needs fewer votes, by rule of thumb."""
    even = NOISY_VOTE_QUERIES + NOISY_VOTE_QUERIES_A_HIT * cutoff
    return "noisy-vote" if query_count < even else "stability"


def _plan_answers(request: PlanRequest) -> Verdict:
    answers = request.charge(Mechanism.ANSWERS)
    if answers is None:
        note = "answers have no share: the release starts with what follows them"
        return Verdict(notes=(note,))
    if request.calibration == "paper":
        return plan_paper(request, answers)
    return plan_profile(request, answers)


def _excess_errors(request: PlanRequest) -> dict[Mechanism, float]:
    """Bound ``2 (ln|H| + ln(1/beta)) / (n epsilon)`` for what is drawn from a class."""
    if request.row_count is None:
        return {}
    counts = {Mechanism.CLASSIFIER: request.classifier_hypothesis_count}
    if request.calibration != "paper":  # there relabelling runs on a sample, at epsilon 1
        counts[Mechanism.RELABEL] = request.hypothesis_count
    return {
        charge.mechanism: excess_error(
            hypothesis_count=counts[charge.mechanism],
            beta=request.beta,
            row_count=request.row_count,
            epsilon=float(charge.epsilon),
        )
        for charge in request.charges
        if charge.mechanism in counts
    }


def _general_notes(
    request: PlanRequest, excess_errors: dict[Mechanism, float], public_queries: int
) -> tuple[str, ...]:
    notes = [
        f"the {mechanism} draw may cost up to {excess:.3g} in error rate, above alpha ="
        f" {request.alpha:g}: more rows, a larger share or fewer tests make it safer"
        for mechanism, excess in excess_errors.items()
        if excess > request.alpha
    ]
    if request.universal and request.query_count < public_queries:
        notes.append(
            f"the published classifier's guarantee asks for m_o = {public_queries} queries"
            f" at alpha = {request.alpha:g} and a VC dimension of up to"
            f" {request.classifier_dimension}; it will be drawn after {request.query_count}"
        )
    if best_mechanism(query_count=request.query_count, cutoff=request.cutoff) == "noisy-vote":
        notes.append("with so few queries a noisy vote would need fewer votes than stability")
    return tuple(notes)
