"""The published form of linear and kernel scores: integer weights of inputs.

For fast predictions, the tests cut each feature into intervals. The weights of all feature tests
and conjunctions that use the same one or two features are added up beforehand, for each interval or
pair of intervals. Cosine features and numbers are computed in 64-bit integers.

A score is a weighted sum of inputs: feature tests, their conjunctions, numbers (values of numeric
features), and cosine features (cosines of random weighted sums of numbers). With two classes the
sign of the only score decides the label, and with more classes the largest score. A kernel score is
a linear score whose inputs include cosine features.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from app.errors import invariant
from app.learning.halfspaces.arrangement import COORDINATE_MAX
from app.learning.linear.cosine_features import MAGNITUDE, PHASES, cosine_table
from app.learning.linear.kernel_scores import KernelInputs
from app.release.classifier.classifier_document import (
    LiteralDocument,
    NumbersDocument,
    ScoresDocument,
    TermDocument,
    WavesDocument,
)
from app.release.classifier.written_hypotheses import condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.data.vectors import Vector
    from app.learning.encoding.binary_tests import BinaryTest
    from app.learning.linear.conjunctions import Terms
    from app.learning.linear.cosine_features import Waves
    from app.learning.linear.kernel_scores import KernelScores
    from app.learning.linear.linear_scores import LinearScores
    from app.learning.linear.quantile_steps import Numbers
    from app.release.classifier.classifier_document import FeatureDocument

Cells: TypeAlias = frozenset[int]

PAIR: Final = 2
SUM_MAX: Final = 2**62
ROWS_AT_ONCE: Final = 256
"""Rows whose entries are in memory together: some thousand numbers each."""


def scores_document(scores: LinearScores, schema: Schema) -> ScoresDocument:
    """Return the document of linear scores, without inputs whose weights are all zero."""
    terms = _terms(scores.terms, scores.weights, schema)
    return ScoresDocument(scores.unit, scores.intercepts, terms)


def kernel_document(scores: KernelScores, schema: Schema) -> ScoresDocument:
    """Return the document of kernel scores, without inputs whose weights are all zero."""
    inputs = scores.inputs
    of_terms = _rows(MAGNITUDE * scores.weights[: len(inputs.terms)])
    others = scores.weights[len(inputs.terms) :]
    return ScoresDocument(
        scores.unit,
        tuple(scores.intercepts.tolist()),
        _terms(inputs.terms, of_terms, schema),
        waves=_waves(inputs.waves, others) if isinstance(inputs, KernelInputs) else None,
        numbers=None if isinstance(inputs, KernelInputs) else _numbers(inputs.numbers, others),
    )


def _rows(weights: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """Write weights, one tuple a feature."""
    return tuple(tuple(row) for row in weights.tolist())


def _terms(
    terms: Terms, weights: Sequence[tuple[int, ...]], schema: Schema
) -> tuple[TermDocument, ...]:
    """Write terms with their weights, but for those whose weights are all zero."""
    return tuple(
        TermDocument(
            tuple(_literal(terms.tests[index], schema, fails=not holds) for index, holds in term),
            row,
        )
        for term, row in zip(terms.terms, weights, strict=True)
        if any(row)
    )


def _waves(waves: Waves, weights: NDArray[np.int64]) -> WavesDocument:
    """Write waves with the integers of their map, and their weights."""
    return WavesDocument(
        features=waves.feature_indices,
        bounds=waves.bounds,
        steps=COORDINATE_MAX,
        cosines=tuple(cosine_table().tolist()),
        frequencies=_rows(waves.frequencies.T),
        shifts=tuple(waves.shifts.tolist()),
        weights=_rows(weights),
    )


def _numbers(numbers: Numbers, weights: NDArray[np.int64]) -> NumbersDocument:
    """Write numbers with the bounds between which they count, and their weights."""
    return NumbersDocument(
        features=numbers.feature_indices,
        bounds=numbers.bounds,
        steps=MAGNITUDE,
        weights=_rows(weights),
    )


class PublishedScores:
    """A published classifier with scores that is ready to predict."""

    def __init__(
        self,
        document: ScoresDocument,
        *,
        features: Sequence[FeatureDocument],
        missing: Sequence[str],
    ) -> None:
        """Add up the weights of all tests on the same features in one table, for speed."""
        literals = [literal for term in document.terms for literal in term.tests]
        used = sorted({literal.feature for literal in literals})
        self._columns = {
            feature: _column(features[feature], missing, literals, feature) for feature in used
        }
        # What terms of the same features add, by their cells: a table for each score.
        tables: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
        self._rest: list[tuple[dict[int, Cells], tuple[int, ...]]] = []
        for term in document.terms:
            self._add(tables, term)
        self._tables = _SummedTables(document.intercepts, self._columns, tables)
        self._added: list[Callable[[Vector], list[int]]] = []
        if document.waves is not None:
            self._added.append(_PublishedWaves(document.waves))
        if document.numbers is not None:
            self._added.append(_PublishedNumbers(document.numbers))

    def class_index(self, vector: Vector) -> int:
        """Return the class index for a feature vector."""
        return _best(self.scores(vector))

    def class_indices(self, vectors: Sequence[Vector]) -> list[int]:
        """Return the class index for each feature vector, computed together."""
        return list(map(_best, self.scores_many(vectors)))

    def scores(self, vector: Vector) -> list[int]:
        """Return the scores of a feature vector, with its features in schema order."""
        cells = {feature: column.cell(vector[feature]) for feature, column in self._columns.items()}
        ((*scores,),) = self._tables.sums([[*cells.values()]])
        return self._with_others(scores, cells, vector)

    def scores_many(self, vectors: Sequence[Vector]) -> list[list[int]]:
        """Return the scores of each feature vector, in whole numbers and so in any company."""
        columns = [
            [column.cell(vector[feature]) for vector in vectors]
            for feature, column in self._columns.items()
        ]
        rows = list(zip(*columns, strict=True)) or [()] * len(vectors)
        found = self._tables.sums(rows)
        if not self._rest and not self._added:
            return found
        return [
            self._with_others(scores, dict(zip(self._columns, cells, strict=True)), vector)
            for scores, cells, vector in zip(found, rows, vectors, strict=True)
        ]

    def _with_others(
        self, scores: list[int], cells: Mapping[int, int], vector: Vector
    ) -> list[int]:
        """Add what tests of many features, cosine features and numbers add to scores."""
        for wanted, weights in self._rest:
            if all(cells[feature] in allowed for feature, allowed in wanted.items()):
                scores = [score + weight for score, weight in zip(scores, weights, strict=True)]
        for added in self._added:
            scores = [each + more for each, more in zip(scores, added(vector), strict=True)]
        return scores

    def _add(
        self, tables: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]], term: TermDocument
    ) -> None:
        """Add a term to the table of its features, or keep it where those are many."""
        wanted: dict[int, Cells] = {}
        for literal in term.tests:
            cells = self._columns[literal.feature].passing(literal)
            wanted[literal.feature] = wanted.get(literal.feature, cells) & cells
        features = tuple(sorted(wanted))
        if len(features) > PAIR:
            self._rest.append((wanted, term.weights))
            return
        table = tables.get(features)
        if table is None:
            ranges = [range(self._columns[feature].cell_count) for feature in features]
            table = {cells: [0] * len(term.weights) for cells in product(*ranges)}
            tables[features] = table
        for place in product(*(wanted[feature] for feature in features)):
            for index, weight in enumerate(term.weights):
                table[place][index] += weight


def _best(scores: Sequence[int]) -> int:
    """Return the class index that scores decide: by the sign of one, or the largest of several."""
    return int(scores[0] > 0) if len(scores) == 1 else scores.index(max(scores))


class _SummedTables:
    """The tables of all features and pairs of features, one after another in one array.

    The entry of a table for two cells is at the table's start, plus the first cell times the number
    of cells of the second feature, plus the second cell.
    """

    def __init__(
        self,
        intercepts: Sequence[int],
        columns: Mapping[int, _Numbers | _Strings],
        tables: Mapping[tuple[int, ...], Mapping[tuple[int, ...], Sequence[int]]],
    ) -> None:
        places = {feature: place for place, feature in enumerate(columns)}
        of_nothing = len(columns)  # a further column, of zeros
        starts, firsts, seconds, strides = [], [], [], []
        entries: list[Sequence[int]] = []
        for features, table in tables.items():
            first, second = (*(places[each] for each in features), of_nothing, of_nothing)[:PAIR]
            starts.append(len(entries))
            firsts.append(first)
            seconds.append(second)
            strides.append(columns[features[1]].cell_count if len(features) == PAIR else 1)
            entries += table.values()  # in the order of their cells
        largest = sum(
            max((abs(each) for row in table.values() for each in row), default=0)
            for table in tables.values()
        )
        largest += max(map(abs, intercepts), default=0)
        # Python's own whole numbers where a sum might not fit into 64 bits.
        kind = np.int64 if largest < SUM_MAX else np.object_
        self._intercepts = np.array(intercepts, dtype=kind)
        self._entries = np.array(entries, dtype=kind).reshape(len(entries), len(intercepts))
        self._starts, self._firsts, self._seconds, self._strides = (
            np.array(each, dtype=np.int64) for each in (starts, firsts, seconds, strides)
        )

    def sums(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the intercepts and the entries of each row's cells, added up for each score."""
        found: list[list[int]] = []
        for at in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[at : at + ROWS_AT_ONCE]
            cells = np.zeros((len(some), len(some[0]) + 1), dtype=np.int64)
            cells[:, :-1] = some
            where = cells[:, self._firsts] * self._strides + cells[:, self._seconds] + self._starts
            found += (self._entries[where].sum(axis=1) + self._intercepts).tolist()
        return found


