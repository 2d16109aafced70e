"""Counting predictions that hold: within a factor of two, in the band, where plan is sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from benchmarks.utility.planning_columns import PAIR

if TYPE_CHECKING:
    from benchmarks.utility.results import Json

Record = Mapping[str, Any]
Records = Sequence[Record]

FACTOR: Final = 2.0
LABELS_MIN: Final = 10
SURE: Final = 0.9
# What rounds to the ends of a band lies in it.
SLACK: Final = 1.05
LEAST: Final = 0.5


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How often one number for several releases can be within a factor of two.

    Attributes:
        right: cells where the best number for each configuration is.
        total: all of them.
        pairs_apart: configurations whose named pair is too far apart for any number.
        pairs: all configurations.
        pair_cells: the pair's two cells that are farthest apart.

    """

    right: int
    total: int
    pairs_apart: int
    pairs: int
    pair_cells: tuple[Record, Record]


def ceiling(cells: Records) -> Ceiling:
    """Return it for cells that differ in their task alone, by configuration."""

    def configuration(cell: Record) -> tuple[str, ...]:
        names = ("case", "epsilon", "cutoff", "mechanism")
        return tuple(str(cell[name]) for name in names)

    right = total = apart = 0
    pairs: list[tuple[Record, Record]] = []
    for _, listed in groupby(sorted(cells, key=configuration), key=configuration):
        group = list(listed)
        numbers = [max(LEAST, float(cell["labels"])) for cell in group]
        if max(numbers) < LABELS_MIN:
            continue
        right += max(sum(low <= each <= low * FACTOR**2 for each in numbers) for low in numbers)
        total += len(numbers)
        by_task = {cell["task"]: cell for cell in group}
        pairs.append((by_task[PAIR[0]], by_task[PAIR[1]]))
    apart = sum(_ratio(*pair) > FACTOR**2 for pair in pairs)
    return Ceiling(right, total, apart, len(pairs), max(pairs, key=lambda pair: _ratio(*pair)))


def _ratio(one: Record, other: Record) -> float:
    numbers = sorted(max(LEAST, float(cell["labels"])) for cell in (one, other))
    return numbers[1] / numbers[0]


def told(cells: Records) -> list[Record]:
    """Return the cells of which plan says something, with labels worth counting."""
    return [cell for cell in counted(cells) if not is_refused(cell)]


def counted(cells: Records) -> list[Record]:
    """Return the cells with labels worth counting, measured or predicted."""
    return [cell for cell in cells if max(cell["labels"], cell["predicted"]) >= LABELS_MIN]


def is_refused(cell: Record) -> bool:
    """Whether plan refuses to predict: over cells of several features without points."""
    return cell["people"] == "shares" and class_of(cell).startswith("cells")


def class_of(cell: Record) -> str:
    """Return the class and size that a cell is of."""
    return str(cell.get("case") or cell.get("setting"))


def row(name: str, people: str, cells: Records) -> str:
    """Return a line of the tables."""
    sure = [cell for cell in cells if cell["likelihood"] >= SURE]
    return (
        f"| {name} | {people} | {len(cells):,} | {share(cells, is_close)}"
        f" | {part(len(sure), len(cells))} | {share(sure, is_close)}"
        f" | {share(cells, is_in_band)} | {share(cells, is_close_to_either)} |"
    )


def worst(cells: Records, count: int) -> list[Record]:
    """Return the cells that are off by most, one a class and column."""
    listed: dict[tuple[str, str], Record] = {}
    for cell in sorted(cells, key=_off, reverse=True):
        where = str(cell.get("case") or cell.get("setting")), str(cell.get("task"))
        listed.setdefault(where, cell)
    return list(listed.values())[:count]


def _off(cell: Record) -> float:
    numbers = sorted(max(LEAST, float(cell[name])) for name in ("predicted", "labels"))
    return numbers[1] / numbers[0]


def is_close(cell: Record) -> bool:
    """Whether the prediction is within a factor of two of what was measured."""
    return within(cell["predicted"], cell["labels"])


def is_close_to_either(cell: Record) -> bool:
    """Whether it, or what plan says otherwise, is."""
    rest = cell["otherwise"]
    return is_close(cell) or (rest is not None and within(rest, cell["labels"]))


def is_in_band(cell: Record) -> bool:
    """Whether what was measured lies in the band."""
    measured = float(cell["labels"])
    return bool(cell["low"] / SLACK <= measured <= cell["high"] * SLACK)


def within(predicted: float, measured: float) -> bool:
    """Whether two numbers are within a factor of two of each other, less than half a label none."""
    numbers = sorted(max(LEAST, each) for each in (predicted, measured))
    return numbers[1] <= FACTOR * numbers[0]


def share(cells: Records, holds: Callable[[Record], bool]) -> str:
    """Return how many of some cells a claim holds for, in percent."""
    return part(sum(map(holds, cells)), len(cells))


def part(count: int, total: int) -> str:
    """Return a share in percent, no higher than it is."""
    return f"{int(100 * count / total)}%" if total else "-"


def records(value: Json) -> list[Record]:
    """Return a list's records."""
    return (
        [dict(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    )
