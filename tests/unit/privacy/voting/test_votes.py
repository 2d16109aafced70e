"""From votes to a plurality and a distance, on examples worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvariantError
from app.privacy.voting.votes import Tally, aggregate, tally, tally_alone


@pytest.mark.parametrize(
    ("votes", "plurality", "distance"),
    [
        ((5, 5), 0, 0),
        ((5, 6), 1, 0),
        ((6, 4), 0, 0),
        ((4, 7), 1, 1),
        ((8, 4), 0, 1),
        ((3, 8), 1, 2),
        ((800, 0), 0, 399),
        ((0, 801), 1, 400),
        ((0, 0), 0, 0),
        ((3, 3, 3), 0, 0),
        ((1, 4, 4), 1, 0),
        ((0, 1, 8), 2, 3),
        ((7, 0, 0), 0, 3),
        ((2, 9, 1, 4), 1, 2),
        ((0, 0, 5, 5), 2, 0),
    ],
)
def test_votes_give_their_plurality_and_distance(
    votes: tuple[int, ...], plurality: int, distance: int
) -> None:
    """The first of the largest counts wins, at max(0, ceil(gap / 2) - 1)."""
    labels, distances = aggregate(np.array([votes], dtype=np.int64))
    assert (labels.tolist(), distances.tolist()) == ([plurality], [distance])


def test_a_batch_is_its_rows_one_by_one() -> None:
    """Every row is aggregated by itself, whatever stands beside it."""
    votes = np.array([[3, 3, 1], [0, 6, 1], [2, 0, 5]], dtype=np.int64)
    labels, distances = aggregate(votes)
    alone = [aggregate(votes[index : index + 1]) for index in range(3)]
    assert labels.tolist() == [label[0] for label, _ in alone]
    assert distances.tolist() == [distance[0] for _, distance in alone]


def test_no_query_gives_no_row() -> None:
    """An empty batch is aggregated to nothing."""
    labels, distances = aggregate(np.empty((0, 2), dtype=np.int64))
    assert len(labels) == len(distances) == 0


def test_votes_are_left_as_they_are() -> None:
    """The table of votes is not written to."""
    votes = np.array([[4, 9, 1]], dtype=np.int64)
    votes.flags.writeable = False
    aggregate(votes)
    assert votes.tolist() == [[4, 9, 1]]


@pytest.mark.parametrize(
    ("votes", "claim"),
    [
        ([1, 2], "votes are a table"),
        ([[3]], "two or more classes"),
        ([[[1, 2]]], "votes are a table"),
        ([[4, -1]], "a vote count is not negative"),
    ],
)
def test_what_is_no_table_of_votes_is_refused(votes: list[object], claim: str) -> None:
    """Another shape, and a negative count, raise."""
    with pytest.raises(InvariantError, match=claim):
        aggregate(np.array(votes, dtype=np.int64))


def test_a_tally_holds_what_each_mechanism_takes() -> None:
    """Plurality, distance and counts of every row, in plain integers."""
    votes = np.array([[3, 9, 0], [4, 4, 4]], dtype=np.int64)
    assert tally(votes) == [Tally(1, 2, (3, 9, 0)), Tally(0, 0, (4, 4, 4))]
    assert tally(np.empty((0, 2), dtype=np.int64)) == []
    (first, _) = tally(votes)
    assert {type(count) for count in (first.plurality, first.distance, *first.counts)} == {int}


@given(counts=st.lists(st.integers(0, 2000), min_size=2, max_size=6))
def test_votes_alone_come_to_what_they_come_to_in_a_table(counts: list[int]) -> None:
    """Plurality, distance and counts of one query are the same, ties and whole numbers too."""
    alone = tally_alone(counts)
    assert [alone] == tally(np.array([counts], dtype=np.int64))
    assert {type(each) for each in (alone.plurality, alone.distance, *alone.counts)} == {int}


@pytest.mark.parametrize("counts", [[3], [4, -1]])
def test_what_are_no_votes_is_refused_alone_too(counts: list[int]) -> None:
    """A single class, and a negative count, raise."""
    with pytest.raises(InvariantError):
        tally_alone(counts)
