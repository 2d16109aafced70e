"""The curves of ``conclave plan --plot``: labelled answers against epsilon, cutoff and rows."""

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
    """The number of labelled answers for one fraction of agreeing models, as one parameter varies.

    Attributes:
        agreement: the fraction of the models that agree.
        points: the parameter's values, in increasing order, each with the number of labelled
            answers that the release then gives; one of the values is that of the planned release.

    """

    agreement: Fraction
    points: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """All curves of a plot for one varied parameter.

    Attributes:
        lever: the parameter that varies.
        planned: its value in the plan; None for an unknown number of rows.
        curves: one curve for each fraction of agreeing models.

    """

    lever: Lever
    planned: Fraction | None
    curves: tuple[Curve, ...]


def panels(
    request: PlanRequest, *, rows_needed: int | None, progress: Callable[[int, int], None]
) -> tuple[Panel, ...]:
    """Return the plotted curves of a planned release, one panel for each parameter that may vary.

    Args:
        request: the planned release.
        rows_needed: the number of rows around which the plotted numbers of rows lie, if the planned
            number is not known.
        progress: a function that is called with the number of computed points and the number of all
            points.

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
    """Return the values of a parameter to plot: the planned one, and others around it.

    The values increase, and are evenly spaced on a log axis. All but the planned value are rounded
    to two digits; the cutoff T and the number n of rows are whole numbers.
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
