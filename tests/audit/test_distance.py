"""Lemma S on every table of votes of a small ensemble, for two, three and four labels.

Nothing is sampled: each way to cast k votes is compared with each table that
differs from it in one vote.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.privacy.voting.votes import aggregate
from tests.audit.planted.planted_faults import (
    gap_as_distance,
    gap_less_one_as_distance,
    half_gap_as_distance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Aggregate = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]

pytestmark = pytest.mark.audit

VOTES_OF_LABELS = {2: 40, 3: 16, 4: 11}
Table = tuple[int, ...]


@cache
def tables(label_count: int) -> tuple[Table, ...]:
    """Return every way to cast the votes, by stars and bars."""
    votes = VOTES_OF_LABELS[label_count]
    bars = combinations(range(votes + label_count - 1), label_count - 1)
    ends = ((-1, *bar, votes + label_count - 1) for bar in bars)
    return tuple(tuple(right - left - 1 for left, right in pairwise(end)) for end in ends)


def neighbours(table: Table) -> list[Table]:
    """Return every table in which one vote has gone elsewhere."""
    found = []
    for giver, taker in permutations(range(len(table)), 2):
        if table[giver]:
            moved = list(table)
            moved[giver] -= 1
            moved[taker] += 1
            found.append(tuple(moved))
    return found


def violations(compute: Aggregate, label_count: int) -> set[str]:
    """Return what of Lemma S does not hold somewhere."""
    listed = tables(label_count)
    plurality, distance = compute(np.array(listed, dtype=np.int64))
    values = dict(zip(listed, zip(plurality.tolist(), distance.tolist(), strict=True), strict=True))
    found = set()
    for table, (label, away) in values.items():
        for other in neighbours(table):
            other_label, other_away = values[other]
            if abs(away - other_away) > 1:
                found.add("moves by more than 1")
            if label != other_label and (away, other_away) != (0, 0):
                found.add("is not 0 where the plurality changes")
    return found


@pytest.mark.parametrize("label_count", VOTES_OF_LABELS)
def test_the_distance_obeys_the_lemma(label_count: int) -> None:
    """One vote moves it by at most 1, and it is 0 on both sides of every flip."""
    assert violations(aggregate, label_count) == set()


@pytest.mark.parametrize("label_count", VOTES_OF_LABELS)
def test_the_distance_is_its_formula(label_count: int) -> None:
    """It is max(0, ceil(gap / 2) - 1), and the plurality the first of the largest counts."""
    plurality, distance = aggregate(np.array(tables(label_count), dtype=np.int64))
    for table, label, away in zip(tables(label_count), plurality, distance, strict=True):
        first, second = sorted(table, reverse=True)[:2]
        assert away == max(0, -(-(first - second) // 2) - 1)
        assert label == table.index(max(table))


@pytest.mark.parametrize("label_count", VOTES_OF_LABELS)
def test_no_valid_distance_is_much_larger(label_count: int) -> None:
    """It is at most the number of votes to the nearest flip, and at most one short of it."""
    listed = tables(label_count)
    plurality, distance = aggregate(np.array(listed, dtype=np.int64))
    labels = dict(zip(listed, plurality.tolist(), strict=True))
    reached = {
        table: 0
        for table in listed
        if any(labels[other] != labels[table] for other in neighbours(table))
    }
    frontier = list(reached)
    while frontier:
        table = frontier.pop(0)
        for other in neighbours(table):
            if other not in reached:
                reached[other] = reached[table] + 1
                frontier.append(other)
    shortfall = {
        reached[table] - away for table, away in zip(listed, distance.tolist(), strict=True)
    }
    assert shortfall <= {0, 1}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (gap_as_distance, {"moves by more than 1", "is not 0 where the plurality changes"}),
        (
            gap_less_one_as_distance,
            {"moves by more than 1", "is not 0 where the plurality changes"},
        ),
        (half_gap_as_distance, {"is not 0 where the plurality changes"}),
    ],
)
@pytest.mark.parametrize("label_count", VOTES_OF_LABELS)
def test_a_distance_as_printed_is_caught(
    fault: Aggregate, expected: set[str], label_count: int
) -> None:
    """The papers' distances, and half of the gap, break the lemma and are seen to."""
    assert violations(fault, label_count) == expected
