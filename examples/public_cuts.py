r"""Print a public schema, with cuts and shares, from unlabelled public rows.

The rows must be public: a sample that may be shown, never the private source.
The label is not read.  For ``examples/adult.toml`` it ran as

    python examples/public_cuts.py test.csv --label income --skip fnlwgt education \
        --missing "?" --bounds age=17:90 education_num=1:16 capital_gain=0:99999 \
        capital_loss=0:5000 hours_per_week=1:99

A column whose cells are all numbers is numeric: its cuts part the public rows
into equal parts, or, where over half of the rows hold one value, set that value
apart and part the rows above it once, just over their median.  Any other column is
categorical; its tests are the categories that a middling share of the rows hold.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHARE_STEPS = 10_000


def main(arguments: Sequence[str] | None = None) -> str:
    """Return the TOML of ``[[data.features]]`` and ``[hypotheses.tests]``."""
    options = _options(arguments)
    with options.file.open(encoding="utf-8-sig", newline="") as file:
        rows = list(islice(csv.DictReader(file), options.rows))
    missing = {*options.missing, ""}
    bounds = dict(text.split("=") for text in options.bounds)
    features, tests = [], []
    for name in rows[0]:
        if name in {options.label, *options.skip}:
            continue
        cells = [row[name] for row in rows]
        known = [cell for cell in cells if cell not in missing]
        if all(_is_number(cell) for cell in known):
            values = [float(cell) for cell in known]
            features.append(_numeric(name, values, len(cells), bounds.get(name), options.parts))
        else:
            counts = sorted(Counter(known).items())
            shares = {key: _share(count, len(cells)) for key, count in counts}
            features.append(_categorical(name, shares))
            tests.append(_listed(name, shares, options.least_share))
    return "\n".join([*features, "[hypotheses.tests]", *tests]) + "\n"


def cuts(values: Sequence[float], parts: int) -> list[float]:
    """Return increasing cuts that part the values, or set a common one apart."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    above = [value for value in ordered if value > middle]
    if 2 * ordered.count(middle) > len(ordered):
        upper = [value for value in above if value > above[len(above) // 2]]
        return sorted({*_next_above(middle, above), *upper[:1]})
    quantiles = {ordered[-(-len(ordered) * part // parts)] for part in range(1, parts)}
    return sorted(cut for cut in quantiles if cut > ordered[0])


def _next_above(value: float, above: Sequence[float]) -> Iterator[float]:
    """Yield the least number above a value, among whole numbers or those seen."""
    if above:
        yield value + 1 if all(number.is_integer() for number in above) else above[0]


def _numeric(name: str, values: Sequence[float], count: int, bounds: str | None, parts: int) -> str:
    """Write a numeric feature; bounds not given are the public rows' own."""
    lower, upper = map(float, bounds.split(":")) if bounds else (min(values), max(values))
    chosen = cuts(values, parts)
    shares = [_share(sum(value >= cut for value in values), count) for cut in chosen]
    return _feature(
        name, "numeric", bounds=[lower, upper], thresholds=chosen, threshold_shares=shares
    )


def _categorical(name: str, shares: dict[str, float]) -> str:
    """Write a categorical feature with the categories seen."""
    return _feature(
        name, "categorical", categories=list(shares), category_shares=list(shares.values())
    )


def _feature(name: str, kind: str, **lists: Sequence[object]) -> str:
    """Write one table of ``[[data.features]]``."""
    lines = ["[[data.features]]", f"name = {_text(name)}", f'kind = "{kind}"']
    lines += [f"{key} = [{', '.join(map(_text, values))}]" for key, values in lists.items()]
    return "\n".join(lines) + "\n"


def _listed(name: str, shares: dict[str, float], least: float) -> str:
    """Write the list of categories with a middling share; one of two is enough."""
    chosen = [key for key, share in shares.items() if least <= share <= 1 - least]
    if len(chosen) == len(shares) == len(("one", "other")):
        del chosen[1]
    key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else _text(name)
    return f"{key} = [{', '.join(map(_text, chosen))}]"


def _share(count: int, total: int) -> float:
    """Return a share with four decimals, rounded down so that shares add up to 1 at most."""
    return count * SHARE_STEPS // total / SHARE_STEPS


def _text(value: object) -> str:
    """Write a TOML string or number."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else repr(value)


def _is_number(cell: str) -> bool:
    """Tell whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("file", type=Path, help="CSV of public rows")
    parser.add_argument("--label", required=True, help="column that is not read")
    parser.add_argument("--rows", type=int, default=1000, help="how many of the first rows")
    parser.add_argument("--skip", nargs="*", default=[], help="columns to leave out")
    parser.add_argument("--missing", nargs="*", default=[], help="strings for a missing value")
    parser.add_argument("--bounds", nargs="*", default=[], help="column=lower:upper")
    parser.add_argument("--parts", type=int, default=5, help="parts of a numeric column")
    parser.add_argument("--least-share", type=float, default=0.05, help="of a category's test")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.stdout.write(main())
