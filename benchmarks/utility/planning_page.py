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
the budget. The measured number is the number of stable answers if every distinct test vector is
asked once, as a mean over 20 orders of the queries. For a noisy vote, it is the number of answers
with which the noise changes one label in a hundred. Each line of a table is about many settings,
whose number the column *settings* has. If both the predicted and the measured number of answers are
below {LABELS_MIN}, the setting is not counted.

* The column *people* says from which public facts `conclave plan` predicts: from the public
  frequencies in the example configurations (*shares*), or from the public points that part B uses
  for its cells (*points*: 1,000 test rows of Adult and 2,000 of Skin, without their labels).
* The column *within 2* says how often `labels`, the predicted number, is within a factor of two of
  the measured number.
* The column *sure* says how often `conclave plan` gives its prediction a likelihood
  (`labels_likelihood`) of {SURE:.0%} or more; the column *within 2 if sure* says how often such a
  prediction is within a factor of two of the measured number.
* The column *in the band* says how often the measured number is between the bounds `labels_low` and
  `labels_high` of the prediction, which should be so four times in five.
* The column *either* says how often the measured number is within a factor of two of `labels` (the
  predicted number) or of `labels_otherwise` (what `conclave plan` predicts for the case that
  `labels` is wrong).
"""

HEADING: Final = (
    "| label, learners | people | settings | within 2 | sure | within 2 if sure | in the band"
    " | either |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)
SEEN: Final = """\
### Columns that were looked at

The next table is about columns of Adult, and the label of Skin, by which the method of prediction
was chosen, so it is more favourable than the tables above. The settings are trees of depth 1 to 3
with 200 to 3,200 learners, epsilon 0.5, 1 and 2, a limit T of 1, 5, 20 and 50 unstable answers, and
the calibrations `profile` and `svt`; for income and Skin also cells.
"""
COLUMNS: Final = """\
### Columns that were not, and why trees are hard

To test predictions on labels that had no influence on the method of prediction, each of six columns
of Adult is used as the label, with six other columns as features and 2,365 distinct test vectors.
The public facts are the same for all six labels, and so is the prediction of `conclave plan`. The
columns own child, long hours (above 40) and degree were never used as labels before this
measurement; the other three columns had been used before, with more features.
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
        "**Public quantities do not determine the number of labels.** They are the same for all six"
        " columns that are used as the label. Suppose that for each setting one number of labels"
        " is chosen after the measurement, so that it is right within a factor of two for as many"
        " of the six columns as possible. Numbers"
        f" chosen in this way are right in {part(best.right, best.total)} of all cases. The"
        " predictions of `conclave plan`, which were made before the measurement, are right in"
        f" {share(told(points), is_close)}. So with these trees no method"
        " that uses public quantities alone can be right in nine cases of ten."
        f" Examples are the columns {one['task']} and {other['task']}, in which even the"
        " frequencies of the labels are nearly equal (24 % and 25 %). With"
        f" {one['case']} learners, epsilon {one['epsilon']}, the limit T = {one['cutoff']} of"
        f" unstable answers and `{one['mechanism']}`,"
        f" a release gave {one['labels']:,.0f} labels for the first column and"
        f" {other['labels']:,.0f} for the second; the plan predicted {one['predicted']:,.0f}"
        f" labels with likelihood {one['likelihood']:.0%}, and"
        f" {_otherwise(one)}. In {part(best.pairs_apart, best.pairs)} of all settings the"
        f" measured numbers for these two columns are more than a factor of {FACTOR**2:g} apart,"
        " so that no"
        " number is within a factor of two of both. The number of labels depends on the tree that"
        " relabels the rows, and so on the private labels: if the tree has a leaf that only one"
        " or two rows of a chunk reach, the models disagree."
    )
    return [said, ""]


def _otherwise(cell: Record) -> str:
    rest = cell["otherwise"]
    return "no other number" if rest is None else f"{rest:,.0f} labels otherwise"


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
        f"**Over all settings**, with public points {share(points, is_close)} of {len(points):,}"
        " predictions are within a factor of two of the measured number:"
        f" {share(without, is_close)} of those for cells, and {share(trees, is_close)} of those"
        f" for trees. If `conclave plan` gives a prediction a likelihood of {SURE:.0%} or more,"
        f" {share(sure, is_close)} are within a factor of two, and otherwise"
        f" {share(unsure, is_close)}. With public frequencies instead of public points,"
        f" {share(_of(counted, 'shares'), is_close)} are within a factor of two. The worst"
        f" predictions with public points, in numbers of labels, are those for the following"
        " settings (the first word is the data set, or the column that is the label; canonical is a"
        " training rule, k the number of models, and T the limit of unstable answers):"
        f" {listed}."
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
