"""The published form of a linear classifier: integer scores of public terms.

Prediction looks every feature up in a table of its own: terms of one feature, and of
two, are summed beforehand for each of the cells into which the tests cut a feature.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from app.errors import invariant
from app.release.classifier.classifier_document import LiteralDocument, ScoresDocument, TermDocument
from app.release.classifier.written_hypotheses import condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.linear.linear_scores import LinearScores
    from app.release.classifier.classifier_document import FeatureDocument

Cells: TypeAlias = frozenset[int]

PAIR = 2


def scores_document(scores: LinearScores, schema: Schema) -> ScoresDocument:
    """Write linear scores; terms whose weights are all zero are left out."""
    terms = scores.terms
    written = [
        TermDocument(
            tuple(_literal(terms.tests[index], schema, fails=not holds) for index, holds in term),
            weights,
        )
        for term, weights in zip(terms.terms, scores.weights, strict=True)
        if any(weights)
    ]
    return ScoresDocument(scores.unit, scores.intercepts, tuple(written))


class PublishedScores:
    """A document of scores, ready to predict."""

    def __init__(
        self,
        document: ScoresDocument,
        *,
        features: Sequence[FeatureDocument],
        missing: Sequence[str],
    ) -> None:
        """Sum up terms by the cells of their features."""
        self._intercepts = document.intercepts
        literals = [literal for term in document.terms for literal in term.tests]
        used = sorted({literal.feature for literal in literals})
        self._columns = {
            feature: _column(features[feature], missing, literals, feature) for feature in used
        }
        # What terms of the same features add, by their cells: a table for each score.
        self._tables: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        self._rest: list[tuple[dict[int, Cells], tuple[int, ...]]] = []
        for term in document.terms:
            self._add(term)

    def class_index(self, vector: Vector) -> int:
        """Return the index of the class that a feature vector is given."""
        scores = self.scores(vector)
        return int(scores[0] > 0) if len(scores) == 1 else scores.index(max(scores))

    def scores(self, vector: Vector) -> list[int]:
        """Return the scores of a feature vector in schema order."""
        cells = {feature: column.cell(vector[feature]) for feature, column in self._columns.items()}
        scores = list(self._intercepts)
        for features, table in self._tables.items():
            for index, weight in enumerate(table[tuple(cells[feature] for feature in features)]):
                scores[index] += weight
        for wanted, weights in self._rest:
            if all(cells[feature] in allowed for feature, allowed in wanted.items()):
                scores = [score + weight for score, weight in zip(scores, weights, strict=True)]
        return scores

    def _add(self, term: TermDocument) -> None:
        """Add a term to the table of its features, or keep it where those are many."""
        wanted: dict[int, Cells] = {}
        for literal in term.tests:
            cells = self._columns[literal.feature].passing(literal)
            wanted[literal.feature] = wanted.get(literal.feature, cells) & cells
        features = tuple(sorted(wanted))
        if len(features) > PAIR:
            self._rest.append((wanted, term.weights))
            return
        table = self._tables.get(features)
        if table is None:
            ranges = [range(self._columns[feature].cell_count) for feature in features]
            table = {cells: [0] * len(term.weights) for cells in product(*ranges)}
            self._tables[features] = table
        for place in product(*(wanted[feature] for feature in features)):
            for index, weight in enumerate(term.weights):
                table[place][index] += weight


class _Numbers:
    """The cells of a number: how many of its cuts are at or below it; 0 where it is missing."""

    def __init__(self, bounds: tuple[float, float], cuts: Sequence[float]) -> None:
        self._lower, self._upper = bounds
        self._cuts = sorted(set(cuts))
        self.cell_count = len(self._cuts) + 1

    def cell(self, value: float | str | None) -> int:
        if not isinstance(value, float) or math.isnan(value):
            return 0
        return bisect_right(self._cuts, min(max(value, self._lower), self._upper))

    def passing(self, literal: LiteralDocument) -> Cells:
        invariant(literal.at_least is not None, "a number is compared with a cut")
        first = self._cuts.index(literal.at_least or 0.0) + 1
        holds = range(first, self.cell_count)
        return frozenset(range(first)) if literal.fails else frozenset(holds)


class _Strings:
    """The cells of a string: its place among the categories, other, and missing."""

    def __init__(self, categories: Sequence[str], missing: Sequence[str]) -> None:
        self._codes = {category: code for code, category in enumerate(categories)}
        self._other = len(categories)
        self.cell_count = self._other + 2
        # A category counts as one even where it is a token of missing.
        tokens = dict.fromkeys(("", *missing), self._other + 1)
        self._cells = tokens | self._codes

    def cell(self, value: float | str | None) -> int:
        if not isinstance(value, str):
            return self._other + 1
        return self._cells.get(value, self._other)

    def passing(self, literal: LiteralDocument) -> Cells:
        cells = set()
        if literal.category in self._codes:
            cells.add(self._codes[literal.category])
        elif literal.other:
            cells.add(self._other)
        elif literal.missing:
            cells.add(self._other + 1)
        everything = frozenset(range(self.cell_count))
        return everything - cells if literal.fails else frozenset(cells)


def _column(
    feature: FeatureDocument,
    missing: Sequence[str],
    literals: Sequence[LiteralDocument],
    index: int,
) -> _Numbers | _Strings:
    """Return the cells into which literals cut a feature."""
    if feature.bounds is None:
        return _Strings(feature.categories or (), missing)
    cuts = [each.at_least for each in literals if each.feature == index]
    return _Numbers(feature.bounds, [cut for cut in cuts if cut is not None])


def _literal(test: BinaryTest, schema: Schema, *, fails: bool) -> LiteralDocument:
    """Write a test, and whether it has to fail."""
    tested = condition(schema.features[test.feature_index], test)
    return LiteralDocument(feature=test.feature_index, fails=fails, **tested)
