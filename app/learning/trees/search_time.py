"""How long the built-in rules search trees, from public numbers only.

The constants are those of one core of a server, measured with the 86 tests of
``benchmarks/deep_trees.py``; what is refused lies far beyond their error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.learning.trees.search import DEPTH_OF_TRIPLES

if TYPE_CHECKING:
    from app.learning.trees.tree_class import TreeClass

SECONDS_MAX: Final = 3600.0
# A search of three levels: its calls, each leaf and label on the sides of two
# tests, and each row that two tests are counted on.
SEARCH_SECONDS: Final = 3e-4
LEAF_SECONDS: Final = 3e-9
ROW_SECONDS: Final = 3e-11
SIDES_OF_PAIR: Final = 4
# The halving rule adds logarithms of weights, and grows a hundred trees.
HALVING_FACTOR: Final = 12.0


def search_seconds(
    rule: str,
    *,
    test_count: int,
    depth: int,
    class_count: int,
    row_count: int,
    chunk_count: int,
) -> float:
    """Estimate the seconds that fitting all chunks takes.

    Args:
        rule: ``canonical`` or ``halving``.
        test_count: t.
        depth: levels of tests; each beyond three searches both sides of all tests.
        class_count: number of labels.
        row_count: rows of all chunks.
        chunk_count: k.

    """
    searches = math.prod([2 * test_count] * (depth - DEPTH_OF_TRIPLES))
    leaves = math.prod([test_count] * min(depth, DEPTH_OF_TRIPLES)) / 2
    a_search = SEARCH_SECONDS + leaves * SIDES_OF_PAIR * class_count * LEAF_SECONDS
    seconds = searches * (chunk_count * a_search + row_count * leaves * ROW_SECONDS)
    return seconds * (HALVING_FACTOR if rule == "halving" else 1.0)


def refuse_long_search(rule: str, searched: TreeClass, *, row_count: int, chunk_count: int) -> None:
    """Refuse learners that would take hours to fit.

    Raises:
        ConfigurationError: names ``hypotheses.depth``.

    """
    seconds = search_seconds(
        rule,
        test_count=len(searched.tests),
        depth=searched.depth,
        class_count=searched.class_count,
        row_count=row_count,
        chunk_count=chunk_count,
    )
    if seconds > SECONDS_MAX:
        problem = (
            f"the {rule} rule takes about {seconds / SECONDS_MAX:.2g} hours to search trees of "
            f"depth {searched.depth} over {len(searched.tests)} tests for {chunk_count} learners: "
            "lower it, list fewer tests or give learner.estimator; classifier.depth may be larger"
        )
        raise ConfigurationError("hypotheses.depth", problem)
