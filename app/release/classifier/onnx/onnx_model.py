"""A published tree, halfspace, score or grid as an ONNX model with the same labels.

The model computes exactly the labels of ``PublishedClassifier.predict``: numbers stay float64 and
are compared with the exact thresholds in the document, and halfspaces and scores are summed in
int64. A missing number is NaN; a missing string is empty or another text that the release reads as
missing, for example ``NA``. docs/classifier-format.md describes the JSON document and the ONNX
model.

Everything here is public, since the model is computed from a public document.

A score is a weighted sum of feature tests and values, whose sign, or the largest of several,
decides the label. A grid has one label for each cell of the feature space.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from app.errors import InvariantError, NotExportableError
from app.release.classifier.onnx.graph import FLOAT, INTEGER, Graph
from app.release.classifier.onnx.input_columns import NO_VALUE, Columns, between, input_names
from app.release.classifier.onnx.score_graph import score_values, scores_index, weight_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.release.classifier.classifier_document import (
        ClassifierDocument,
        GridDocument,
        HalfspaceDocument,
        NodeDocument,
        ScoresDocument,
    )

LABEL: Final = "label"
SCORES: Final = "scores"
BINARY: Final = 2
ABOUT: Final = "A published classifier of Conclave: a public, differentially private document."
OWN_CODE: Final = (
    "this classifier predicts by code, which ONNX does not hold; export it as JSON instead"
)
FITTED: Final = (
    "this student is a fitted estimator, which ONNX does not hold: its server alone predicts by "
    "it; export its description as JSON instead"
)
TOO_LARGE: Final = (
    "this halfspace's sums go beyond 64 bits, which ONNX does not hold; export it as JSON instead"
)


def to_onnx(document: ClassifierDocument) -> bytes:
    """Return a published classifier as an ONNX model; equal documents give equal bytes.

    The inputs follow the Open Inference Protocol. If all d features are numbers there is one
    float64 input ``features`` of shape (N, d). Otherwise there is one input of shape (N, 1) per
    feature, with the feature's name, float64 or string; a date is float64, in days. The first
    output has shape (N,), string. A classifier of scores has a second output, int64 of shape (N,
    scores).

    Raises:
        NotExportableError: the classifier is not a tree, halfspace, score or grid that ONNX can
            express.

    """
    name, scores_name = output_name(document), output_name(document, SCORES)
    graph = Graph(reserved=[*input_names(document), name, scores_name])
    columns = Columns(graph, document)
    if document.tree is not None:
        index = _tree(columns, document, scores_name)
    elif document.halfspace is not None:
        index = _halfspace(columns, document.halfspace)
    elif document.scores is not None:
        index = _scores(columns, document, document.scores, scores_name)
    elif document.grid is not None:
        index = _grid(columns, document.grid)
    else:
        raise NotExportableError(FITTED if document.predictor is None else OWN_CODE)
    flat = graph.add("Squeeze", index, graph.indices(1))
    graph.add("Gather", graph.strings(document.classes), flat, output=name, axis=0)
    graph.label_output(name)
    if document.has_scores:
        graph.scores_output(scores_name, width=_score_count(document))
    return graph.model(
        name=document.release,
        version=_version(),
        about=ABOUT,
        metadata=_metadata(document),
    )


def _score_count(document: ClassifierDocument) -> int:
    """Return the number of scores of a row."""
    if document.scores is not None:
        return weight_count(document.scores)
    return 1 if len(document.classes) == BINARY else len(document.classes)


def output_name(document: ClassifierDocument, name: str = LABEL) -> str:
    """Return the name of an output, with underscores added until it differs from every input's."""
    while name in input_names(document):
        name += "_"
    return name


def _version() -> str:
    """Return the version of Conclave; empty where its sources run uninstalled."""
    try:
        return metadata.version("conclave")
    except metadata.PackageNotFoundError:
        return ""


