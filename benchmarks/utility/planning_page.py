"""The section of docs/utility.md on predictions, from the kept results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from benchmarks.utility.results import measured_on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.utility.results import Json

    Record = Mapping[str, Any]

FACTOR: Final = 2.0
LABELS_MIN: Final = 10
NARROW: Final = 4.0
# What rounds to the ends of a band lies in it.
SLACK: Final = 1.05

INTRODUCTION: Final = f"""\
`conclave plan` tries a release out on made-up people
([planning.md](planning.md#what-is-predicted)). Here every prediction is compared with what
releases of real rows give: relabelled at a tenth of epsilon, nine tenths for the answers,
epsilon 0.5, 1 and 2, T 1, 5, 20 and 50, 200 to 3,200 learners over trees of depth 1 to 3, and
learners of a row over cells, by `profile` and by `svt`. *Measured* are stable answers of one
pass over the distinct test vectors, the mean of 20 orders; m is their number. *People* are
made up by the public shares of the examples, or drawn from 1,000 test rows without their
labels. Cells where both numbers are below {LABELS_MIN} are left out.

Income and Skin were looked at when it was chosen how to predict. The other columns of Adult
that are learned here, sex, race and relationship, had no part in it.

*Within 2*: the prediction, the mean over made-up hypotheses, is within a factor of two of what
was measured. *Narrow*: so where the band from `labels_low` to `labels_high` spans a factor of
{NARROW:g} at most, and how often it does. *In the band*: measured between them, which is meant
to be four times in five. *Or the worst*: within a factor of two of the prediction or of what
the worst leaf leaves (`cliff.labels`).
"""


HEADING: Final = (
    "| learned | people | cells | within 2 | narrow | within 2 | in the band | or the worst |"
)


def section(document: Mapping[str, Json]) -> str:
    """Return the section's Markdown."""
    cells, recommended = _records(document["cells"]), _records(document["recommended"])
    told = [cell for cell in cells if max(cell["labels"], cell["predicted"]) >= LABELS_MIN]
    return "\n".join(
        [
            INTRODUCTION,
            measured_on(document),
            "",
            HEADING,
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *_rows(told),
            "",
            _summary(told),
            "",
            "What plan recommends at epsilon 1 for trees of depth 2, followed:",
            "",
            "| learned | people | recommended | predicted | measured | E |",
            "| --- | --- | --- | --- | --- | --- |",
            *(_recommendation(each) for each in recommended),
        ]
    )


def _summary(told: Sequence[Record]) -> str:
    return (
        f"In {_share(told, _is_close)} of all {len(told):,} cells the prediction is within a"
        f" factor of two; in {_share(_new(told), _is_close)} of those of columns that had no part."
    )


def _rows(cells: Sequence[Record]) -> list[str]:
    """Return a line for each column to learn and each kind of people, and one for all new."""
    groups: list[tuple[str, Sequence[Record]]] = [
        (name, [cell for cell in cells if cell["task"] == name])
        for name in dict.fromkeys(str(cell["task"]) for cell in cells)
    ]
    groups.append(("sex, race, relationship", _new(cells)))
    return [
        _row(name, people, [cell for cell in group if cell["people"] == people])
        for name, group in groups
        for people in ("shares", "points")
        if group
    ]


def _row(name: str, people: str, cells: Sequence[Record]) -> str:
    narrow = [cell for cell in cells if cell["high"] <= NARROW * max(cell["low"], 1e-9)]
    return (
        f"| {name} | {people} | {len(cells):,} | {_share(cells, _is_close)}"
        f" | {_part(len(narrow), len(cells))} | {_share(narrow, _is_close)}"
        f" | {_share(cells, _is_in_band)} | {_share(cells, _is_close_to_either)} |"
    )


def _recommendation(each: Record) -> str:
    return (
        f"| {each['task']} | {each['people']} | `{each['mechanism']}`, T = {each['T']},"
        f" k = {each['k']:,}, relabel {each['relabel']:g} | {each['predicted']:,.0f}"
        f" | {each['labels']:,.0f} | {each['E']:.2g} |"
    )


def _new(cells: Sequence[Record]) -> list[Record]:
    return [cell for cell in cells if cell["is_new"]]


def _is_close(cell: Record) -> bool:
    return _within(cell["predicted"], cell["labels"])


def _is_close_to_either(cell: Record) -> bool:
    return _is_close(cell) or _within(cell["worst"], cell["labels"])


def _is_in_band(cell: Record) -> bool:
    measured = float(cell["labels"])
    return bool(cell["low"] / SLACK <= measured <= cell["high"] * SLACK)


def _within(predicted: float, measured: float) -> bool:
    return max(predicted, 1e-9) <= FACTOR * measured and measured <= FACTOR * predicted


def _share(cells: Sequence[Record], holds: Callable[[Record], bool]) -> str:
    return _part(sum(map(holds, cells)), len(cells))


def _part(count: int, total: int) -> str:
    return f"{count / total:.0%}" if total else "-"


def _records(value: Json) -> list[Record]:
    return (
        [dict(each) for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    )
