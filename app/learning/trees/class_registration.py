"""The table entries of the hypothesis classes ``trees`` and ``stumps``, and the time of training.

The time of training trees by a built-in rule is estimated from the public numbers of tests, labels,
rows and chunks, and from the depth of the trees. The constants were measured on one core of a
server with the 86 feature tests of ``benchmarks/deep_trees.py``. A configuration is refused if the
estimate is more than an hour.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.learning.chunks import DEFAULT_RULE
from app.learning.encoding.feature_codes import CellCodes
from app.learning.enumerated.enumerated_class import EnumeratedClass
from app.learning.hypothesis import ClassRegistration
from app.learning.trees.counted_fit import LABELS, CountedTrees
from app.learning.trees.learners import fit_tree, fit_trees
from app.learning.trees.packed_trees import PACKED_TESTS_MAX, PackedTrees, TreeEnsemble
from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.learning.trees.tree_lists import tree_count_bound, tree_dichotomies
from app.learning.trees.tree_search import DEPTH_OF_TRIPLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.encoding.encoded_rows import EncodedRows
    from app.learning.enumerated.hypothesis_list import Encoded
    from app.learning.enumerated.thresholds import ThresholdClass
    from app.learning.hypothesis import ClassAsked

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
    """Return an estimate of the seconds that training the models of all chunks takes.

    Args:
        rule: the built-in learner, ``canonical`` or ``halving``.
        test_count: the number of public feature tests.
        depth: the depth of the trees. Each level beyond the third multiplies the work by twice the
            number of tests.
        class_count: the number of labels.
        row_count: the number of rows in all chunks together.
        chunk_count: the number of chunks.

    """
    searches = math.prod([2 * test_count] * (depth - DEPTH_OF_TRIPLES))
    leaves = math.prod([test_count] * min(depth, DEPTH_OF_TRIPLES)) / 2
    a_search = SEARCH_SECONDS + leaves * SIDES_OF_PAIR * class_count * LEAF_SECONDS
    seconds = searches * (chunk_count * a_search + row_count * leaves * ROW_SECONDS)
    return seconds * (HALVING_FACTOR if rule == "halving" else 1.0)


def refuse_long_search(rule: str, searched: TreeClass, *, row_count: int, chunk_count: int) -> None:
    """Refuse trees whose training is estimated to take more than an hour.

    Args:
        rule: the built-in learner, ``canonical`` or ``halving``.
        searched: the class of trees.
        row_count: the number of rows in all chunks together.
        chunk_count: the number of chunks.

    Raises:
        ConfigurationError: the estimate is more than an hour; the error names
            ``hypotheses.depth``.

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


def _make(asked: ClassAsked) -> TreeClass:
    depth = asked.depth if asked.tests else 0
    return TreeClass(tests=tuple(asked.tests), depth=depth, class_count=asked.class_count)


def _dichotomies(asked: ClassAsked, values: NDArray[np.float64]) -> EnumeratedClass:
    trees = tree_dichotomies(values, asked.used, depth=asked.depth, class_count=asked.class_count)
    return EnumeratedClass(trees, len(trees).bit_length() - 1)


def _bound(asked: ClassAsked, row_count: int) -> int:
    return tree_count_bound(row_count, asked.used, depth=asked.depth, class_count=asked.class_count)


def _fit(
    rule: str,
    *,
    hypothesis_class: TreeClass | ThresholdClass,
    encoded: EncodedRows,
    **given: object,
) -> TreeEnsemble:
    fitted = fit_trees(rule, bits=encoded, hypothesis_class=hypothesis_class, **given)  # type: ignore[arg-type]  # as any row is given
    return TreeEnsemble(hypothesis_class.tests, fitted)


def _counted(rule: str, searched: TreeClass, scored: bool) -> CountedTrees | None:  # noqa: FBT001 -- as any row is given
    """Return what fits learners from counts; None where the rule reads rows."""
    if rule != DEFAULT_RULE or scored or searched.class_count != LABELS:
        return None
    return CountedTrees.over(searched.tests, searched.depth)


def _packed(searched: TreeClass, trees: NDArray[np.int64]) -> TreeEnsemble:
    """Return learners of one tree each."""
    fitted = PackedTrees(trees, depth=searched.depth, class_count=searched.class_count)
    return TreeEnsemble(searched.tests, fitted)


def _best(
    searched: TreeClass | ThresholdClass, encoded: Encoded, labels: NDArray[np.int64]
) -> Tree:
    return fit_tree(searched, encoded.astype(np.uint8, copy=False), labels)


def _check(searched: TreeClass | ThresholdClass, rule: str, scored: bool) -> None:  # noqa: FBT001 -- as any row is given
    """Refuse more tests than a learner's trees hold."""
    del rule, scored
    count = len(searched.tests)
    if count > PACKED_TESTS_MAX:
        problem = f"gives {count} tests, and a learner's trees hold at most {PACKED_TESTS_MAX}"
        raise ConfigurationError("hypotheses", f"{problem}: list fewer")


def _seconds(rule: str, searched: TreeClass, row_count: int) -> float:
    return search_seconds(
        rule,
        test_count=len(searched.tests),
        depth=searched.depth,
        class_count=searched.class_count,
        row_count=row_count,
        chunk_count=1,
    )


TREES: Final = ClassRegistration(
    kind="trees",
    searched=TreeClass,
    hypothesis=Tree,
    drawn="a tree",
    takes_tests=True,
    covers=True,
    make=_make,
    dichotomies=_dichotomies,
    dichotomy_bound=_bound,
    fit=_fit,
    counted=_counted,
    packed=_packed,
    codes=lambda searched: CellCodes.of(searched.tests),
    joined=lambda searched, fitted: TreeEnsemble.joined(searched.tests, fitted),
    read=lambda searched, body: TreeEnsemble.from_bytes(searched.tests, body),
    read_drawn=Tree.from_dict,
    best=_best,
    check=_check,
    tests=lambda searched: searched.tests,
    search_seconds=_seconds,
    refuse_search=refuse_long_search,
    refuse_rows=TreeClass.refuse_rows,
)
STUMPS: Final = replace(
    TREES,
    kind="stumps",
    drawn="a tree of one test",
    make=lambda asked: _make(replace(asked, depth=1)),
    dichotomies=lambda asked, values: _dichotomies(replace(asked, depth=1), values),
    dichotomy_bound=lambda asked, row_count: _bound(replace(asked, depth=1), row_count),
)
