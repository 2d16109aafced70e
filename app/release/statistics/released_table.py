"""The public statistics table of a release, and the answers computed from it.

When the table's ledger entry is committed, the document is public; answering from it is
post-processing and costs nothing. The answer for a posted hypothesis is the mean outcome of the
hypothesis in the table that gives the public points the same outcomes, or almost the same.

A hypothesis is a rule that gives each row the outcome -1 or +1. The statistics table has, for each
hypothesis of a class, the noisy mean of its outcomes over the private rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.errors import InvalidHypothesisError, InvariantError, TooLargeError, invariant
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.enumerated.boxes import Boxes, axes_of
from app.learning.statistics_tables.representative_domain import Projection
from app.learning.statistics_tables.table_hypotheses import TREE_KINDS
from app.learning.trees.tree_lists import TreeList
from app.privacy.multiplicative_weights.mechanism import Table
from app.release.private_state import read_piece
from app.release.statistics.posted_hypotheses import labels_on
from app.release.statistics.statistics_table import ALPHA_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.schema import Schema
    from app.learning.enumerated.hypothesis_list import HypothesisList
    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import Ledger
    from app.release.statistics.posted_hypotheses import AskedHypothesis
    from app.release.statistics.statistics_table import StatisticsDraw
    from app.release.terms.configuration import Configuration

FORMAT: Final = "conclave-statistics"
VERSION: Final = 1
# Whatever the number of labels: a hypothesis names the two that it is about.
OUTCOME_COUNT: Final = 2
POINTS_PIECE: Final = "statistics-points"
# Half of alpha is the points' own, and a value moves by two where a label changes.
DISAGREEMENT_PARTS: Final = 4
MANY_OUTSIDE: Final = (
    "{count} of the hypotheses label the public points as none of the table does, and at most "
    "{most} such are answered at once"
)
# What one request may compare with the whole table: seconds, and not hours, of a core.
SEARCH_WORDS_MAX: Final = 1 << 28


class DocumentTest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A yes-or-no test of one feature: a threshold, or ``code``, the index of a category."""

    feature: int
    at_least: float | None = None
    code: int | None = None


class StatisticsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The whole statistics table as a JSON document.

    Attributes:
        format: the text ``conclave-statistics``.
        version: the number 1.
        release: the name of the release.
        kind: the name of the hypothesis class that the section ``[statistics]`` configures.
        depth: the number of levels of tests in its trees; 0 for boxes (rules that test whether one
            or two numeric features lie in intervals).
        classes: with two labels, the labels that count as -1 and +1; with more, the labels of which
            a hypothesis may name two.
        tests: the feature tests of the hypotheses.
        hypotheses: a list of integers for each hypothesis. For trees: test indices in heap order,
            then leaf labels. For boxes: three integers for each of two intervals. The first is the
            index of a feature among the tested features. The others are the first rank inside the
            interval and the first rank above it, where the rank of a value is the number of the
            feature's thresholds that are at most the value. An interval that restricts no feature
            has the index after that of the last tested feature, and every row has rank 0 for this
            index.
        counts: for each hypothesis, the noisy number of rows, or persons, to which it gives the
            second outcome.
        row_count: the public number n of rows, or of persons.
        cell_count: the number of cells into which the hypotheses divide the public feature space.
        point_count: the number of public points.
        update_count: the number of noisy counts that were drawn.
        pass_count: the number of complete passes that the mechanism made over the hypotheses.
        alpha: the largest error of a mean outcome. A mean outcome lies between -1 and 1, so an
            alpha of 2 promises nothing.
        beta: the probability with which alpha may be exceeded.
        calibration: the parameters of the noise, as exact strings.

    """

    format: str
    version: int
    release: str
    kind: str
    depth: int
    classes: tuple[str, ...]
    tests: tuple[DocumentTest, ...]
    hypotheses: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    row_count: int
    cell_count: int
    point_count: int
    update_count: int
    pass_count: int
    alpha: float
    beta: float
    calibration: dict[str, str]


@dataclass(frozen=True, slots=True)
class StatisticsAnswer:
    """The reply with the mean outcomes of posted hypotheses.

    Attributes:
        values: the mean outcome of each hypothesis over the rows, -1 for the first outcome and +1
            for the second; if a column names persons, the mean over persons of each person's mean.
        fractions: the fraction of rows, or persons, to which each hypothesis gives the second
            outcome.
        alpha: the largest error of a value, as in the document.
        beta: the probability with which alpha may be exceeded, as in the document.

    """

    values: list[float]
    fractions: list[float]
    alpha: float
    beta: float


class DrawnStatistics(msgspec.Struct, frozen=True):
    """A drawn statistics table: the text of its ledger entry, and its public points."""

    document: str
    points: bytes


class ReleasedStatistics:
    """A released statistics table that is ready to answer.

    Args:
        json: the table's document, as in its ledger entry.
        public_values: the public points, encoded, shape ``(m, d)``.
        schema: the public schema.

    """

    def __init__(self, json: bytes, public_values: NDArray[np.float64], schema: Schema) -> None:
        """Evaluate every hypothesis on the public points, once."""
        document = msgspec.json.decode(json, type=StatisticsDocument)
        invariant(document.format == FORMAT, "a released table names its format")
        invariant(document.version == VERSION, "a released table is of a known version")
        hypotheses = _hypotheses(document)
        invariant(len(hypotheses) == len(document.counts), "a table has a count a hypothesis")
        self.document = document
        self.json = json
        self._schema = schema
        self._public_values = public_values
        self._projection = Projection(hypotheses, hypotheses.encode(public_values))
        self._table = Table(
            document.row_count, document.counts, document.update_count, document.pass_count
        )

    def answer(self, asked: Sequence[AskedHypothesis]) -> StatisticsAnswer:
        """Return the mean outcome of each posted hypothesis from the released table.

        No private row is read.

        Raises:
            InvalidHypothesisError: no hypothesis of the table is similar enough to a posted
                hypothesis, by their outcomes on the public points.
            TooLargeError: too many posted hypotheses are not in the table, and a search for
                similar ones would take too long.

        """
        labels = [labels_on(self._schema, each, self._public_values) for each in asked]
        self._refuse_long_search(labels)
        indices = [self._index_of(number, each) for number, each in enumerate(labels)]
        fractions = [
            Fraction(self.document.counts[index], self.document.row_count) for index in indices
        ]
        return StatisticsAnswer(
            values=[float(self._table.expectation(index)) for index in indices],
            fractions=[float(fraction) for fraction in fractions],
            alpha=self.document.alpha,
            beta=self.document.beta,
        )

    def _refuse_long_search(self, asked: Sequence[NDArray[np.uint8]]) -> None:
        """Refuse what a search of the whole table for every one of them takes too long for."""
        words = [each for each in map(self._projection.search_word_count, asked) if each]
        if len(words) > 1 and sum(words) > SEARCH_WORDS_MAX:
            most = max(1, SEARCH_WORDS_MAX // words[0])
            raise TooLargeError(MANY_OUTSIDE.format(count=len(words), most=most))

    def _index_of(self, number: int, labels: NDArray[np.uint8]) -> int:
        """Return the hypothesis of the table that has these labels of the points, or nearly."""
        index, apart = self._projection.nearest(labels)
        allowed = self.document.alpha / DISAGREEMENT_PARTS * self.document.point_count
        if apart > allowed:
            raise InvalidHypothesisError(number=number, problem=self._outside(apart))
        return index

    def _outside(self, apart: int) -> str:
        document = self.document
        depth = f" of depth {document.depth}" if document.depth else ""
        return (
            f"lies outside the table, whose nearest hypothesis labels {apart} of "
            f"{document.point_count} public points otherwise: ask {document.kind}{depth} over "
            "the tests that GET /statistics/table lists"
        )


def drawn_statistics(
    configuration: Configuration,
    draw: StatisticsDraw,
    table: Table,
    public_values: NDArray[np.float64],
) -> DrawnStatistics:
    """Return a drawn statistics table as a public document, with its points."""
    covered, hypotheses = configuration.settings.covered, draw.domain.hypotheses
    document = StatisticsDocument(
        format=FORMAT,
        version=VERSION,
        release=configuration.name,
        kind=covered.kind,
        depth=hypotheses.depth if isinstance(hypotheses, TreeList) else 0,
        classes=configuration.schema.classes,
        tests=tuple(_document_test(test) for test in draw.tests),
        hypotheses=tuple(tuple(row) for row in _integers(hypotheses).tolist()),
        counts=table.counts,
        row_count=table.row_count,
        cell_count=draw.domain.cell_count,
        point_count=len(public_values),
        update_count=table.update_count,
        pass_count=table.pass_count,
        alpha=_promised(draw, table),
        beta=float(draw.calibration.failure),
        calibration=draw.calibration.to_plain(),
    )
    points = np.ascontiguousarray(public_values, dtype="<f8").tobytes()
    return DrawnStatistics(msgspec.json.encode(document).decode(), points)


def read_statistics(document: str, points: bytes, schema: Schema) -> ReleasedStatistics:
    """Return the statistics table in a ledger entry, with its stored public points."""
    values = np.frombuffer(points, dtype="<f8").astype(np.float64)
    return ReleasedStatistics(document.encode(), values.reshape(-1, len(schema.features)), schema)


def released_statistics(
    state: LedgerState, ledger: Ledger, schema: Schema
) -> ReleasedStatistics | None:
    """Return the committed statistics table; None if there is none.

    Raises:
        LedgerCorruptError: the table's public points are missing or altered.

    """
    if state.statistics is None:
        return None
    points = read_piece(ledger, POINTS_PIECE)
    return read_statistics(state.statistics.statistics, points, schema)


def released_table(state: LedgerState, ledger: Ledger, schema: Schema) -> ReleasedStatistics:
    """Return the committed statistics table, which must exist."""
    table = released_statistics(state, ledger, schema)
    if table is None:
        raise InvariantError("a table is open")
    return table


def _promised(draw: StatisticsDraw, table: Table) -> float:
    """Return alpha: four times what the complete passes promise, as a share of the rows."""
    if table.pass_count == 0:
        return ALPHA_MAX
    threshold = draw.calibration.thresholds[table.pass_count - 1]
    error_count = threshold + draw.calibration.test_deviation
    return min(ALPHA_MAX, DISAGREEMENT_PARTS * error_count / table.row_count)


def _integers(hypotheses: HypothesisList) -> NDArray[np.int64]:
    if isinstance(hypotheses, TreeList):
        return hypotheses.cells
    if isinstance(hypotheses, Boxes):
        return hypotheses.sides.reshape(len(hypotheses), -1).astype(np.int64)
    raise InvariantError("a table covers trees or boxes")


def _hypotheses(document: StatisticsDocument) -> HypothesisList:
    tests = [_test_of(test) for test in document.tests]
    integers = np.array(document.hypotheses, dtype=np.int64)
    if document.kind in TREE_KINDS:
        return TreeList(tests, integers, depth=document.depth, class_count=OUTCOME_COUNT)
    return Boxes(axes_of(tests), integers.reshape(len(integers), 2, 3).astype(np.int32))


def _document_test(test: BinaryTest) -> DocumentTest:
    return DocumentTest(test.feature_index, test.cut, test.category_code)


def _test_of(test: DocumentTest) -> BinaryTest:
    return BinaryTest(
        feature_index=test.feature,
        cut=test.at_least,
        category_code=test.code,
        public_frequency=0.5,
    )