def _metadata(document: ClassifierDocument) -> dict[str, str]:
    """Return what the document says beside its way to predict."""
    written = {
        "classes": document.classes,
        "missing": document.missing,
        "features": document.features,
    }
    return {
        "format": document.format,
        "version": str(document.version),
        "release": document.release,
        "label": document.label,
        **{key: msgspec.json.encode(value).decode() for key, value in written.items()},
    }


_Leaf: TypeAlias = tuple[int, tuple[int, ...] | None]
"""The class of a leaf, and its scores where it has some."""


@dataclass(frozen=True, slots=True)
class _Node:
    """Goes to ``true`` where a feature lies between two values, both included."""

    feature: int
    lower: float
    upper: float
    false: int
    true: int


@dataclass(slots=True)
class _Table:
    """The nodes of a tree below its leaves, equal ones kept once.

    Index i < I stands for the i-th kind of leaf, I + j for the j-th node; what
    hangs below a node comes before it.  Leaves of one class, and of the same scores where they
    have some, are of one kind.
    """

    document: ClassifierDocument
    leaves: list[_Leaf] = field(default_factory=list)
    nodes: dict[_Node, int] = field(default_factory=dict)
    heights: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.document.tree_unit is None:
            self.leaves = [(index, None) for index in range(len(self.document.classes))]
        else:
            self.leaves = list(dict.fromkeys(self._leaves_below(self.document.tree)))
        self.heights = [0] * len(self.leaves)

    def _leaves_below(self, node: NodeDocument | None) -> Iterator[_Leaf]:
        """Yield the leaves below a node, left to right."""
        if node is None:
            return
        if node.label is not None:
            yield self._leaf(node.label, node.scores)
        yield from self._leaves_below(node.false)
        yield from self._leaves_below(node.true)

    def _leaf(self, label: str, scores: tuple[int, ...] | None) -> _Leaf:
        return self.document.classes.index(label), scores

    def index(self, node: NodeDocument | None) -> int:
        """Return the index of a node, which is added if it is new."""
        if node is None:
            message = "an inner node has two branches"
            raise InvariantError(message)
        if node.label is not None:
            return self.leaves.index(self._leaf(node.label, node.scores))
        lower, upper = between(self.document.features[node.feature or 0], node)
        if lower > upper:
            return self.index(node.false)
        false, true = self.index(node.false), self.index(node.true)
        if false == true:
            return false
        added = _Node(node.feature or 0, lower, upper, false, true)
        known = self.nodes.setdefault(added, len(self.heights))
        if known == len(self.heights):
            self.heights.append(1 + max(self.heights[false], self.heights[true]))
        return known


def _tree(columns: Columns, document: ClassifierDocument, name: str) -> str:
    """Return the class index of every row, shape (N, 1); scores are an output by name."""
    graph, table = columns.graph, _Table(document)
    leaf = _leaf_reached(columns, table)
    if document.tree_unit is None:
        return leaf
    classes = graph.constant(np.array([each for each, _ in table.leaves], dtype=np.int64))
    scores = graph.constant(np.array([scores for _, scores in table.leaves], dtype=np.int64))
    flat = graph.add("Squeeze", leaf, graph.indices(1))
    graph.add("Gather", scores, flat, output=name, axis=0)
    return graph.add("Gather", classes, leaf, axis=0)


def _leaf_reached(columns: Columns, table: _Table) -> str:
    """Return the kind of leaf of every row, shape (N, 1): a step down for each level."""
    graph = columns.graph
    root = table.index(table.document.tree)
    place = graph.add("Expand", graph.constant(np.array([[root]], dtype=np.int64)), columns.shape)
    if not table.nodes:
        return place
    used = sorted({node.feature for node in table.nodes})
    matrix = columns.matrix(used)
    parts = _Arrays(graph, table, used)
    for _ in range(table.heights[root]):
        feature = graph.add("Gather", parts.feature, place, axis=0)
        value = graph.add("GatherElements", matrix, feature, axis=1)
        above = graph.add("GreaterOrEqual", value, graph.add("Gather", parts.lower, place, axis=0))
        below = graph.add("LessOrEqual", value, graph.add("Gather", parts.upper, place, axis=0))
        passes = graph.add("And", above, below)
        true = graph.add("Gather", parts.true, place, axis=0)
        false = graph.add("Gather", parts.false, place, axis=0)
        place = graph.add("Where", passes, true, false)
    return place


