"""The figures of docs/audit.md for correct mechanisms.

Run ``python -m tests.audit.planted.figures``.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING

from app.auditing.bounds_by_mechanism import exact_bound
from tests.audit.planted.planted_systems import (
    NOISY_VOTE,
    ONE_THRESHOLD,
    PROFILE,
    REFRESHED,
    system,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shares = tuple[float, ...]

EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2))
COLUMNS = (ONE_THRESHOLD, REFRESHED, PROFILE, NOISY_VOTE)
HEAD = "| T, or m | `svt`, one threshold | `svt`, refreshed | `profile` | `noisy-vote` |"
FIGURES = {
    1: COLUMNS,
    2: COLUMNS,
    3: COLUMNS,
    5: (PROFILE,),
    20: (PROFILE,),
    60: (REFRESHED,),
    1000: (NOISY_VOTE,),
}


def cells() -> list[tuple[str, int]]:
    """Return mechanism and cutoff of every entry."""
    return [(calibration, cutoff) for cutoff, given in FIGURES.items() for calibration in given]


def share(calibration: str, cutoff: int, epsilon: Fraction) -> float:
    """Return the most that any exact adversary shows of a correct mechanism, over the claim."""
    return exact_bound(system(calibration, cutoff, epsilon)).epsilon / float(epsilon)


def table() -> str:
    """Return the table."""
    lines = [HEAD, "| --- " * (len(COLUMNS) + 1) + "|"]
    for cutoff, given in FIGURES.items():
        entries = (_entry(column, cutoff) if column in given else "" for column in COLUMNS)
        lines.append(f"| {cutoff} | {' | '.join(entries)} |")
    return "\n".join([*lines, ""])


def _entry(calibration: str, cutoff: int) -> str:
    return ", ".join(f"{100 * share(calibration, cutoff, each):.1f} %" for each in EPSILONS)


def read_table(page: str) -> Mapping[tuple[str, int], Shares]:
    """Return what a page says, by mechanism and cutoff."""
    found = {}
    for line in page.split(HEAD)[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]:
        cutoff, *entries = [part.strip() for part in line.strip("|").split("|")]
        for calibration, entry in zip(COLUMNS, entries, strict=True):
            if entry:
                shares = (float(part.removesuffix(" %")) / 100 for part in entry.split(", "))
                found[calibration, int(cutoff)] = tuple(shares)
    return found


if __name__ == "__main__":
    sys.stdout.write(table())
