"""The lasting rate of answers of a release to which rows are added, as JSON and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.privacy.budget.composition import Mechanism
from app.privacy.learner_properties import KERNEL
from app.privacy.noisy_gradient.descent_choices import choice_of

if TYPE_CHECKING:
    from app.planning.mechanisms.planning_registration import Document
    from app.planning.request import PlanRequest
    from app.planning.trial.sustained_answers import Company, Sustained

CLASSIFIER: Final = Mechanism.CLASSIFIER
HEADINGS = ("generations", "unstable", "at most", "answers a period", "at least")


PART: Final = (
    "Published: each generation adds {steps} steps on its own {unit}s, at epsilon {epsilon:g} and "
    "delta {delta:.3g}, to a classifier that answers without limit."
)


def sustained_document(found: Sustained, request: PlanRequest | None = None) -> Document:
    """Return lasting rates of answers, and how many batches of rows should vote, as JSON."""
    return {
        "generations": {
            "unit": found.unit,
            "size": found.size,
            "published": _part(request),
            "demand": found.demand,
            "cutoff": found.cutoff,
            "quorum": found.quorum,
            "companies": [
                {
                    "generations": each.generation_count,
                    "unstable": each.unstable,
                    "unstable_cautious": each.unstable_cautious,
                    "sustained": each.sustained,
                    "sustained_cautious": each.sustained_cautious,
                }
                for each in found.companies
            ],
        }
    }


def sustained_lines(found: Sustained, request: PlanRequest | None = None) -> list[str]:
    """Return a table of lasting rates of answers, by the number of batches that vote."""
    rows = [HEADINGS, *map(_cells, found.companies)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    part = _part(request)
    if request is None or part is None:
        return [*lines, _advice(found)]
    published = PART.format(unit=request.unit, **part)
    return [*lines, _advice(found), published, *request.classifier_words]


def _part(request: PlanRequest | None) -> dict[str, float] | None:
    """Return what one generation adds to the classifier, in public numbers; None without one."""
    if request is None or request.row_count is None:
        return None
    charge = next((each for each in request.charges if each.mechanism is CLASSIFIER), None)
    if charge is None or request.rare_share is None:
        return None
    epsilon, has_waves = float(charge.epsilon), request.learner == KERNEL.name
    choice = choice_of(row_count=request.row_count, epsilon=epsilon, has_waves=has_waves)
    return {
        "steps": choice.step_count,
        "epsilon": epsilon,
        "delta": float(charge.delta),
        "smallest_share": request.rare_share,
    }


def _cells(each: Company) -> tuple[str, ...]:
    return (
        str(each.generation_count),
        f"{each.unstable:.2g}",
        f"{each.unstable_cautious:.2g}",
        f"{each.sustained:,.3g}",
        f"{each.sustained_cautious:,.3g}",
    )


def _advice(found: Sustained) -> str:
    """Say which quorum to set, or that none suffices."""
    size = "" if found.size is None else f" of {found.size:,} {found.unit}s"
    wanted = f"{found.demand:,} answers for every generation{size} that is appended"
    if found.quorum is None:
        most = max(each.generation_count for each in found.companies)
        return (
            f"Quorum: none up to {most} sustains {wanted}. Ask for fewer with --demand, or use"
            " larger generations, a larger epsilon or coarser cells."
        )
    return (
        f"Quorum: quorum = {found.quorum} sustains {wanted}, for nine made-up rules in ten. With"
        " fewer generations active, unstable answers use accounts up faster than generations come."
    )
