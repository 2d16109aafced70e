"""The inputs of an ONNX model as columns of float64, and comparisons for its feature tests.

A number is unchanged, a date becomes a number of days, and a string becomes its index among the
categories of its feature.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.field_values import finite_numbers
from app.data.schema import NumericFeature
from app.errors import invariant
from app.release.classifier.onnx.graph import DOUBLE, INTEGER, LEARNING_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.release.classifier.classifier_document import (
        ClassifierDocument,
        FeatureDocument,
        LiteralDocument,
        NodeDocument,
    )
    from app.release.classifier.onnx.graph import Graph

ALL_FEATURES: Final = "features"
NO_VALUE: Final = (math.inf, -math.inf)


def input_names(document: ClassifierDocument) -> tuple[str, ...]:
    """Return the names of the ONNX model's inputs, in order."""
    if _all_numbers(document):
        return (ALL_FEATURES,)
    return tuple(feature.name for feature in document.features)


def _all_numbers(document: ClassifierDocument) -> bool:
    return all(feature.kind == NumericFeature.kind for feature in document.features)


class Columns:
    """The inputs of an ONNX model, converted to float64 columns of features."""

    def __init__(self, graph: Graph, document: ClassifierDocument) -> None:
        """Declare every input, whether the classifier uses it or not."""
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
        self.rows = graph.add("Shape", names[0], end=1)
        self.shape = graph.add("Concat", self.rows, graph.indices(1), axis=0)

    def matrix(self, features: Sequence[int]) -> str:
        """Return the columns of one or more features as a matrix, shape (N, len(features)).

        A number is unchanged. A string becomes its index among the categories; a string that is no
        category gets the next index after the last category, and a missing string the index after
        that.
        """
        if self._is_one:
            gathered = self.graph.add("Gather", ALL_FEATURES, self.graph.indices(*features), axis=1)
            return self._present(gathered)
        columns = [self._column(self._document.features[feature]) for feature in features]
        return self.graph.add("Concat", *columns, axis=1)

    def steps(
        self, features: Sequence[int], bounds: Sequence[tuple[float, float]], steps: int
    ) -> str:
        """Return numeric features in whole steps from their lower bounds, int64 (N, features).

        onnxruntime removes a subtraction of 0 and a division by 1, and takes a constant of one
        double for these if it is one of them as a float32. So a single feature stands twice here.
        """
        graph = self.graph
        if len(features) == 1:
            twice = self.steps((*features, *features), (*bounds, *bounds), steps)
            return graph.add("Gather", twice, graph.indices(0), axis=1)
        lower, upper = np.array(bounds, dtype=np.float64).T.reshape(2, 1, -1)
        values = self.matrix(features)
        lowest, highest = graph.constant(lower), graph.constant(upper)
        # NaN is not at or above anything: it lands on the lower bound, which is 0 steps.
        raised = graph.add("Where", graph.add("GreaterOrEqual", values, lowest), values, lowest)
        clipped = graph.add("Where", graph.add("LessOrEqual", raised, highest), raised, highest)
        share = graph.add("Div", graph.add("Sub", clipped, lowest), graph.constant(upper - lower))
        whole = graph.constant(np.array([[steps]], dtype=np.float64))
        # Round takes a half to the even integer, as the document asks.
        return graph.add("Cast", graph.add("Round", graph.add("Mul", share, whole)), to=INTEGER)

    def _column(self, feature: FeatureDocument) -> str:
        """Return one feature as float64 of shape (N, 1)."""
        if feature.bounds is not None:
            return (
                self._present(feature.name) if feature.kind == NumericFeature.kind else feature.name
            )
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

    def _present(self, numbers: str) -> str:
        """Return numbers with NaN for each that stands for a missing one."""
        for number in sorted(finite_numbers(self._document.missing)):
            token, missing = (self.graph.constant(np.array(each)) for each in (number, math.nan))
            is_missing = self.graph.add("Equal", numbers, token)
            numbers = self.graph.add("Where", is_missing, missing, numbers)
        return numbers


def between(feature: FeatureDocument, node: NodeDocument | LiteralDocument) -> tuple[float, float]:
    """Return the interval of values that pass a feature test in the ONNX graph; NaN never passes.

    The graph compares numbers as they are, while predictions with the JSON document first clip them
    to the feature's bounds. The results are the same, because here every number passes a test whose
    threshold is the lower bound, and no number passes one whose threshold is above the upper bound.
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
