"""Integer scores in an ONNX graph: sums over feature tests, cosine features and numbers.

A score is a weighted sum of these inputs. A number is the value of a numeric feature, and a cosine
feature is the cosine of a random weighted sum of numbers. With two classes the sign of the only
score decides the label, and with more classes the largest score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from app.errors import invariant
from app.learning.linear.cosine_features import PHASES
from app.learning.linear.integer_vectors import EXACT_BOUND
from app.release.classifier.onnx.graph import DOUBLE, INTEGER, UNSIGNED
from app.release.classifier.onnx.input_columns import between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.release.classifier.classifier_document import (
        ClassifierDocument,
        LiteralDocument,
        NumbersDocument,
        ScoresDocument,
        WavesDocument,
    )
    from app.release.classifier.onnx.graph import Graph
    from app.release.classifier.onnx.input_columns import Columns


def score_values(columns: Columns, document: ClassifierDocument, scores: ScoresDocument) -> str:
    """Return the scores of every row, int64 of shape (N, scores)."""
    graph = columns.graph
    intercepts = graph.constant(np.array([scores.intercepts], dtype=np.int64))
    if scores.terms:
        weights = np.array([term.weights for term in scores.terms], dtype=np.int64)
        sums = _product(graph, _terms(columns, document, scores), weights, largest=1)
        values = graph.add("Add", sums, intercepts)
    else:
        shape = graph.add("Concat", columns.rows, graph.indices(weight_count(scores)), axis=0)
        values = graph.add("Expand", intercepts, shape)
    if scores.waves is not None:
        values = graph.add("Add", values, _waves(columns, scores.waves))
    if scores.numbers is not None:
        values = graph.add("Add", values, _numbers(columns, scores.numbers))
    return values


def _product(graph: Graph, values: str, weights: NDArray[np.int64], *, largest: int) -> str:
    """Return a product of integers, int64 of shape (N, columns of the weights).

    Doubles are multiplied in a fraction of the time, and are as exact where no sum leaves the
    integers that they hold.

    Args:
        graph: that the nodes are added to.
        values: int64, shape (N, rows of the weights).
        weights: constants.
        largest: no value is larger in magnitude.

    """
    bound = largest * max(sum(map(abs, column)) for column in weights.T.tolist())
    if bound >= EXACT_BOUND:
        return graph.add("MatMul", values, graph.constant(weights))
    doubles = graph.add("Cast", values, to=DOUBLE)
    sums = graph.add("MatMul", doubles, graph.constant(weights.astype(np.float64)))
    return graph.add("Cast", sums, to=INTEGER)


def scores_index(graph: Graph, values: str, *, width: int) -> str:
    """Return the class index of every row, shape (N, 1), from ``width`` scores."""
    if width > 1:
        return graph.add("ArgMax", values, axis=1)  # the first of the largest
    zero = graph.constant(np.array([[0]], dtype=np.int64))
    return graph.add("Cast", graph.add("Greater", values, zero), to=INTEGER)


def _waves(columns: Columns, waves: WavesDocument) -> str:
    """Return what waves add to the scores, int64 of shape (N, scores).

    A phase is a sum that stays below 2^63.  Shifted to the left by 32 bits it loses its whole
    turns of 2^32, and to the right again all but its place: a shift takes a fraction of a
    division's time.  A single cosine stands twice in the table, so that no shift is by 64.
    """
    graph = columns.graph
    point = columns.steps(waves.features, waves.bounds, waves.steps)
    frequencies = np.array(waves.frequencies, dtype=np.int64).T
    turned = _product(graph, point, frequencies, largest=waves.steps)
    phases = graph.add("Add", turned, graph.constant(np.array([waves.shifts], dtype=np.int64)))
    cosines = waves.cosines * 2 if len(waves.cosines) == 1 else waves.cosines
    part = PHASES // len(cosines)
    invariant(part * len(cosines) == PHASES, "a table divides a turn equally")
    turn_bits = PHASES.bit_length() - 1
    left, right = (
        graph.constant(np.array([[bits]], dtype=np.uint64))
        for bits in (turn_bits, turn_bits + part.bit_length() - 1)
    )
    within = graph.add("BitShift", graph.add("Cast", phases, to=UNSIGNED), left, direction="LEFT")
    shifted = graph.add("BitShift", within, right, direction="RIGHT")
    places = graph.add("Cast", shifted, to=INTEGER)
    table = graph.constant(np.array(cosines, dtype=np.int64))
    found = graph.add("Gather", table, places, axis=0)
    weights = np.array(waves.weights, dtype=np.int64)
    return _product(graph, found, weights, largest=max(map(abs, cosines)))


def _numbers(columns: Columns, numbers: NumbersDocument) -> str:
    """Return what numbers add to the scores, int64 of shape (N, scores)."""
    graph = columns.graph
    point = columns.steps(numbers.features, numbers.bounds, numbers.steps)
    weights = np.array(numbers.weights, dtype=np.int64)
    return _product(graph, point, weights, largest=numbers.steps)


def weight_count(scores: ScoresDocument) -> int:
    """Return the number of scores of a published classifier."""
    return len(scores.intercepts)


def _terms(columns: Columns, document: ClassifierDocument, scores: ScoresDocument) -> str:
    """Return which terms hold, int64 of shape (N, terms), 0 or 1."""
    graph = columns.graph
    tests = list(dict.fromkeys(_test(literal) for term in scores.terms for literal in term.tests))
    outcomes = _outcomes(columns, document, tests)
    signs, wanted = _conjunctions(scores, tests)
    met = _product(graph, outcomes, signs, largest=1)
    equal = graph.add("Equal", met, graph.constant(wanted))
    return graph.add("Cast", equal, to=INTEGER)


def _outcomes(
    columns: Columns, document: ClassifierDocument, literals: Sequence[LiteralDocument]
) -> str:
    """Return which tests hold, int64 of shape (N, tests), 0 or 1."""
    graph = columns.graph
    used = sorted({literal.feature for literal in literals})
    place = {feature: index for index, feature in enumerate(used)}
    ranges = [between(document.features[literal.feature], literal) for literal in literals]
    lower, upper = np.array(ranges, dtype=np.float64).T.reshape(2, 1, -1)
    indices = graph.indices(*(place[literal.feature] for literal in literals))
    values = graph.add("Gather", columns.matrix(used), indices, axis=1)
    above = graph.add("GreaterOrEqual", values, graph.constant(lower))
    below = graph.add("LessOrEqual", values, graph.constant(upper))
    return graph.add("Cast", graph.add("And", above, below), to=INTEGER)


def _conjunctions(
    scores: ScoresDocument, tests: Sequence[LiteralDocument]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return signs (tests, terms) and the sum (1, terms) that a term's tests give iff it holds.

    A test that has to hold counts 1, one that has to fail -1: the largest sum there is
    comes of all being as asked, and of nothing else.
    """
    place = {test: index for index, test in enumerate(tests)}
    signs = np.zeros((len(tests), len(scores.terms)), dtype=np.int64)
    wanted = np.zeros((1, len(scores.terms)), dtype=np.int64)
    for column, term in enumerate(scores.terms):
        for literal in dict.fromkeys(term.tests):
            signs[place[_test(literal)], column] += -1 if literal.fails else 1
            wanted[0, column] += not literal.fails
    return signs, wanted


def _test(literal: LiteralDocument) -> LiteralDocument:
    """Return the test of a literal, whichever outcome it asks for."""
    return structs.replace(literal, fails=False)
