"""A published tree or halfspace as an ONNX model that gives the same labels.

The model does what ``PublishedClassifier.predict`` does, exactly: numbers stay
float64 and meet the very cuts of the document, and halfspaces are summed in
int64.  A number that is missing is NaN; a string that is missing is empty or
one of the release's tokens.  docs/classifier-format.md describes both forms.

Everything here is public: the model is a rewriting of a public document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.errors import InvariantError, NotExportableError, invariant
from app.service.onnx_graph import DOUBLE, FLOAT, INTEGER, LEARNING_DOMAIN, Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.service.published_classifier import (
        ClassifierDocument,
        FeatureDocument,
        HalfspaceDocument,
        NodeDocument,
    )

ALL_FEATURES: Final = "features"
LABEL: Final = "label"
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
NO_VALUE: Final = (math.inf, -math.inf)


def to_onnx(document: ClassifierDocument) -> bytes:
    """Return a published classifier as an ONNX model; equal documents give equal bytes.

    Inputs are those of the Open Inference Protocol: one float64 ``features`` of
    shape (N, d) where every feature is a number, otherwise one input of shape
    (N, 1) per feature, by its name, float64 or string.  The output has shape
    (N,), string.

    Raises:
        NotExportableError: the classifier is not a tree or halfspace that ONNX holds.

    """
    name = output_name(document)
    graph = Graph(reserved=[*input_names(document), name])
    columns = _Columns(graph, document)
    if document.tree is not None:
        index = _tree(columns, document)
    elif document.halfspace is not None:
        index = _halfspace(columns, document.halfspace)
    else:
        raise NotExportableError(FITTED if document.predictor is None else OWN_CODE)
    flat = graph.add("Squeeze", index, graph.indices(1))
    graph.add("Gather", graph.strings(document.classes), flat, output=name, axis=0)
    graph.label_output(name)
    return graph.model(
        name=document.release,
        version=_version(),
        about=ABOUT,
        metadata=_metadata(document),
    )


def input_names(document: ClassifierDocument) -> tuple[str, ...]:
    """Return the names of the model's inputs, in order."""
    if _all_numbers(document):
        return (ALL_FEATURES,)
    return tuple(feature.name for feature in document.features)


def output_name(document: ClassifierDocument) -> str:
    """Return ``label``, with underscores until it is no input's name."""
    name = LABEL
    while name in input_names(document):
        name += "_"
    return name


def _version() -> str:
    """Return the version of Conclave; empty where its sources run uninstalled."""
    try:
        return metadata.version("conclave")
    except metadata.PackageNotFoundError:
        return ""


def _all_numbers(document: ClassifierDocument) -> bool:
    return all(feature.bounds is not None for feature in document.features)


def _metadata(document: ClassifierDocument) -> dict[str, str]:
    """Return what the document says beside its tree or halfspace."""
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


