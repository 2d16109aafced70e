"""A public sample of records, from which columns' bounds, categories and thresholds are taken.

The sample must consist of public rows and never of the private records. Cuts (the thresholds at
which a feature is tested) are quantiles of the sample, with at least one cut on each side of the
median wherever the sample has values there.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from app.cli.init.columns import Column
from app.data.field_values import (
    TRUE_OR_FALSE,
    TRUTHS,
    CellError,
    boolean_name,
    day_in,
    number_in,
)
from app.data.sources.csv_dialect import csv_problem
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    Cells = Sequence[str]

OPTION: Final = "--public"
ROWS_MAX: Final = 100_000
PARTS: Final = 5
SHARE_STEPS: Final = 10_000
CATEGORIES_MAX: Final = 50
CLASSES_MAX: Final = 20
COUNTED_MIN: Final = 20
# Spellings that stand for a missing value where a sample has them.
MISSING_SPELLINGS: Final = ("?", "NA", "N/A", "NaN", "nan", "NULL", "null")
ONE_VALUE: Final = "all rows of the sample have one value"
OWN_VALUES: Final = "nearly every row of the sample has a value of its own"


def read_sample(path: Path) -> dict[str, list[str]]:
    """Return the fields of a CSV by column name, from at most the first 100,000 rows.

    Raises:
        ConfigurationError: the file is no CSV with a header line and rows of the same length.

    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = filter(None, csv.reader(file, strict=True))
            header = next(lines, [])
            rows = list(islice(lines, ROWS_MAX))
    except csv.Error as error:
        raise ConfigurationError(OPTION, f"{path} {csv_problem(error)}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(OPTION, f"{path} is not a CSV in UTF-8") from None
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise ConfigurationError(OPTION, f"cannot read {path}: {reason}") from None
    if not rows:
        raise ConfigurationError(OPTION, f"{path} has no row of data")
    if len(set(header)) < len(header):
        raise ConfigurationError(OPTION, f"{path} names a column twice")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            problem = f"row {number} has {len(row)} cells, the header has {len(header)}"
            raise ConfigurationError(OPTION, problem)
    return {name: [row[place] for row in rows] for place, name in enumerate(header)}


def missing_in(sample: Mapping[str, Cells]) -> tuple[str, ...]:
    """Return the usual spellings of a missing value that occur in a public sample."""
    return tuple(
        spelling
        for spelling in MISSING_SPELLINGS
        if any(spelling in cells for cells in sample.values())
    )


def classes_in(cells: Cells, missing: Collection[str]) -> tuple[str, ...]:
    """Return the sorted class labels in a public sample; none if there are too many or too few."""
    found = sorted({cell for cell in cells if cell and cell not in missing})
    return tuple(found) if 2 <= len(found) <= CLASSES_MAX else ()  # noqa: PLR2004 -- two labels


def described(column: Column, cells: Cells, missing: Collection[str]) -> Column:
    """Return a column's description with facts added from a sample; known facts are kept.

    Args:
        column: the known facts about the column.
        cells: the column's fields in the sample, one per row.
        missing: the texts that stand for a missing value, in addition to the empty text.

    Raises:
        ConfigurationError: a column that is known to be numeric contains other text.

    """
    known = [cell for cell in cells if cell and cell not in missing]
    if column.left_out or not known:
        return column
    numbers = [number for number in map(number_in, known) if number is not None]
    is_numeric = len(numbers) == len(known) and all(map(math.isfinite, numbers))
    if column.kind == "numeric" and not is_numeric:
        raise ConfigurationError(OPTION, f'column "{column.name}" is numeric, and has other cells')
    if column.kind == "boolean" or (column.kind is None and _are_booleans(known)):
        return _boolean(column, known, len(cells))
    if is_numeric and column.kind != "categorical":
        return _numeric(column, numbers, len(cells))
    days = [day for day in map(day_in, known) if day is not None]
    are_dates = len(days) == len(known)
    if column.kind == "date" and not are_dates:
        raise ConfigurationError(OPTION, f'column "{column.name}" is a date, and has other cells')
    if are_dates and column.kind in {None, "date"}:
        return _numeric(replace(column, kind="date"), days, len(cells))
    return _categorical(column, Counter(known), len(cells))


def _are_booleans(known: Sequence[str]) -> bool:
    """Whether cells are the words for true and false; 0 and 1 are numbers."""
    return all(cell.strip().lower() in TRUTHS for cell in known)


def _boolean(column: Column, known: Sequence[str], row_count: int) -> Column:
    """Return a boolean with the share of people of whom it is true.

    Raises:
        ConfigurationError: a cell is neither.

    """
    try:
        names = [boolean_name(cell, frozenset()) for cell in known]
    except CellError:
        problem = f'column "{column.name}" is a boolean, and has other cells'
        raise ConfigurationError(OPTION, problem) from None
    if len(set(names)) == 1 and column.kind is None:
        return replace(column, left_out=ONE_VALUE)
    is_true = names.count(TRUE_OR_FALSE[True])
    share = _share(is_true, row_count)
    return replace(
        column,
        kind="boolean",
        categories=TRUE_OR_FALSE,
        category_shares=(_share(len(known) - is_true, row_count), share),
    )


def cuts_of(values: Sequence[float]) -> list[float]:
    """Return increasing thresholds at a sample's quantiles, each with values on both sides.

    The thresholds (cuts) divide the values into five equal groups. If more than half of the values
    are equal, cuts separate this common value from the others, and one further cut divides the
    values on each side. There is at least one cut on each side of the median on which there are
    values.
    """
    ordered = sorted(values)
    median = ordered[len(ordered) // 2]
    if 2 * ordered.count(median) > len(ordered):
        chosen = set(_about(median, ordered))
    else:
        places = [-(-len(ordered) * part // PARTS) for part in range(1, PARTS)]
        chosen = {ordered[min(place, len(ordered) - 1)] for place in places}
    above = [value for value in ordered if value > median]
    if above and not any(cut > median for cut in chosen):
        chosen.add(_least_above(median, above))
    if ordered[0] < median and not any(ordered[0] < cut <= median for cut in chosen):
        chosen.add(median)
    return sorted(cut for cut in chosen if cut > ordered[0])


def _about(common: float, ordered: Sequence[float]) -> Iterator[float]:
    """Yield cuts about a value that over half of the sample has."""
    above = [value for value in ordered if value > common]
    below = [value for value in ordered if value < common]
    if above:
        yield _least_above(common, above)
        yield from [value for value in above if value > above[len(above) // 2]][:1]
    if below:
        yield common
        yield below[len(below) // 2]


def _least_above(value: float, above: Sequence[float]) -> float:
    """Return the least number above a value, among whole numbers or those of the sample."""
    are_whole = all(number.is_integer() for number in above)
    # Adding one leads nowhere from a very large number, and too far from a fraction.
    return value + 1 if are_whole and value < value + 1 <= above[0] else above[0]


def _numeric(column: Column, numbers: Sequence[float], row_count: int) -> Column:
    """Return a column of numbers, or of days, with bounds, cuts and shares."""
    if column.bounds is None:
        if min(numbers) == max(numbers):
            return replace(column, left_out=ONE_VALUE)
        if column.kind != "date" and _are_row_numbers(numbers):
            return replace(column, left_out=OWN_VALUES)
    lower, upper = column.bounds or (min(numbers), max(numbers))
    clipped = [min(max(number, lower), upper) for number in numbers]
    cuts = tuple(cut for cut in cuts_of(clipped) if lower < cut <= upper)
    shares = [_share(sum(value >= cut for value in clipped), row_count) for cut in cuts]
    return replace(
        column,
        kind=column.kind or "numeric",
        bounds=(lower, upper),
        bounds_are_sampled=column.bounds is None,
        cuts=cuts,
        cut_shares=tuple(shares),
    )


def _categorical(column: Column, counts: Counter[str], row_count: int) -> Column:
    """Return a categorical column with its commonest categories, or the known ones."""
    categories = column.categories
    if not categories:
        if len(counts) == 1:
            return replace(column, left_out=ONE_VALUE)
        if len(counts) > CATEGORIES_MAX and 2 * len(counts) > counts.total():
            return replace(column, left_out=OWN_VALUES)
        commonest = sorted(counts, key=lambda name: (-counts[name], name))[:CATEGORIES_MAX]
        categories = tuple(sorted(commonest))
    shares = tuple(_share(counts[name], row_count) for name in categories)
    return replace(
        column,
        kind="categorical",
        categories=categories,
        category_shares=shares if any(shares) else (),
    )


def _are_row_numbers(numbers: Sequence[float]) -> bool:
    """Whether numbers count the rows."""
    first = min(numbers)
    counted = [first + index for index in range(len(numbers))]
    return len(numbers) > COUNTED_MIN and first.is_integer() and sorted(numbers) == counted


def _share(count: int, total: int) -> float:
    """Return a share with four decimals, rounded down so that shares add up to 1 at most."""
    return count * SHARE_STEPS // total / SHARE_STEPS