class _PublishedWaves:
    """Waves of a document, ready to be added up."""

    def __init__(self, document: WavesDocument) -> None:
        self._document = document
        self._frequencies = np.array(document.frequencies, dtype=np.int64)
        self._shifts = np.array(document.shifts, dtype=np.int64)
        self._cosines = np.array(document.cosines, dtype=np.int64)
        self._weights = np.array(document.weights, dtype=np.int64)
        self._phases_per_place = PHASES // len(document.cosines)

    def __call__(self, vector: Vector) -> list[int]:
        """Return what the waves of a feature vector add to its scores."""
        point = _point_of(vector, self._document)
        phases = self._frequencies @ np.array(point, dtype=np.int64) + self._shifts
        waves = self._cosines[phases % PHASES // self._phases_per_place]
        added: list[int] = (waves @ self._weights).tolist()
        return added


class _PublishedNumbers:
    """Numbers of a document, ready to be added up."""

    def __init__(self, document: NumbersDocument) -> None:
        self._document = document

    def __call__(self, vector: Vector) -> list[int]:
        """Return what the numbers of a feature vector add to its scores."""
        rows = self._document.weights
        point = _point_of(vector, self._document)
        return [
            sum(steps * weight for steps, weight in zip(point, column, strict=True))
            for column in zip(*rows, strict=True)
        ]


def _point_of(vector: Vector, document: WavesDocument | NumbersDocument) -> list[int]:
    """Return the numbers of a feature vector in whole steps."""
    return [
        whole_steps_of(vector[feature], bounds, document.steps)
        for feature, bounds in zip(document.features, document.bounds, strict=True)
    ]


def whole_steps_of(value: float | str | None, bounds: tuple[float, float], steps: int) -> int:
    """Return how many steps a number lies above its lower bound; 0 if it is missing.

    A step is the distance between the bounds divided by ``steps``; the result is a whole number.
    """
    if not isinstance(value, float) or math.isnan(value):
        return 0
    lower, upper = bounds
    return round((min(max(value, lower), upper) - lower) / (upper - lower) * steps)


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
