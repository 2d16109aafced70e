"""Every labelling that a whole class gives points is listed exactly once."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest, evaluate
from app.learning.encoding.public_columns import PublicColumn
from app.learning.enumerated.enumerated_class import SIZE_MAX
from app.learning.enumerated.hypothesis_list import count_errors
from app.learning.hypothesis import ClassAsked
from app.learning.registry import (
    dichotomy_class,
    dichotomy_count_bound,
    hypothesis_class,
    row_of,
)
from app.learning.trees.tree import Tree
from app.learning.trees.tree_lists import TreeList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

NUMBER = PublicColumn(bounds=(0.0, 9.0))
COLUMNS = (NUMBER, PublicColumn(category_count=2), NUMBER)
BOX_KINDS = ("thresholds", "intervals", "rectangles")
# Far finer than the points, and one beyond either end.
FINE = (-np.inf, *np.arange(-0.25, 10.0, 0.5), np.inf)


def points(count: int, seed: int) -> NDArray[np.float64]:
    """Return points with repeated and missing values."""
    generator = np.random.default_rng(seed)
    values = generator.choice([0.0, 1.0, 2.0, 5.0, 9.0, np.nan], (count, 3))
    values[:, 1] = generator.integers(0, 4, count)
    return values


def sides(kind: str, column: NDArray[np.float64]) -> Iterator[NDArray[np.bool_]]:
    """Yield who is in each range of one feature; missing lies below every number."""
    known = np.where(np.isnan(column), -1e9, column)
    for lower, upper in product(FINE, FINE):
        if kind != "thresholds" or upper == np.inf:
            yield (known >= lower) & (known < upper)


def box_labelings(kind: str, values: NDArray[np.float64]) -> set[bytes]:
    """Return every labelling by a family of boxes, from its definition."""
    found = {np.zeros(len(values), dtype=bool).tobytes()}
    ranges = {feature: list(sides(kind, values[:, feature])) for feature in (0, 2)}
    for feature in (0, 2):
        found.update(side.tobytes() for side in ranges[feature])
    if kind == "rectangles":
        pairs = product(*(np.unique(ranges[feature], axis=0) for feature in (0, 2)))
        found.update((one & other).tobytes() for one, other in pairs)
    return found


def tree_labelings(values: NDArray[np.float64], *, depth: int, class_count: int) -> set[bytes]:
    """Return every labelling by trees over all cuts and categories, from its definition."""
    tests = [
        BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)
        for feature in (0, 2)
        for cut in (-1.0, 0.0, 1.0, 2.0, 5.0, 9.0)
    ]
    tests += [
        BinaryTest(feature_index=1, cut=None, category_code=code, public_frequency=0.5)
        for code in range(4)
    ]
    bits = np.unique(evaluate(tests, values), axis=1)
    found = set()
    for chosen in product(range(bits.shape[1]), repeat=2**depth - 1):
        for labels in product(range(class_count), repeat=2**depth):
            tree = Tree(test_indices=chosen, leaf_labels=labels)
            found.add(tree.predict(bits).astype(np.uint8).tobytes())
    return found


def listed_labelings(
    kind: str, values: NDArray[np.float64], *, depth: int = 1, class_count: int = 2
) -> list[bytes]:
    """Return the labelling by each hypothesis of the class of dichotomies."""
    listed = dichotomy_class(
        ClassAsked(kind=kind, columns=COLUMNS, depth=depth, class_count=class_count), values
    )
    labels = listed.hypotheses.predict(listed.encode(values))
    return [each.astype(np.uint8).tobytes() for each in labels]


@pytest.mark.parametrize("kind", BOX_KINDS)
@pytest.mark.parametrize(("count", "seed"), [(1, 0), (2, 1), (5, 2), (8, 3), (8, 4)])
def test_boxes_with_any_cut_are_listed_once(kind: str, count: int, seed: int) -> None:
    """Two numbers, a missing one among them; cuts far finer than the points find no more."""
    values = points(count, seed)
    found = listed_labelings(kind, values)
    assert len(found) == len(set(found))
    assert set(found) == box_labelings(kind, values)
    bound = dichotomy_count_bound(
        ClassAsked(kind=kind, columns=COLUMNS, depth=1, class_count=2), count
    )
    assert len(found) <= bound


@pytest.mark.parametrize(
    ("kind", "depth", "class_count", "count"),
    [("stumps", 5, 2, 6), ("stumps", 1, 3, 5), ("trees", 1, 2, 6), ("trees", 2, 2, 3)],
)
def test_trees_with_any_test_are_listed_once(
    kind: str, depth: int, class_count: int, count: int
) -> None:
    """Cuts anywhere, every category, other and missing; stumps whatever the depth says."""
    values = points(count, seed=7)
    found = listed_labelings(kind, values, depth=depth, class_count=class_count)
    assert len(found) == len(set(found))
    levels = 1 if kind == "stumps" else depth
    assert set(found) == tree_labelings(values, depth=levels, class_count=class_count)
    bound = dichotomy_count_bound(
        ClassAsked(kind=kind, columns=COLUMNS, depth=depth, class_count=class_count), count
    )
    assert len(found) <= bound


@pytest.mark.parametrize("kind", [*BOX_KINDS, "stumps", "trees"])
def test_points_that_are_alike_leave_the_constants(kind: str) -> None:
    """Nothing parts them."""
    assert len(listed_labelings(kind, np.repeat(points(1, 5), 4, axis=0), depth=2)) == 2


@pytest.mark.parametrize("kind", BOX_KINDS)
def test_points_in_general_position_attain_the_bound_on_one_feature(kind: str) -> None:
    """The growth function of thresholds and of intervals is exact."""
    values = np.arange(7.0)[:, np.newaxis]
    listed = dichotomy_class(
        ClassAsked(kind=kind, columns=[NUMBER], depth=1, class_count=2), values
    )
    assert listed.size == dichotomy_count_bound(
        ClassAsked(kind=kind, columns=[NUMBER], depth=1, class_count=2), 7
    )
    assert listed.size == {"thresholds": 8, "intervals": 29, "rectangles": 29}[kind]
    assert listed.dimension == {"thresholds": 1, "intervals": 2, "rectangles": 2}[kind]


@pytest.mark.parametrize("kind", [*BOX_KINDS, "stumps", "trees"])
def test_rows_of_boxes_have_codes_and_rows_of_listed_trees_have_none(kind: str) -> None:
    """Boxes count rows by the ranks of their numbers; a list of trees counts rows one by one."""
    values = points(8, seed=3)
    listed = dichotomy_class(ClassAsked(kind=kind, columns=COLUMNS, depth=1, class_count=2), values)
    assert (row_of(listed).codes(listed) is not None) == (kind in BOX_KINDS)


def test_features_that_are_left_out_part_no_point() -> None:
    """Only the feature in use counts, in the list and in its bound."""
    values = points(8, seed=3)
    listed = dichotomy_class(
        ClassAsked(kind="intervals", columns=COLUMNS, depth=1, class_count=2, features=[2]), values
    )
    alone = dichotomy_class(
        ClassAsked(kind="intervals", columns=[NUMBER], depth=1, class_count=2), values[:, 2:]
    )
    assert listed.size == alone.size
    bound = dichotomy_count_bound(
        ClassAsked(kind="intervals", columns=COLUMNS, depth=1, class_count=2, features=[2]), 8
    )
    assert bound == 8 * 9 // 2 + 1


def test_too_many_are_refused_by_public_numbers() -> None:
    """Rows that are all alike are refused as any other rows of that number."""
    alike = np.zeros((200, 3))
    assert (
        dichotomy_count_bound(
            ClassAsked(kind="rectangles", columns=COLUMNS, depth=1, class_count=2), 200
        )
        > SIZE_MAX
    )
    with pytest.raises(ConfigurationError, match="labellings by rectangles of 200 rows number"):
        dichotomy_class(
            ClassAsked(kind="rectangles", columns=COLUMNS, depth=1, class_count=2), alike
        )
    with pytest.raises(ConfigurationError, match=r"number about 10\^[0-9]+,"):
        dichotomy_class(ClassAsked(kind="trees", columns=COLUMNS, depth=16, class_count=2), alike)
    with pytest.raises(ConfigurationError, match="ask up to 79999 tests"):
        dichotomy_count_bound(
            ClassAsked(kind="stumps", columns=[NUMBER], depth=1, class_count=2), 80_000
        )


def test_labels_and_kinds_that_there_are_not_are_refused() -> None:
    """As for a public grid."""
    with pytest.raises(ConfigurationError, match="intervals need two classes"):
        dichotomy_class(
            ClassAsked(kind="intervals", columns=COLUMNS, depth=1, class_count=3), points(3, 1)
        )
    with pytest.raises(ConfigurationError, match="unknown class 'ovals'"):
        dichotomy_count_bound(ClassAsked(kind="ovals", columns=COLUMNS, depth=1, class_count=2), 3)
    with pytest.raises(ConfigurationError, match="rectangles need two classes"):
        hypothesis_class(ClassAsked(kind="rectangles", tests=(), depth=1, class_count=3))


@pytest.mark.parametrize(("depth", "class_count"), [(0, 3), (1, 2), (1, 3), (2, 2)])
def test_errors_of_listed_trees_are_those_of_their_predictions(
    depth: int, class_count: int
) -> None:
    """Stumps are counted from both sides of their tests, deeper trees by predicting."""
    generator = np.random.default_rng(8)
    values, labels = points(20, seed=9), generator.integers(0, class_count, 20)
    listed = dichotomy_class(
        ClassAsked(kind="trees", columns=COLUMNS, depth=depth, class_count=class_count), values[:3]
    ).hypotheses
    encoded = listed.encode(values)
    expected = (listed.predict(encoded) != labels).sum(axis=1)
    assert listed.error_counts(encoded, labels).tolist() == expected.tolist()
    assert count_errors(listed, encoded, labels).tolist() == expected.tolist()
    assert len(listed.public_frequencies) == len(listed)


def test_a_listed_tree_is_described_by_its_tests() -> None:
    """The description of a tree needs no list of tests beside it."""
    tests = (
        BinaryTest(feature_index=0, cut=2.0, category_code=None, public_frequency=0.5),
        BinaryTest(feature_index=1, cut=None, category_code=3, public_frequency=0.5),
    )
    listed = TreeList(tests, np.array([[1, 0, 2], [0, 1, 1]]), depth=1, class_count=300)
    assert listed.describe(0) == {
        "kind": "tree",
        "tests": [{"feature": 1, "at_least": None, "category_code": 3}],
        "leaf_labels": [0, 2],
    }
    assert listed.predict(np.array([[0, 1]], dtype=np.uint8)).tolist() == [[2], [1]]


def test_halfspaces_are_listed_by_name() -> None:
    """Over a public grid and over the points themselves, with the bound of Schlaefli."""
    tests = [
        BinaryTest(feature_index=feature, cut=4.5, category_code=None, public_frequency=0.5)
        for feature in (0, 2)
    ]
    grid = hypothesis_class(
        ClassAsked(kind="halfspaces", tests=tests, depth=1, class_count=2, columns=COLUMNS)
    )
    assert (grid.size, grid.dimension) == (14, 3)
    values = np.array([[0.0, 0, 0.0], [0.0, 0, 9.0], [9.0, 1, 0.0], [9.0, 0, 9.0]])
    listed = dichotomy_class(
        ClassAsked(kind="halfspaces", columns=COLUMNS, depth=1, class_count=2, features=(0, 2)),
        values,
    )
    assert listed.size == 14
    bound = dichotomy_count_bound(
        ClassAsked(kind="halfspaces", columns=COLUMNS, depth=1, class_count=2, features=(0, 2)), 4
    )
    assert bound == 14
