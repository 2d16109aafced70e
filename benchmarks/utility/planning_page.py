"""The section of docs/utility.md on predictions, from the kept results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.utility.planning_counts import (
    FACTOR,
    LABELS_MIN,
    SURE,
    Records,
    ceiling,
    class_of,
    is_close,
    part,
    records,
    row,
    share,
    told,
    worst,
)
from benchmarks.utility.planning_followed_page import followed_section
from benchmarks.utility.planning_online_page import online_section
from benchmarks.utility.results import measured_on

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.utility.planning_counts import Record
    from benchmarks.utility.results import Json

HOW: Final = f"""\
### How predictions were compared

The tables compare releases of real rows with the predictions of `conclave plan`. The releases spend
a tenth of epsilon on relabelling and nine tenths on answers. The predictions use public quantities
only: the number n of rows, the features, their public frequencies or unlabelled public points, and
the budget. *Measured* is the number of stable answers if every distinct test vector is asked once,
as a mean over 20 orders of the queries; it is at most m, the number of vectors. For a noisy vote,
*measured* is the number of answers at which the noise changes one label in a hundred. *People* says
how the people of a prediction are made up: from the examples' public frequencies, or from the
public points that part B uses for its cells (1,000 test rows of Adult and 2,000 of Skin, without
their labels). If both the predicted and the measured number of answers are below
{LABELS_MIN}, the pair is not counted.

* *Within 2*: how often `labels`, the predicted number, is within a factor of two of the measured
  number.
* *Sure*: how often the prediction is given a likelihood (`labels_likelihood`) of {SURE:.0%} or
  more; the next column says how often such a prediction is within a factor of two.
* *In the band*: how often the measured number is between `labels_low` and `labels_high`, which
  should be four times in five.
* *Either*: how often the measured number is within a factor of two of `labels` or of
  `labels_otherwise`, the second number that a prediction gives.
"""

HEADING: Final = (
    "| what | people | cells | within 2 | sure | within 2 | in the band | either |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)
SEEN: Final = """\
### Columns that were looked at

The settings are trees of depth 1 to 3 with 200 to 3,200 learners, epsilon 0.5, 1 and 2, and an end
at T = 1, 5, 20 and 50 unstable answers, by the calibrations `profile` and `svt`; for income and
Skin also cells. The method of prediction was chosen on these columns, among four kinds of made-up
rules for labels, and four ways to combine the numbers of answers that they give. The kinds of
rules were: any hypothesis of the class; the best hypothesis for made-up labels, with and without
rare strong effects; and a hypothesis that is drawn for made-up labels as a release draws it, which
is used now. The numbers were combined by their mean, geometric mean and median, and by the number
that most of them match within a factor of two, which is used now.
"""
COLUMNS: Final = """\
### Columns that were not, and why trees are hard

Six columns of Adult are each learned as the label, from the same six other features, on 2,365
distinct test vectors: the public facts are the same for all six, and so is the prediction of
`conclave plan`. The columns own child, long hours (above 40) and degree were never learned before
this measurement; the other three had been learned before, from more features.
"""


def section(document: Mapping[str, Json]) -> str:
    """Return the section's Markdown."""
    followed, online, columns, cells = (
        records(document[name]) for name in ("followed", "online", "columns", "cells")
    )
    return "\n".join(
        [
            *followed_section(followed),
            HOW,
            measured_on(document),
            "",
            *online_section(online, HEADING),
            *_columns(columns),
            SEEN,
            HEADING,
            *_groups(told(cells), "task"),
            "",
            *_all(columns, cells, online),
        ]
    )


def _columns(columns: Records) -> list[str]:
    """Return what was predicted of columns that share a prediction, and what any number could."""
    counted = told(columns)
    new = [cell for cell in counted if cell["is_new"]]
    return [
        COLUMNS,
        HEADING,
        *_groups(counted, "task"),
        *(row("the three new ones", people, _of(new, people)) for people in ("shares", "points")),
        "",
        *_ceiling(columns),
    ]


