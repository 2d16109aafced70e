"""The public rule behind ``ensemble = "auto"``."""

from __future__ import annotations

from fractions import Fraction

import pytest

from app.errors import InvariantError
from app.privacy.budget.ensemble_size import (
    chunk_row_min,
    distance_at_unanimity,
    ensemble_size_auto,
    largest_hit_probability,
    size_at_unanimity,
    wanted_hit_probability,
)
from app.privacy.mechanisms import size_wanted
from app.privacy.stability.hit_table import ProfileTable, calibrate


@pytest.fixture(scope="module")
def table() -> ProfileTable:
    """A short table with a cutoff of two."""
    return calibrate(epsilon=Fraction(4), delta=Fraction(1, 10**6), cutoff=2)


def test_two_thirds_of_the_votes_reach_the_distance(table: ProfileTable) -> None:
    """With k votes of which two thirds agree, hits use up at most a tenth of the cutoff."""
    size = size_wanted(table=table, query_count=1000)
    gap = size // 3
    distance = max(0, (gap + 1) // 2 - 1)
    assert 1000 * table.hit_probability(distance) <= table.cutoff / 10
    assert 1000 * table.hit_probability(distance - 1) > table.cutoff / 10


@pytest.mark.parametrize(("query_count", "expected"), [(1, 0.01), (20, 0.01), (1000, 2e-4)])
def test_wanted_hits_use_a_tenth_of_the_cutoff(query_count: int, expected: float) -> None:
    """It is a hundredth, or what spreads a tenth of the cutoff over the queries."""
    assert wanted_hit_probability(query_count, 2) == pytest.approx(expected)


@pytest.mark.parametrize(("query_count", "expected"), [(1, 0.01), (200, 0.01), (1000, 2e-3)])
def test_largest_hits_use_the_whole_cutoff(query_count: int, expected: float) -> None:
    """It is a hundredth, or what spreads the whole cutoff over the queries."""
    assert largest_hit_probability(query_count, 2) == pytest.approx(expected)


@pytest.mark.parametrize("distance", [0, 1, 2, 17, 400])
def test_size_at_unanimity_is_the_smallest(distance: int) -> None:
    """The size found is the smallest whose unanimous votes lie at the distance."""
    size = size_at_unanimity(distance)
    assert distance_at_unanimity(size) == distance
    assert size == 1 or distance_at_unanimity(size - 1) < distance


@pytest.mark.parametrize(
    ("hypothesis_count", "expected"), [(1, 20), (10**6, 20), (10**12, 28), (8**7 * 2**8, 21)]
)
def test_chunks_keep_rows_for_their_class(hypothesis_count: int, expected: int) -> None:
    """Larger classes keep more rows a chunk, never below twenty."""
    assert chunk_row_min(hypothesis_count) == expected


def test_rows_cap_the_size(table: ProfileTable) -> None:
    """Few rows make few chunks; many rows make no more than are wanted."""
    wanted = size_wanted(table=table, query_count=1000)
    sizes = [
        ensemble_size_auto(row_count=row_count, wanted=wanted, hypothesis_count=1000)
        for row_count in (1, 100, 20 * wanted, 10**9)
    ]
    assert sizes == [1, 5, wanted, wanted]


def test_no_rows_make_no_ensemble() -> None:
    """The public n is at least one."""
    with pytest.raises(InvariantError):
        ensemble_size_auto(row_count=0, wanted=1, hypothesis_count=1)
