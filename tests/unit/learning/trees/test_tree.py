"""A tree predicts by heap order and survives its dictionary."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import InvariantError, LedgerCorruptError
from app.learning.trees.tree import Tree

TREE = Tree(test_indices=(2, 0, 1), leaf_labels=(0, 1, 2, 3))


def test_false_goes_left_and_true_goes_right() -> None:
    """The root tests bit 2, its left child bit 0, its right child bit 1."""
    bits = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 1], [0, 1, 1]], dtype=np.uint8)
    assert TREE.predict(bits).tolist() == [0, 1, 2, 3]


def test_a_tree_of_depth_zero_is_a_constant() -> None:
    """A single leaf answers for every row."""
    constant = Tree(test_indices=(), leaf_labels=(4,))
    assert constant.depth == 0
    assert constant.predict(np.zeros((2, 0), dtype=np.uint8)).tolist() == [4, 4]


def test_a_dictionary_holds_integers_and_rebuilds_the_tree() -> None:
    """What is published is lists of integers."""
    body = TREE.to_dict()
    assert body == {"test_indices": [2, 0, 1], "leaf_labels": [0, 1, 2, 3]}
    assert Tree.from_dict(dict(body)) == TREE


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"test_indices": [0], "leaf_labels": [0, 1], "more": 1},
        {"test_indices": "0", "leaf_labels": [0, 1]},
        {"test_indices": [0.0], "leaf_labels": [0, 1]},
        {"test_indices": [True], "leaf_labels": [0, 1]},
    ],
)
def test_another_dictionary_is_corruption(body: dict[str, object]) -> None:
    """A stored body of another shape is never half understood."""
    with pytest.raises(LedgerCorruptError):
        Tree.from_dict(body)


@pytest.mark.parametrize(
    ("tests", "leaves"), [((), ()), ((0,), (0, 1, 2)), ((0, 1), (0, 1)), ((-1,), (0, 1))]
)
def test_an_incomplete_tree_is_refused(tests: tuple[int, ...], leaves: tuple[int, ...]) -> None:
    """Only 2**depth - 1 tests and 2**depth leaves make a tree."""
    with pytest.raises(InvariantError):
        Tree(test_indices=tests, leaf_labels=leaves)
