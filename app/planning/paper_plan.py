"""Planning the answers of calibration ``paper``: on ordinary data, by how much not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.accounting.composition import Charge, Mechanism
from app.accounting.paper import paper_parameters, rows_needed
from app.planning.verdict import Verdict

if TYPE_CHECKING:
    from fractions import Fraction

    from app.accounting.paper import PaperParameters
    from app.planning.request import PlanRequest


def plan_paper(request: PlanRequest, answers: Charge) -> Verdict:
    """Return the paper's parameters and whether its sample can feed its chunks.

    One sampled pipeline relabels and answers (NB Algorithm 3), so it has both
    shares of epsilon.

    Raises:
        ConfigurationError: where the paper's argument does not cover the budget.

    """
    epsilon = _pipeline_epsilon(request, answers)
    found = paper_parameters(
        epsilon=epsilon,
        delta=answers.delta,
        alpha=request.alpha,
        beta=request.beta,
        query_count=request.query_count,
        row_count=request.row_count or 0,
        dimension=request.dimension,
    )
    needed = rows_needed(epsilon=epsilon, ensemble_size=found.ensemble_size)
    sampled = None if request.row_count is None else found.sampled_row_count
    starved = sampled is not None and sampled < found.ensemble_size
    return Verdict(
        reasons=_reasons(found) if starved else (),
        advice=_advice(needed) if starved else (),
        notes=_notes(request, found, needed),
        cutoff=found.cutoff,
        ensemble_size=found.ensemble_size,
        sampled_row_count=sampled,
        chunk_row_count=None if sampled is None else sampled // found.ensemble_size,
        rows_needed=needed,
        paper=found,
    )


def _pipeline_epsilon(request: PlanRequest, answers: Charge) -> Fraction:
    relabel = request.charge(Mechanism.RELABEL)
    return answers.epsilon if relabel is None else answers.epsilon + relabel.epsilon


def _reasons(found: PaperParameters) -> tuple[str, ...]:
    sampled, size = found.sampled_row_count, found.ensemble_size
    return (f"calibration paper cuts a sample of n' = {sampled} rows into k = {size} chunks",)


def _advice(needed: int) -> tuple[str, ...]:
    return (
        f"calibration paper needs n = {needed} rows for one row a chunk",
        'set privacy.calibration = "profile", which makes the same promise with fewer votes',
    )


def _notes(request: PlanRequest, found: PaperParameters, needed: int) -> tuple[str, ...]:
    notes = [f"calibration paper sets T = {found.cutoff} itself, in place of {request.cutoff}"]
    if request.row_count is None:
        notes.append(f"n is not known; it takes {needed} rows at least")
    return tuple(notes)
