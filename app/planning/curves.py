"""The curves of ``conclave plan --plot``: answers against epsilon, cutoff and number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.planning.capacity import AGREEMENTS
from app.planning.variants import Change, Lever, change, levers, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.planning.request import PlanRequest

# Each lever is turned from a quarter, or a tenth, of its value to so many times it.
SPANS: Final = {
    Lever.EPSILON: (Fraction(1, 4), Fraction(4)),
    Lever.CUTOFF: (Fraction(1, 10), Fraction(10)),
    Lever.ROWS: (Fraction(1, 10), Fraction(10)),
}
POINTS: Final = 13
DIGITS: Final = 2
ROWS_UNKNOWN: Final = Fraction(10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The number of answers for one level of the learners' agreement, as one parameter varies.

    Attributes:
        agreement: share of the votes.
        points: by rising value; the release as planned is one of them.

    """

    agreement: Fraction
    points: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """All curves of a plot for one varied parameter.

    Attributes:
        lever: what is turned.
        planned: its value in the plan; None for rows that are not known.
        curves: one an agreement.

    """

    lever: Lever
    planned: Fraction | None
    curves: tuple[Curve, ...]


def panels(
    request: PlanRequest, *, rows_needed: int | None, progress: Callable[[int, int], None]
) -> tuple[Panel, ...]:
    """Return the plotted curves of a planned release, one panel for each parameter that may vary.

    Args:
        request: the release as planned.
        rows_needed: n around which rows are turned where n is not known.
        progress: told the points done and their number.

    """
    grids = {
        lever: values(lever, value_of(request, lever) or Fraction(rows_needed or ROWS_UNKNOWN))
        for lever in levers(request)
    }
    done, total = 0, sum(map(len, grids.values()))
    found = []
    for lever, grid in grids.items():
        columns = []
        for value in grid:
            # One value at a time: its calibration serves all agreements.
            columns.append([change(request, lever, value, share) for share in AGREEMENTS])
            done += 1
            progress(done, total)
        curves = tuple(
            Curve(agreement=share, points=tuple(column[place] for column in columns))
            for place, share in enumerate(AGREEMENTS)
        )
        planned = value_of(request, lever)
        found.append(Panel(lever=lever, planned=planned, curves=curves))
    return tuple(found)


def values(lever: Lever, planned: Fraction) -> tuple[Fraction, ...]:
    """Return increasing values, evenly spaced on a log axis, that include the planned value.

    Two digits are enough, but for the planned one; T and n are whole numbers.
    """
    least, most = (float(end) for end in SPANS[lever])
    half = POINTS // 2
    found = {planned}
    for step in range(1, half + 1):
        for end in (least, most):
            found.add(_rounded(lever, float(planned) * end ** (step / half)))
    return tuple(sorted(found))


def _rounded(lever: Lever, value: float) -> Fraction:
    rounded = Fraction(f"{value:.{DIGITS}g}")
    return rounded if lever is Lever.EPSILON else Fraction(max(1, round(rounded)))
