"""Benchmark B's settings as plan predicts them, for docs/utility.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks.utility.online_page import SERIES, best_of
from benchmarks.utility.online_settings import TARGETS, Target
from benchmarks.utility.planning_counts import (
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

The table is about all settings of [part B](#b-online-answers) with relabelling, at the budgets used
there, with an end at T = 1, 2, 5 and 20 unstable answers. If rows keep their own labels,
`conclave plan` predicts nothing, and says so, because the agreement of the learners then depends on
the labels alone. Public points show the sizes of cells only roughly. The plan allows for this by a
prior: it adds half a person to the number of points in each cell. This half was chosen on the
settings of part B, among 0, 1/2, 1 and 2. With all four values, nine of ten predictions or more
were within a factor of two, in runs that were not kept. So the predictions for cells were not
tested on unseen data. *E within 2* compares predicted with measured values of E, the expected
number of stable answers if vectors never ran out; values above {E_MAX:,.0f} count as {E_MAX:,.0f}.
"""
TABLE: Final = """\
The next table has the same rows as the table of methods in part B. Each entry has, for a method's
best setting and with public points, the predicted number of answers and the measured one. For a
noisy vote each entry has the number of answers at which the noise changes one label in a hundred.
The *best* setting was chosen afterwards, by accuracy and answers. Trees may suddenly lose most of
their answers, which no public number predicts; the trees in this table were chosen for many
answers, so they gave more than could be expected.
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
    return [f"With points, predicted and measured E are within a factor of two in: {said}.", ""]


def _refused(cells: Records) -> list[str]:
    """Say how wrong independent shares are of cells, which is why plan predicts nothing by them."""
    listed = [cell for cell in counted(cells) if is_refused(cell)]
    said = (
        "If the features of people were made up independently, by public frequencies, the"
        f" prediction for cells would be within a factor of two in only {share(listed, is_close)},"
        " and would"
        " nevertheless claim to be certain. So for cells of several features `conclave plan`"
        " predicts nothing without public points, and asks for them."
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
        f"{close_of} of {total} over {name}"
        for name in ("cells", "trees")
        for listed in ([cell for method, cell in rows if method.startswith(name)],)
        for close_of, total in ((sum(map(is_close, listed)), len(listed)),)
    )
    return (
        f"Predictions within a factor of two are {close} of {len(rows)}"
        f" ({part(close, len(rows))}); {by_class}."
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
