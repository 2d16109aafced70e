r"""Print public cells for ``[hypotheses]`` from unlabelled public rows.

The rows must be public: a sample that may be shown, never the private source.  The
label is not read.  A cell is parted while each side keeps a least share of the rows,

* by tests in the order in which they are given, a test being asked only where both of
  its sides are heavy enough::

    python examples/public_cells.py test.csv --least-share 0.02 \
        --tests "marital_status = Married-civ-spouse" "capital_gain >= 5000"

* or at medians, of the number whose values spread widest there between its bounds::

    python examples/public_cells.py test.csv --least-share 0.006 --bounds b=0:255 g=0:255
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, str]
    Bounds = Mapping[str, tuple[float, float]]

CELL = ""
AT_LEAST = " >= "
IS = " = "


def main(arguments: Sequence[str] | None = None) -> str:
    """Return the TOML of ``cells``."""
    options = _options(arguments)
    rows = public_rows(options.file, count=options.rows)
    if options.tests:
        cells = cells_in_order(rows, options.tests, least_share=options.least_share)
    else:
        texts = (text.split("=") for text in options.bounds)
        bounds = {name: _interval(text) for name, text in texts}
        cells = cells_by_medians(rows, bounds, least_share=options.least_share)
    lines = "".join(f"    {json.dumps(cell, ensure_ascii=False)},\n" for cell in cells)
    return f"cells = [\n{lines}]\n"


def public_rows(file: Path, *, count: int) -> list[Row]:
    """Return the first rows of a public CSV."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(islice(csv.DictReader(lines), count))


def cells_in_order(rows: Sequence[Row], tests: Sequence[str], *, least_share: float) -> list[str]:
    """Return the cells of tests in their order, as ``[hypotheses]`` takes them.

    Args:
        rows: public rows, cells as text.
        tests: ``"feature >= number"`` or ``"feature = category"``, the first for the root.
        least_share: of the rows, that both sides of a test keep.

    """
    return _in_order(rows, tests, least=least_share * len(rows))


def cells_by_medians(rows: Sequence[Row], bounds: Bounds, *, least_share: float) -> list[str]:
    """Return cells cut at medians, each of the number that spreads widest there.

    Args:
        rows: public rows, cells as text.
        bounds: of each number in use.
        least_share: of the rows, that both sides of a cut keep.

    """
    return _by_medians(rows, bounds, least=least_share * len(rows))


def _in_order(rows: Sequence[Row], tests: Sequence[str], *, least: float) -> list[str]:
    for number, test in enumerate(tests):
        sides = _sides(rows, test)
        if min(map(len, sides)) >= least:
            rest = tests[number + 1 :]
            low, high = (_in_order(side, rest, least=least) for side in sides)
            return [test, *low, *high]
    return [CELL]


def _by_medians(rows: Sequence[Row], bounds: Bounds, *, least: float) -> list[str]:
    values = {name: sorted(float(row[name]) for row in rows if row[name]) for name in bounds}

    def spread(name: str) -> float:
        lower, upper = bounds[name]
        return (values[name][-1] - values[name][0]) / (upper - lower)

    for name in sorted((name for name in bounds if values[name]), key=spread, reverse=True):
        median = values[name][len(values[name]) // 2]
        test = f"{name}{AT_LEAST}{median:g}"
        sides = _sides(rows, test)
        if min(map(len, sides)) >= least:
            low, high = (_by_medians(side, bounds, least=least) for side in sides)
            return [test, *low, *high]
    return [CELL]


def _sides(rows: Sequence[Row], test: str) -> tuple[list[Row], list[Row]]:
    """Part rows by a test, false side first; a missing number fails every cut."""
    if AT_LEAST in test:
        name, cut = test.split(AT_LEAST)
        outcomes = [_number(row[name]) >= float(cut) for row in rows]
    else:
        name, category = test.split(IS)
        outcomes = [row[name] == category for row in rows]
    pairs = list(zip(rows, outcomes, strict=True))
    return [row for row, true in pairs if not true], [row for row, true in pairs if true]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("-inf")


def _interval(text: str) -> tuple[float, float]:
    lower, upper = text.split(":")
    return float(lower), float(upper)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path, help="CSV of public rows")
    parser.add_argument("--rows", type=int, default=1000, help="how many of the first rows")
    parser.add_argument("--least-share", type=float, default=0.02, help="of the rows in a cell")
    parser.add_argument("--tests", nargs="*", default=[], help="in the order of asking")
    parser.add_argument("--bounds", nargs="*", default=[], help="column=lower:upper")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.stdout.write(main())
