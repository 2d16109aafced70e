"""A function for each hypothesis class, which writes its hypotheses into a classifier document.

The scores in a tree's leaf are integers computed from noisy counts; the largest, or the sign of a
single one, decides the leaf's label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

import msgspec

from app.data.schema import NumericFeature
from app.errors import InvariantError
from app.learning.registry import row_of
from app.learning.trees.tree import Tree
from app.privacy.exponential.scored_tree import SCORE_UNIT
from app.release.classifier.classifier_document import (
    GridDocument,
    HalfspaceDocument,
    NodeDocument,
    PredictorDocument,
    ScoresDocument,
)
from app.release.classifier.published_predictor import described

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.data.schema import Feature, Schema
    from app.learning.cells.cell_class import CellLabels, CellSplits
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.enumerated.boxes import Boxes
    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.learning.trees.tree_class import TreeClass


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a classifier document that predicts: a tree, a halfspace, scores and so on."""

    tree: NodeDocument | None = None
    tree_unit: int | None = None
    halfspace: HalfspaceDocument | None = None
    predictor: PredictorDocument | None = None
    scores: ScoresDocument | None = None
    grid: GridDocument | None = None


NOTHING_DRAWN: Final = Written()


class Condition(TypedDict, total=False):
    """The JSON members of a tree node that describe its feature test."""

    at_least: float | None
    category: str | None
    other: bool
    missing: bool


def node_document(
    schema: Schema,
    tests: Sequence[BinaryTest],
    tree: Tree,
    scores: Sequence[tuple[int, ...]] | None = None,
    *,
    node: int = 0,
) -> NodeDocument:
    """Return the document of a tree's node, with its subtree.

    Args:
        schema: the public schema.
        tests: the feature tests to which the tree's nodes refer.
        tree: the whole tree.
        scores: the scores of the tree's leaves; None if leaves have only labels.
        node: the index of the node in heap order.

    """
    inner_count = len(tree.test_indices)
    if node >= inner_count:
        leaf = node - inner_count
        label = schema.classes[tree.leaf_labels[leaf]]
        return NodeDocument(label=label, scores=None if scores is None else scores[leaf])
    test = tests[tree.test_indices[node]]
    return NodeDocument(
        feature=test.feature_index,
        false=node_document(schema, tests, tree, scores, node=2 * node + 1),
        true=node_document(schema, tests, tree, scores, node=2 * node + 2),
        **condition(schema.features[test.feature_index], test),
    )


def scored_tree_document(
    schema: Schema,
    tests: Sequence[BinaryTest],
    tree: Tree,
    scores: Sequence[tuple[int, ...]],
) -> Written:
    """Return a tree whose leaves have scores, and labels that follow from the scores."""
    labels = tuple(decided_by(leaf) for leaf in scores)
    labelled = Tree(test_indices=tree.test_indices, leaf_labels=labels)
    root = node_document(schema, tests, labelled, scores)
    return Written(tree=root, tree_unit=SCORE_UNIT)


def decided_by(scores: Sequence[int]) -> int:
    """Return the class index for given scores: the largest score, or the sign of a single score."""
    return int(scores[0] > 0) if len(scores) == 1 else scores.index(max(scores))


def _cells_document(
    schema: Schema, splits: CellSplits, drawn: CellLabels, *, node: int
) -> NodeDocument:
    """Write a node of a partition, ``~c`` for cell c, and what hangs below it."""
    if node < 0:
        return NodeDocument(label=schema.classes[drawn.labels[~node]])
    test, (false_side, true_side) = splits.tests[node], splits.branches[node]
    return NodeDocument(
        feature=test.feature_index,
        false=_cells_document(schema, splits, drawn, node=false_side),
        true=_cells_document(schema, splits, drawn, node=true_side),
        **condition(schema.features[test.feature_index], test),
    )


def _box_document(schema: Schema, box: Boxes) -> NodeDocument:
    """Write a box as a chain of tests; whoever fails one is outside, in class 0."""
    outside = NodeDocument(label=schema.classes[0])
    node = NodeDocument(label=schema.classes[box.everywhere(0)])
    for side in box.bounded_sides(0):
        if side.upper is not None:
            node = NodeDocument(feature=side.feature, at_least=side.upper, true=outside, false=node)
        if side.lower is not None:
            node = NodeDocument(feature=side.feature, at_least=side.lower, true=node, false=outside)
    return node


def condition(feature: Feature, test: BinaryTest) -> Condition:
    """Return the JSON members that describe a test of one feature."""
    if isinstance(feature, NumericFeature):
        return Condition(at_least=test.cut)
    if test.category_code == feature.other_code:
        return Condition(other=True)
    if test.category_code == feature.missing_code:
        return Condition(missing=True)
    return Condition(category=feature.categories[test.category_code or 0])


def _tree(schema: Schema, hypotheses: TreeClass, drawn: Tree) -> Written:
    return Written(tree=node_document(schema, hypotheses.tests, drawn))


WRITTEN: dict[str, Callable[..., Written]] = {
    "thresholds": _tree,
    "stumps": _tree,
    "trees": _tree,
    "intervals": lambda schema, _, box: Written(tree=_box_document(schema, box.hypotheses)),
    "rectangles": lambda schema, _, box: Written(tree=_box_document(schema, box.hypotheses)),
    "halfspaces": lambda _, __, drawn: Written(
        halfspace=msgspec.convert(drawn.hypotheses.describe(0), HalfspaceDocument)
    ),
    "cells": lambda schema, cells, drawn: Written(
        tree=_cells_document(schema, cells.splits, drawn, node=cells.splits.root)
    ),
    "finite": lambda _, __, drawn: Written(predictor=described(drawn.hypotheses)),
}


def written(schema: Schema, hypotheses: HypothesisClass, drawn: Hypothesis) -> Written:
    """Return a hypothesis in the published form of its class.

    Raises:
        InvariantError: the hypothesis belongs to another class, or its class has no published form.

    """
    row = row_of(hypotheses)
    listed = type(getattr(drawn, "hypotheses", None))
    if type(drawn) is not row.hypothesis or row.listed not in (None, listed):
        raise InvariantError("what is published is a hypothesis of a class")
    return WRITTEN[row.kind](schema, hypotheses, drawn)
