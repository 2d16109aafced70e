"""Counts of regions, and the numbers of their entries in tables."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from app.learning.trees.regions import MergedRows, RegionStatistics, exact_outcomes
from app.learning.trees.upper_level_weights import (
    multiset_count,
    multiset_rank,
    multiset_ranks,
    multisets,
)


def test_statistics_are_those_of_the_rows() -> None:
    """Rows are merged without changing a count."""
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2, (400, 4), dtype=np.uint8)
    labels = generator.integers(0, 3, 400)
    rows = MergedRows.of(bits, labels, 3)
    assert len(rows.packed) <= 2**4
    inside = (bits[:, 1] == 1) & (bits[:, 3] == 0)
    flat = rows.restricted(1, 1).restricted(3, 0).statistics()
    statistics = RegionStatistics.of(flat[np.newaxis], test_count=4, class_count=3)
    chosen = [bits[inside & (labels == label)].astype(np.int64) for label in range(3)]
    assert np.array_equal(statistics.totals[0], [len(part) for part in chosen])
    assert np.array_equal(statistics.singles[0], [part.sum(axis=0) for part in chosen])
    products = [part.T @ part for part in chosen]
    assert np.array_equal(statistics.signed[0], [product - products[0] for product in products[1:]])


def test_exact_outcomes_follow_from_differences() -> None:
    """Counts by what at least holds give counts by what exactly holds."""
    generator = np.random.default_rng(2)
    exact = generator.integers(0, 9, (2, 8, 3)).astype(np.float64)
    satisfied = np.zeros_like(exact)
    for subset in range(8):
        for more in range(8):
            if subset & more == subset:
                satisfied[:, subset] += exact[:, more]
    assert np.array_equal(exact_outcomes(satisfied), exact)


def test_multisets_are_numbered_without_a_gap() -> None:
    """Ranks run from zero to the count, one by one or as an array."""
    for size in range(4):
        listed = list(combinations_with_replacement(range(5), size))
        assert sorted(map(multiset_rank, listed)) == list(range(multiset_count(5, size)))
        ordered = multisets(5, size)
        assert np.array_equal(multiset_ranks(ordered, 5), np.arange(len(listed)))
        assert [multiset_rank(members) for members in ordered.tolist()] == list(range(len(listed)))