class _Arrays:
    """The nodes of a table as constants by index; a leaf leads to itself."""

    def __init__(self, graph: Graph, table: _Table, used: Sequence[int]) -> None:
        """Start with one empty array for each attribute of the nodes."""
        leaves = [_Node(used[0], *NO_VALUE, leaf, leaf) for leaf in range(len(table.leaves))]
        nodes = [*leaves, *table.nodes]
        column = {feature: index for index, feature in enumerate(used)}
        self.feature = graph.indices(*(column[node.feature] for node in nodes))
        self.lower = graph.constant(np.array([node.lower for node in nodes], dtype=np.float64))
        self.upper = graph.constant(np.array([node.upper for node in nodes], dtype=np.float64))
        self.true = graph.indices(*(node.true for node in nodes))
        self.false = graph.indices(*(node.false for node in nodes))


def _halfspace(columns: Columns, halfspace: HalfspaceDocument) -> str:
    """Return the class index of every row, shape (N, 1), by sums of int64."""
    _check_sums(halfspace)
    graph = columns.graph
    zero = graph.constant(np.array([[0]], dtype=np.int64))
    if not halfspace.levels:
        return graph.add("Expand", zero, columns.shape)
    point = columns.steps(halfspace.features, halfspace.bounds, halfspace.steps)
    weights = np.array([level.weights for level in halfspace.levels], dtype=np.int64).T
    offsets = np.array([[level.offset for level in halfspace.levels]], dtype=np.int64)
    sums = graph.add("MatMul", point, graph.constant(weights))
    values = graph.add("Sub", sums, graph.constant(offsets))
    # The first level that is not zero decides; where all are, the first one's zero does.
    decides = graph.add("Not", graph.add("Equal", values, zero))
    level = graph.add("ArgMax", graph.add("Cast", decides, to=FLOAT), axis=1)
    value = graph.add("GatherElements", values, level, axis=1)
    return graph.add("Cast", graph.add("Greater", value, zero), to=INTEGER)


def _scores(
    columns: Columns, document: ClassifierDocument, scores: ScoresDocument, name: str
) -> str:
    """Return the class index of every row, shape (N, 1); the scores are an output by name."""
    graph = columns.graph
    values = graph.add("Identity", score_values(columns, document, scores), output=name)
    return scores_index(graph, values, width=weight_count(scores))


def _grid(columns: Columns, grid: GridDocument) -> str:
    """Return the class index of every row, shape (N, 1): ranks, then its cell's label."""
    graph = columns.graph
    side = len(grid.cuts[0]) + 1
    cell = graph.add("Expand", graph.constant(np.array([[0]], dtype=np.int64)), columns.shape)
    factor = graph.constant(np.array([[side]], dtype=np.int64))
    for feature, cuts in zip(grid.features, grid.cuts, strict=True):
        row = graph.constant(np.array([cuts], dtype=np.float64))
        above = graph.add("GreaterOrEqual", columns.matrix([feature]), row)
        met = graph.add("Cast", above, to=INTEGER)
        rank = graph.add("ReduceSum", met, graph.indices(1), keepdims=1)
        cell = graph.add("Add", graph.add("Mul", cell, factor), rank)
    labels = np.repeat(np.array(grid.labels, dtype=np.int32), grid.lengths)
    found = graph.add("Gather", graph.constant(labels), cell, axis=0)
    return graph.add("Cast", found, to=INTEGER)


def _check_sums(halfspace: HalfspaceDocument) -> None:
    """Refuse a halfspace whose sums could leave int64."""
    largest = (
        sum(map(abs, level.weights)) * halfspace.steps + abs(level.offset)
        for level in halfspace.levels
    )
    if max(largest, default=0) >= 2**63:
        raise NotExportableError(TOO_LARGE)
