"""The page on predictions counts what it says it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.utility.planning_columns import PAIR
from benchmarks.utility.planning_counts import (
    ceiling,
    is_close,
    is_close_to_either,
    is_in_band,
    part,
    row,
    told,
    worst,
)
from benchmarks.utility.planning_page import section
from benchmarks.utility.results import as_text

FIRST, SECOND = PAIR


def cell(task: str, labels: float, predicted: float, **changes: object) -> dict[str, Any]:
    """A measured cell with public points, and whatever a test changes of it."""
    usual = {
        "task": task,
        "is_new": True,
        "case": "trees of depth 2, k = 800",
        "people": "points",
        "epsilon": "1",
        "cutoff": 5,
        "mechanism": "profile",
        "labels": labels,
        "E": labels,
        "predicted": predicted,
        "likelihood": 0.6,
        "otherwise": 200.0,
        "low": 150.0,
        "high": 15_000.0,
        "predicted_E": predicted,
    }
    return usual | changes


@pytest.mark.parametrize(
    ("labels", "close", "either", "band"),
    [
        (15_000, True, True, True),
        (7_500, True, True, True),
        (7_499, False, False, True),
        (110, False, True, False),
        (399, False, True, True),
        (90, False, False, False),
    ],
)
def test_a_factor_of_two_is_counted_either_way(
    labels: float, *, close: bool, either: bool, band: bool
) -> None:
    """Twice and half are within, a hair more is not; either number counts, and the band's ends."""
    found = cell("a", labels, 15_000)
    assert (is_close(found), is_close_to_either(found), is_in_band(found)) == (close, either, band)


def test_few_labels_and_refused_cells_are_not_told() -> None:
    """Both numbers below ten say nothing, and cells by shares are not predicted at all."""
    listed = [
        cell("a", 3, 9),
        cell("a", 3, 10),
        cell("a", 50, 50, case="cells of 0.02", people="shares"),
        cell("a", 50, 50, people="shares"),
    ]
    assert told(listed) == [listed[1], listed[3]]


def test_no_one_number_is_right_for_columns_that_differ() -> None:
    """Of four columns a number is right for the two that agree at most; pairs are counted."""
    listed = [cell(FIRST, 400, 0), cell(SECOND, 90, 0), cell("x", 15_000, 0), cell("y", 4_000, 0)]
    alike = [each | {"cutoff": 1, "labels": 100.0} for each in listed]
    found = ceiling([*listed, *alike])
    assert (found.right, found.total) == (2 + 4, 8)
    assert (found.pairs_apart, found.pairs) == (1, 2)
    assert [each["labels"] for each in found.pair_cells] == [400, 90]


def test_shares_are_not_rounded_up() -> None:
    """Nine hundred and ninety-nine of a thousand are not all."""
    assert (part(999, 1000), part(0, 0), part(2, 3)) == ("99%", "-", "66%")


def test_a_line_counts_where_plan_is_sure() -> None:
    """Two of three close, one of them sure and right."""
    listed = [cell("a", 100, 100, likelihood=1.0), cell("a", 100, 150), cell("a", 100, 9000)]
    assert row("a", "points", listed).startswith("| a | points | 3 | 66% | 33% | 100% |")
    assert worst(listed, 1) == [listed[2]]


def test_the_section_is_printed_from_what_was_kept() -> None:
    """Every part has its table, and the pair is named with what both gave."""
    published = {"data": "adult", "epsilon": "1", "class": "published", "learner": "linear"}
    followed = cell("a", 100, 100) | {"data": "adult", "class": "trees", "k": 800, "T": 5}
    columns = [cell(name, labels, 400) for name, labels in ((FIRST, 15_032), (SECOND, 157))]
    document: dict[str, Any] = {
        "commit": "c", "machine": "m", "processors": 2, "load": 1, "python": "3", "at": "2026",
        "followed": [
            published | {"accuracy": 0.8},
            followed | {"relabel": 0.1, "accuracy": 0.8, "best": None},
        ],
        "online": [cell("a", 1, 1) | {"data": "adult", "setting": "cells of 1", "method": "cells"}],
        "columns": columns,
        "cells": [cell("income", 100, 100)],
    }  # fmt: skip
    said = section(document)
    assert f"{FIRST} and {SECOND}" in said
    assert "15,032 labels for the first column and 157 for the second" in said
    assert "| `linear` | 0.8000 |" in said
    assert "| income | points | 1 | 100% |" in said


def test_results_are_json_with_a_line_a_record() -> None:
    """What is kept reads back as it was, and lists take a line for each of their records."""
    document: dict[str, Any] = {"commit": "c", "load": 1.5, "cells": [{"a": 1}, {"a": None}]}
    said = as_text(document)
    assert json.loads(said) == document
    assert said.splitlines()[4:6] == ['{"a":1},', '{"a":null}']
