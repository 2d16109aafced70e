"""Planning the answers of calibration ``paper``: on ordinary data, by how much not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.planning.mechanisms.sizes import rows_for
from app.planning.mechanisms.stability_plan import unstable_reasons, weigh
from app.planning.verdict import Verdict
from app.privacy.budget.composition import Mechanism
from app.privacy.paper.paper_pipeline import paper_calibration, printed

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.privacy.budget.composition import Charge
    from app.privacy.paper.paper import PaperParameters


def plan_paper(request: PlanRequest, answers: Charge) -> Verdict:
    """Return the paper's parameters and whether its sample can feed its chunks.

    One sampled pipeline relabels and answers (NB Algorithm 3), so it has both
    shares of epsilon.  A size given in place of the printed k is planned as given.

    Raises:
        ConfigurationError: where the printed parameters do not keep what they claim.

    """
    relabel = request.charge(Mechanism.RELABEL)
    found = printed(
        request.targets,
        relabel=relabel,
        answers=answers,
        row_count=request.row_count or 0,
        dimension=request.dimension,
    )
    calibration = paper_calibration(request.targets, relabel=relabel, answers=answers)
    size = request.ensemble_size or found.ensemble_size
    stability = weigh(request, calibration, size)
    needed = rows_for(request, size)
    reasons = _starved_reasons(request, size) + unstable_reasons(request, stability, size)
    sampled = request.sampled_row_count
    return Verdict(
        reasons=reasons,
        advice=_advice(found, size, needed) if reasons else (),
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
    return (f"calibration paper cuts a sample of n' = {sampled} rows into k = {size} chunks",)


def _advice(found: PaperParameters, size: int, needed: int) -> tuple[str, ...]:
    printed_size = (
        (f"leave answers.ensemble to auto, which is the printed k = {found.ensemble_size}",)
        if size < found.ensemble_size
        else ()
    )
    return (
        f"calibration paper needs n = {needed} rows for one row a chunk",
        *printed_size,
        'set privacy.calibration = "profile", which makes the same promise with fewer votes',
    )


def _notes(request: PlanRequest, found: PaperParameters, needed: int) -> tuple[str, ...]:
    notes = [f"calibration paper sets T = {found.cutoff} itself, in place of {request.cutoff}"]
    if request.row_count is None:
        notes.append(f"n is not known; it takes {needed} rows at least")
    return tuple(notes)
