"""Benchmark B's settings as plan predicts them, for docs/utility.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks.utility.online_page import SERIES, best_of
from benchmarks.utility.online_settings import TARGETS, Target
from benchmarks.utility.planning_counts import (
    SURE,
    Records,
    counted,
    is_close,
    is_refused,
    part,
    row,
    share,
    told,
    within,
)
from benchmarks.utility.results import read

if TYPE_CHECKING:
    from benchmarks.utility.planning_counts import Record

# Beyond so many answers E says more than anybody asks.
E_MAX: Final = 1e5
NOISY: Final = "noisy vote"
UNRELABELLED: Final = "no relabelling"

ONLINE: Final = f"""\
### Benchmark B's own settings

The next table is about all settings of [part B](#b-online-answers) with relabelling, where the
limit T of unstable answers is 1, 2, 5 or 20. Without relabelling `conclave plan` predicts nothing,
because without relabelling the agreement of the learners depends on the private labels. For cells
the plan estimates the share of people in each cell from the public points, after it has added half
a person to the number of points in each cell. This half was chosen among 0, 1/2, 1 and 2 on the
settings of part B, so the predictions for cells were not tested on unseen data. Values of E, the
expected number of stable answers if there were no end of new vectors, count as {E_MAX:,.0f} if they
are above {E_MAX:,.0f}.
"""
TABLE: Final = """\
The next table has the same lines as the table of methods in part B. Each entry has, for the best
setting of a method, the predicted number of answers with public points, and the measured number.
For a noisy vote these are numbers of answers with which the noise changes one label in a hundred.
The best settings were chosen by the measured accuracy and number of answers, so the trees in this
table gave more answers than could be expected.
"""


def online_section(cells: Records, heading: str) -> list[str]:
    """Return the tables of B's settings, and of the best of each method."""
    said = told(cells)
    return [
        ONLINE,
        heading,
        *_groups(said),
        "",
        *_expected(said),
        *_refused(cells),
        TABLE,
        f"| data, accuracy, epsilon | {' | '.join(_methods())} |",
        f"| --- |{' --- |' * len(_methods())}",
        *(_target_row(target, cells) for target in TARGETS),
        "",
        _sum(cells),
        "",
    ]


def _methods() -> list[str]:
    return [name for name in SERIES if name != UNRELABELLED]


def _groups(cells: Records) -> list[str]:
    lines = []
    for data in ("adult", "skin"):
        for method in ("cells", "trees"):
            of_method = [cell for cell in cells if (cell["data"], cell["method"]) == (data, method)]
            for people in ("shares", "points"):
                listed = [cell for cell in of_method if cell["people"] == people]
                stable = [cell for cell in listed if cell["mechanism"] != NOISY]
                noisy = [cell for cell in listed if cell["mechanism"] == NOISY]
                if not listed:
                    continue
                lines.append(row(f"{data.capitalize()}, {method}", people, stable))
                lines.append(row(f"{data.capitalize()}, {method}, noisy vote", people, noisy))
    return lines


def _expected(cells: Records) -> list[str]:
    """Say how often E is right."""
    stable = [cell for cell in cells if cell["mechanism"] != NOISY and cell["people"] == "points"]
    said = "; ".join(
        f"{data.capitalize()}, {method} {share(_in(stable, data, method), _is_close_in_e)}"
        for data in ("adult", "skin")
        for method in ("cells", "trees")
    )
    return [
        (
            "With public points, the predicted and the measured E (the expected number of stable"
            " answers if there were no end of new vectors) are within a factor of two in this"
            f" percentage of the settings: {said}."
        ),
        "",
    ]


def _refused(cells: Records) -> list[str]:
    """Say how wrong independent shares are of cells, which is why plan predicts nothing by them."""
    listed = [cell for cell in counted(cells) if is_refused(cell)]
    sure = [cell for cell in listed if cell["likelihood"] >= SURE]
    said = (
        "If the features of people were made up independently, from public frequencies, only"
        f" {share(listed, is_close)} of the predictions for cells would be within a factor of"
        f" two of the measured number, although {part(len(sure), len(listed))} would be given a"
        f" likelihood of {SURE:.0%} or more. So for cells of"
        " several features `conclave plan` predicts nothing without public points."
    )
    return [said, ""]


def _in(cells: Records, data: str, method: str) -> list[Record]:
    return [cell for cell in cells if (cell["data"], cell["method"]) == (data, method)]


def _is_close_in_e(cell: Record) -> bool:
    return within(min(E_MAX, cell["predicted_E"]), min(E_MAX, cell["E"]))


def _target_row(target: Target, cells: Records) -> str:
    found = [_best(target, method, cells) for method in _methods()]
    said = [
        "-" if cell is None else f"{cell['predicted']:,.0f}, {cell['labels']:,.0f}"
        for cell in found
    ]
    name = f"{target.data.capitalize()} {target.accuracy:g}".replace("0.", ".")
    return f"| {name}, {target.epsilon} | {' | '.join(said)} |"


def _sum(cells: Records) -> str:
    rows = [
        (method, cell)
        for target in TARGETS
        for method in _methods()
        if (cell := _best(target, method, cells)) is not None
    ]
    close = sum(is_close(cell) for _, cell in rows)
    by_class = ", ".join(
        f"{close_of} of {total} for {name}"
        for name in ("cells", "trees")
        for listed in ([cell for method, cell in rows if method.startswith(name)],)
        for close_of, total in ((sum(map(is_close, listed)), len(listed)),)
    )
    return (
        f"In the table above {close} of {len(rows)} predictions ({part(close, len(rows))}) are"
        f" within a factor of two of the measured number: {by_class}."
    )


def _best(target: Target, method: str, cells: Records) -> Record | None:
    """Return the prediction of the setting that B's table takes for a method; None without."""
    kept: Any = read("online") or {"settings": []}
    best = best_of(kept, target, *SERIES[method])
    if best is None:
        return None
    mechanism, cutoff = best.cell["mechanism"], best.cell["cutoff"]
    wanted = (target.data, target.epsilon, best.setting["setting"], mechanism, "points")
    for cell in cells:
        named = (cell["data"], cell["epsilon"], cell["setting"], cell["mechanism"], cell["people"])
        if named == wanted and (mechanism == NOISY or cell["cutoff"] == cutoff):
            return cell
    return None
