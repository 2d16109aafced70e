"""Planning with the constants of published papers, which need more rows than most owners have.

The paper is that of Nandi and Bassily, 2020 (``docs/algorithms.md`` has its title), whose theorem
says how many rows and models its algorithms need.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.planning.mechanisms.release_sizes import rows_for
from app.planning.mechanisms.stability_plan import PLANNED_SVT, unstable_reasons, weigh
from app.planning.plan_result import Verdict
from app.privacy.paper.answering_registration import PAPER
from app.privacy.paper.paper_pipeline import printed

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.paper.paper import PaperParameters


def plan_paper(request: PlanRequest, budget: PipelineBudget) -> Verdict:
    """Return the parameters of Nandi and Bassily's theorem, and whether there are enough rows.

    One mechanism on a random sample of the rows relabels and answers (Algorithm 3 of Nandi and
    Bassily), so it gets the shares of epsilon of relabelling and of answers. If the configuration
    sets the number k of models, this number is used in place of the paper's.

    Raises:
        ConfigurationError: the paper's parameters do not keep the privacy that the paper claims.

    """
    asked = request.asked
    found = printed(
        asked.targets,
        relabel=asked.relabel,
        answers=asked.answers_charge,
        row_count=request.row_count or 0,
        dimension=request.dimension,
    )
    calibration = PAPER.calibrate(asked, epsilon=budget.answers_epsilon, delta=budget.answers_delta)
    size = request.ensemble_size or found.ensemble_size
    stability = weigh(request, calibration, size)
    needed = rows_for(request, size)
    reasons = _starved_reasons(request, size) + unstable_reasons(request, stability, size)
    sampled = request.sampled_row_count
    return Verdict(
        calibration=calibration,
        reasons=reasons,
        advice=_advice(request, found, size, needed) if reasons else (),
        notes=_notes(request, found, needed),
        cutoff=found.cutoff,
        ensemble_size=size,
        chunk_row_count=None if sampled is None else sampled // size,
        rows_needed=needed,
        stability=stability,
        paper=found,
    )


def _starved_reasons(request: PlanRequest, size: int) -> tuple[str, ...]:
    sampled = request.sampled_row_count
    if sampled is None or sampled >= size:
        return ()
    people = f"n' = {sampled} {request.unit}s"
    return (f"calibration paper cuts a sample of {people} into k = {size} chunks",)


def _advice(
    request: PlanRequest, found: PaperParameters, size: int, needed: int
) -> tuple[str, ...]:
    printed_size = (
        (f"leave answers.ensemble to auto, which is the printed k = {found.ensemble_size}",)
        if size < found.ensemble_size
        else ()
    )
    return (
        f"calibration paper needs n = {needed} {request.unit}s for one {request.unit} a chunk",
        *printed_size,
        'set privacy.calibration = "profile", which makes the same promise with fewer votes',
    )


def _notes(request: PlanRequest, found: PaperParameters, needed: int) -> tuple[str, ...]:
    notes = [f"calibration paper sets T = {found.cutoff} itself, in place of {request.cutoff}"]
    if request.row_count is None:
        notes.append(f"n is not known; it takes {needed} {request.unit}s at least")
    return tuple(notes)


PLANNED_PAPER: Final = replace(
    PLANNED_SVT,
    row=PAPER,
    plan=plan_paper,
    variants={},  # its own budget is that of no other
    quick=PAPER.calibrate,
    takes_cutoff=False,
)
