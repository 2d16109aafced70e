"""What the built-in rules would take hours to search is refused by public numbers."""

from __future__ import annotations

import pytest

from app.errors import ConfigurationError
from app.learning.trees.class_registration import refuse_long_search, search_seconds
from app.learning.trees.tree_class import TreeClass
from tests.builders.learners.enumeration import unit_tests


def _seconds(
    rule: str = "canonical", *, tests: int = 86, depth: int = 3, chunk_count: int = 500
) -> float:
    return search_seconds(
        rule,
        test_count=tests,
        depth=depth,
        class_count=2,
        row_count=32_561,
        chunk_count=chunk_count,
    )


@pytest.mark.parametrize(
    ("rule", "tests", "depth"),
    [
        ("canonical", 86, 3),
        ("halving", 86, 3),
        ("canonical", 86, 4),
        ("canonical", 10, 5),
        ("canonical", 2, 8),
        ("halving", 30, 4),
        ("canonical", 5000, 2),
    ],
)
def test_what_takes_minutes_is_fitted(rule: str, tests: int, depth: int) -> None:
    """Five hundred learners search 86 tests to depth 4, or ten to depth 5."""
    trees = TreeClass(tests=unit_tests(tests), depth=depth, class_count=2)
    refuse_long_search(rule, trees, row_count=32_561, chunk_count=500)


@pytest.mark.parametrize(
    ("rule", "tests", "depth"),
    [("halving", 86, 4), ("canonical", 86, 5), ("canonical", 12, 7), ("canonical", 1000, 3)],
)
def test_what_takes_hours_is_refused_by_name(rule: str, tests: int, depth: int) -> None:
    """The line names the key, the rule, the depth and the number of learners."""
    trees = TreeClass(tests=unit_tests(tests), depth=depth, class_count=2)
    with pytest.raises(ConfigurationError, match=rf"{rule} rule .* hours .* depth {depth} over"):
        refuse_long_search(rule, trees, row_count=32_561, chunk_count=500)


def test_a_level_more_searches_both_sides_of_every_test() -> None:
    """Beyond three levels each costs 2 t times as much, and learners add up."""
    assert _seconds(depth=5) == pytest.approx(172**2 * _seconds(depth=3))
    assert _seconds(chunk_count=500) < _seconds(chunk_count=1000) < 2 * _seconds(chunk_count=500)
    assert _seconds(depth=1) < _seconds(depth=2) < _seconds(depth=3) < _seconds("halving")
