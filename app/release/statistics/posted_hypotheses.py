"""Hypotheses posted by clients of the statistics table: parsed, checked, and evaluated.

A client posts a hypothesis as a document in the JSON format of published classifiers. Its ``tree``
is required, and its other parts may be missing. It is checked against the public schema only.

A hypothesis is a rule (here a tree) that gives each row one of two outcomes, -1 or +1. The leaves
of the tree have labels. The document may name the two labels that count as -1 and +1; otherwise
they are the two labels of the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from app.data.schema import NumericFeature
from app.errors import InvalidHypothesisError, TooLargeError
from app.release.classifier.classifier_document import NodeDocument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.schema import Feature, Schema

HYPOTHESES_MAX: Final = 1000
NODES_MAX: Final = 10_000
TREE_ONLY: Final = (
    'must be a tree as exported: {"tree": {...}}, whose inner nodes have feature, one test, true '
    "and false, and whose leaves have a label"
)


NEEDS_OUTCOMES: Final = (
    "needs outcomes, a list of two of the classes: a row counts as -1 where the tree says the "
    "first, and as +1 where it says the second"
)


class AskedNode(NodeDocument, frozen=True, forbid_unknown_fields=True):
    """A node of a posted tree, in the format of a published classifier's document."""

    true: AskedNode | None = None
    false: AskedNode | None = None

    @property
    def condition_count(self) -> int:
        """The number of tests in the posted tree's node."""
        return sum((self.at_least is not None, self.category is not None, self.other, self.missing))


class AskedFeature(msgspec.Struct, frozen=True):
    """A feature as described in a posted document."""

    name: str


class AskedDocument(msgspec.Struct, frozen=True):
    """A posted document with a hypothesis; parts other than the tree may be missing.

    A hypothesis is a rule that gives each row one of two outcomes.
    """

    tree: AskedNode | None = None
    classes: tuple[str, ...] | None = None
    features: tuple[AskedFeature, ...] | None = None
    outcomes: object = None


class AskedHypothesis(NamedTuple):
    """A posted hypothesis after its checks against the schema.

    Attributes:
        tree: the tree; a leaf has 0 for the outcome -1, and 1 for +1.
        outcomes: the two labels that count as -1 and +1.

    """

    tree: AskedNode
    outcomes: tuple[str, str]


def parse_hypotheses(schema: Schema, raw: Sequence[object]) -> list[AskedHypothesis]:
    """Return the posted hypotheses, checked against the public schema.

    Args:
        schema: the public schema.
        raw: the posted documents, decoded from JSON.

    Raises:
        InvalidHypothesisError: a hypothesis does not fit the schema; the error names the first one
            by its number from 0.
        TooLargeError: there are too many hypotheses.

    """
    if len(raw) > HYPOTHESES_MAX:
        raise TooLargeError(f"at most {HYPOTHESES_MAX} hypotheses are answered at once")
    return [_parse(schema, number, each) for number, each in enumerate(raw)]


def labels_on(
    schema: Schema, asked: AskedHypothesis, public_values: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Return a hypothesis's outcome for each encoded public point: 0 for -1, and 1 for +1."""
    labels = np.zeros(len(public_values), dtype=np.uint8)
    pending = [(asked.tree, np.arange(len(public_values)))]
    while pending:
        node, rows = pending.pop()
        if node.label is not None:
            labels[rows] = asked.outcomes.index(node.label)
        elif node.true is not None and node.false is not None:
            holds = _holds(schema, node, public_values[rows, node.feature or 0])
            pending += [(node.true, rows[holds]), (node.false, rows[~holds])]
    return labels


def _holds(schema: Schema, node: AskedNode, column: NDArray[np.float64]) -> NDArray[np.bool_]:
    feature = schema.features[node.feature or 0]
    if isinstance(feature, NumericFeature):
        at_least: NDArray[np.bool_] = column >= (node.at_least or 0.0)
        return at_least
    if node.category is not None:
        code = feature.categories.index(node.category)
    else:
        code = feature.other_code if node.other else feature.missing_code
    equal: NDArray[np.bool_] = column == code
    return equal


def _parse(schema: Schema, number: int, raw: object) -> AskedHypothesis:
    try:
        document = msgspec.convert(raw, AskedDocument)
    except (msgspec.ValidationError, RecursionError):
        raise InvalidHypothesisError(number=number, problem=TREE_ONLY) from None
    if document.tree is None:
        raise InvalidHypothesisError(number=number, problem=TREE_ONLY)
    outcomes = _outcomes(schema, document)
    if outcomes is None:
        raise InvalidHypothesisError(number=number, problem=NEEDS_OUTCOMES)
    problem = _of_another_schema(schema, document) or _first_fault(schema, document.tree, outcomes)
    if problem:
        raise InvalidHypothesisError(number=number, problem=problem)
    return AskedHypothesis(document.tree, outcomes)


def _outcomes(schema: Schema, document: AskedDocument) -> tuple[str, str] | None:
    """Return the two labels that a hypothesis is about; None where it does not say."""
    named = list(schema.classes) if document.outcomes is None else document.outcomes
    match named:
        case [str(first), str(second)] if first != second and {first, second} <= {*schema.classes}:
            return first, second
        case _:
            return None


def _of_another_schema(schema: Schema, document: AskedDocument) -> str:
    names = None if document.features is None else tuple(each.name for each in document.features)
    if names not in (None, schema.feature_names):
        return "is of other features than this release's; GET /schema lists them"
    if document.classes not in (None, schema.classes):
        return "is of other classes than this release's; GET /schema lists them"
    return ""


def _first_fault(schema: Schema, tree: AskedNode, outcomes: tuple[str, str]) -> str:
    """Say what is wrong with a tree; nothing where it can be applied."""
    pending, node_count = [tree], 0
    while pending:
        node, node_count = pending.pop(), node_count + 1
        if node_count > NODES_MAX:
            return f"has more than {NODES_MAX} nodes"
        is_leaf = node.feature is None
        fault = _leaf_fault(schema, node, outcomes) if is_leaf else _test_fault(schema, node)
        if fault:
            return fault
        pending += [branch for branch in (node.true, node.false) if branch is not None]
    return ""


def _leaf_fault(schema: Schema, node: AskedNode, outcomes: tuple[str, str]) -> str:
    if node.label is None or node.condition_count or node.true or node.false:
        return TREE_ONLY
    if node.label not in schema.classes:
        return "has a label that is not one of the classes"
    return "" if node.label in outcomes else "has a label that is none of its outcomes"


def _test_fault(schema: Schema, node: AskedNode) -> str:
    if not 0 <= (node.feature or 0) < len(schema.features):
        return f"asks feature {node.feature}, and there are {len(schema.features)} from 0"
    if node.label is not None or node.true is None or node.false is None:
        return TREE_ONLY
    if node.condition_count != 1:
        return "has a node without exactly one of at_least, category, other and missing"
    return _kind_fault(schema.features[node.feature or 0], node)


def _kind_fault(feature: Feature, node: AskedNode) -> str:
    if isinstance(feature, NumericFeature):
        return "" if node.at_least is not None else f"needs at_least for {feature.name}"
    if node.at_least is not None:
        return f"has at_least for {feature.name}, which has categories"
    if node.category is not None and node.category not in feature.categories:
        return f"names a category that {feature.name} does not have"
    return ""