class _Columns:
    """The inputs of a model, and the features as columns of float64."""

    def __init__(self, graph: Graph, document: ClassifierDocument) -> None:
        """Declare every input, whether the classifier looks at it or not."""
        self.graph = graph
        self._document = document
        self._is_one = _all_numbers(document)
        names = input_names(document)
        if self._is_one:
            graph.number_input(ALL_FEATURES, width=len(document.features))
        else:
            for feature, name in zip(document.features, names, strict=True):
                if feature.bounds is None:
                    graph.string_input(name)
                else:
                    graph.number_input(name, width=1)
        rows = graph.add("Shape", names[0], end=1)
        self.shape = graph.add("Concat", rows, graph.indices(1), axis=0)

    def matrix(self, features: Sequence[int]) -> str:
        """Return features, one or more, side by side, shape (N, len(features)).

        A number is itself; a string is its place among the categories, one more
        where it is none of them, and one more again where it is missing.
        """
        if self._is_one:
            return self.graph.add("Gather", ALL_FEATURES, self.graph.indices(*features), axis=1)
        columns = [self._column(self._document.features[feature]) for feature in features]
        return self.graph.add("Concat", *columns, axis=1)

    def _column(self, feature: FeatureDocument) -> str:
        """Return one feature as float64 of shape (N, 1)."""
        if feature.bounds is not None:
            return feature.name
        categories = feature.categories or ()
        codes = dict.fromkeys(("", *self._document.missing), len(categories) + 1)
        codes |= {category: code for code, category in enumerate(categories)}
        code = self.graph.add(
            "LabelEncoder",
            feature.name,
            domain=LEARNING_DOMAIN,
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=len(categories),
        )
        return self.graph.add("Cast", code, to=DOUBLE)


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

    Index c < C stands for the leaf of class c, C + i for the i-th node; what
    hangs below a node comes before it.
    """

    document: ClassifierDocument
    nodes: dict[_Node, int] = field(default_factory=dict)
    heights: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heights = [0] * len(self.document.classes)

    def index(self, node: NodeDocument | None) -> int:
        """Return the index of a node, which is added unless it is there."""
        if node is None:
            message = "an inner node has two branches"
            raise InvariantError(message)
        if node.label is not None:
            return self.document.classes.index(node.label)
        lower, upper = _between(self.document.features[node.feature or 0], node)
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


def _between(feature: FeatureDocument, node: NodeDocument) -> tuple[float, float]:
    """Return the values that pass a node's test; NaN passes none.

    A clipped number is at or above a cut iff the number itself is, save that
    a cut at the lower bound passes every number and one above the upper none.
    """
    if feature.bounds is not None:
        lower, upper = feature.bounds
        if node.at_least is None or node.at_least > upper:
            return NO_VALUE
        return (-math.inf if node.at_least <= lower else node.at_least), math.inf
    categories = feature.categories or ()
    count = len(categories)
    if node.category is not None:
        invariant(not (node.other or node.missing), "a node has one test")
        code = categories.index(node.category) if node.category in categories else None
        return NO_VALUE if code is None else (code, code)
    if not (node.other or node.missing):
        return NO_VALUE
    return count + (not node.other), count + node.missing


def _tree(columns: _Columns, document: ClassifierDocument) -> str:
    """Return the class index of every row, shape (N, 1): a step down for each level."""
    graph = columns.graph
    table = _Table(document)
    root = table.index(document.tree)
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
        """Keep one array for each part of a node."""
        leaves = [
            _Node(used[0], *NO_VALUE, leaf, leaf) for leaf in range(len(table.document.classes))
        ]
        nodes = [*leaves, *table.nodes]
        column = {feature: index for index, feature in enumerate(used)}
        self.feature = graph.indices(*(column[node.feature] for node in nodes))
        self.lower = graph.constant(np.array([node.lower for node in nodes], dtype=np.float64))
        self.upper = graph.constant(np.array([node.upper for node in nodes], dtype=np.float64))
        self.true = graph.indices(*(node.true for node in nodes))
        self.false = graph.indices(*(node.false for node in nodes))


def _halfspace(columns: _Columns, halfspace: HalfspaceDocument) -> str:
    """Return the class index of every row, shape (N, 1), by sums of int64."""
    _check_sums(halfspace)
    graph = columns.graph
    zero = graph.constant(np.array([[0]], dtype=np.int64))
    if not halfspace.levels:
        return graph.add("Expand", zero, columns.shape)
    point = _point(columns, halfspace)
    weights = np.array([level.weights for level in halfspace.levels], dtype=np.int64).T
    offsets = np.array([[level.offset for level in halfspace.levels]], dtype=np.int64)
    sums = graph.add("MatMul", point, graph.constant(weights))
    values = graph.add("Sub", sums, graph.constant(offsets))
    # The first level that is not zero decides; where all are, the first one's zero does.
    decides = graph.add("Not", graph.add("Equal", values, zero))
    level = graph.add("ArgMax", graph.add("Cast", decides, to=FLOAT), axis=1)
    value = graph.add("GatherElements", values, level, axis=1)
    return graph.add("Cast", graph.add("Greater", value, zero), to=INTEGER)


def _point(columns: _Columns, halfspace: HalfspaceDocument) -> str:
    """Return the whole numbers of steps, int64 of shape (N, features)."""
    graph = columns.graph
    lower, upper = np.array(halfspace.bounds, dtype=np.float64).T.reshape(2, 1, -1)
    values = columns.matrix(halfspace.features)
    lowest, highest = graph.constant(lower), graph.constant(upper)
    # NaN is not at or above anything: it lands on the lower bound, which is 0 steps.
    raised = graph.add("Where", graph.add("GreaterOrEqual", values, lowest), values, lowest)
    clipped = graph.add("Where", graph.add("LessOrEqual", raised, highest), raised, highest)
    share = graph.add("Div", graph.add("Sub", clipped, lowest), graph.constant(upper - lower))
    steps = graph.constant(np.array([[halfspace.steps]], dtype=np.float64))
    # Round takes a half to the even integer, as the document asks.
    return graph.add("Cast", graph.add("Round", graph.add("Mul", share, steps)), to=INTEGER)


def _check_sums(halfspace: HalfspaceDocument) -> None:
    """Refuse a halfspace whose sums could leave int64."""
    largest = (
        sum(map(abs, level.weights)) * halfspace.steps + abs(level.offset)
        for level in halfspace.levels
    )
    if max(largest, default=0) >= 2**63:
        raise NotExportableError(TOO_LARGE)