def _ceiling(columns: Records) -> list[str]:
    """Say how often one number for all columns can be right at best, and show a pair."""
    points = _of(columns, "points")
    best = ceiling(points)
    one, other = best.pair_cells
    said = (
        "**What no prediction can do.** Public quantities are the same for all six columns. Suppose"
        " that for each setting one number of labels for all six columns is chosen afterwards, so"
        " that it is right for as many of them as possible. Numbers chosen in this way are within"
        " a factor"
        f" of two in {part(best.right, best.total)} of all cases. The prediction of"
        " `conclave plan`, which was made before, is within a factor of two in"
        f" {share(told(points), is_close)}. So with these trees no method"
        " that uses public quantities alone can be right in nine cases of ten."
        f" Two columns that show this are {one['task']} and {other['task']}, in which even the"
        " shares of the labels are nearly the same (24 % and 25 %). With"
        f" {one['case']}, epsilon"
        f" {one['epsilon']}, T = {one['cutoff']}, `{one['mechanism']}`,"
        f" a release gave {one['labels']:,.0f} labels for the one column and"
        f" {other['labels']:,.0f} for the other; plan predicted {one['predicted']:,.0f}, with"
        f" likelihood {one['likelihood']:.0%}"
        f" ({_otherwise(one)}). In {part(best.pairs_apart, best.pairs)} of all configurations the"
        f" measured numbers for these two columns are more than a factor of {FACTOR**2:g} apart,"
        " so that no"
        " number is within a factor of two of both. The number of labels depends on the tree that"
        " relabels the rows, and so on the private labels: if the tree has a test that only one"
        " or two rows of a chunk meet, the learners disagree."
    )
    return [said, ""]


def _otherwise(cell: Record) -> str:
    rest = cell["otherwise"]
    return "otherwise nothing else" if rest is None else f"otherwise {rest:,.0f}"


def _all(columns: Records, cells: Records, online: Records) -> list[str]:
    """Return the sum of it, and the worst."""
    counted = told([*columns, *cells, *online])
    points = _of(counted, "points")
    without = [cell for cell in points if "trees" not in class_of(cell)]
    trees = [cell for cell in points if "trees" in class_of(cell)]
    unsure = [cell for cell in points if cell["likelihood"] < SURE]
    sure = [cell for cell in points if cell["likelihood"] >= SURE]
    listed = "; ".join(
        f"{_name(cell)} (predicted {cell['predicted']:,.0f}, measured {cell['labels']:,.0f})"
        for cell in worst(points, 5)
    )
    said = (
        f"**All together**, of {len(points):,} settings with public points the prediction is within"
        f" a factor of two in {share(points, is_close)}. The prediction is within a factor of two"
        f" for cells in {share(without, is_close)}, for trees in {share(trees, is_close)}. If the"
        " predicted"
        f" likelihood is {SURE:.0%} or more, the prediction is within a factor of two in"
        f" {share(sure, is_close)}, and otherwise in {share(unsure, is_close)}. With public"
        " frequencies in place of points, the prediction is within a factor of two in"
        f" {share(_of(counted, 'shares'), is_close)}. The worst"
        f" predictions with points, in numbers of labels, are: {listed}."
    )
    return [said]


def _name(cell: Record) -> str:
    return (
        f"{cell.get('task') or cell['data']}, {class_of(cell)}, epsilon {cell['epsilon']},"
        f" `{cell['mechanism']}`, T = {cell['cutoff']}"
    )


def _groups(cells: Records, key: str) -> list[str]:
    """Return a line for each value of a key and each kind of people."""
    return [
        row(str(name), people, _of([cell for cell in cells if cell[key] == name], people))
        for name in dict.fromkeys(cell[key] for cell in cells)
        for people in ("shares", "points")
    ]


def _of(cells: Records, people: str) -> list[Record]:
    return [cell for cell in cells if cell["people"] == people]
