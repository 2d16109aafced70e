"""The number of answers that a release with regularly added rows sustains, as JSON and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.planning.mechanisms.planned_row import Document
    from app.planning.trial.sustained import Company, Sustained

HEADINGS = ("generations", "unstable", "at most", "answers a period", "at least")


def sustained_document(found: Sustained) -> Document:
    """Return the sustained numbers of answers, and the advised number of voters, for ``--json``."""
    return {
        "generations": {
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


def sustained_lines(found: Sustained) -> list[str]:
    """Return a table of sustained answers by the number of row batches that vote."""
    rows = [HEADINGS, *map(_cells, found.companies)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return [*lines, _advice(found)]


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
    wanted = f"{found.demand:,} answers for every generation that is appended"
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
