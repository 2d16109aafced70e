"""Checks of a source of private rows for fields that do not fit the schema, in all columns.

The rows are read in the same way as when a release opens (:mod:`app.data.sources.sources`), but a
field or a row that does not fit is counted and not refused. The report depends on private rows, so
it is for the operator's terminal. It contains the names of columns, the names of categories and
classes in the schema, and row numbers, but no value of a row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.checks.dead_features import summary_of
from app.data.checks.public_overlap import EqualPoints
from app.data.field_values import CellError
from app.data.schema import CategoricalFeature
from app.data.sources.column_values import NEAR_IN, NearNames, SourcePersons, Values, source_columns
from app.data.sources.csv_dialect import PLAIN_CSV
from app.data.sources.row_blocks import ColumnsMissingError
from app.data.sources.sources import decimal_of, open_source
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from app.data.persons import PersonColumn, PersonReader
    from app.data.schema import Feature, Schema
    from app.data.sources.column_values import Cells, SourceColumn
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.row_blocks import Blocks


class Misfit(StrEnum):
    """The kinds of problem that a source of rows may have."""

    MISSING_COLUMN = "missing-column"
    BAD_CELL = "bad-cell"
    BLANKS = "blanks"
    NEAR_NAME = "near-name"
    DEAD_FEATURE = "dead-feature"
    BAD_ROW = "bad-row"
    BROKEN = "broken"
    ROW_COUNT = "row-count"
    PERSON_COUNT = "person-count"


# Of these a load is refused.
REFUSED: Final = frozenset({Misfit.MISSING_COLUMN, Misfit.BAD_CELL, Misfit.BAD_ROW})
COMPLAINTS_MAX: Final = 10
A_CELL: Final = "a cell that "
MORE: Final = "and {count} more: conclave check has them all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem in a source of rows.

    Attributes:
        kind: the kind of problem.
        column: the name of the column; None for a problem of whole rows.
        problem: a phrase that describes the problem without a private value.
        row_count: the number of rows with the problem; None for a problem of a whole column.
        first_row: the number of the first row with the problem; rows are numbered from 1.
        names: the names of categories or classes to which values with the problem are similar.

    """

    kind: Misfit
    problem: str
    column: str | None = None
    row_count: int | None = None
    first_row: int | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceReport:
    """All problems that were found in a source of rows.

    Attributes:
        row_count: the number of rows that were read.
        findings: the problems; empty if everything fits.
        equal_share: the share of the public points (feature vectors) that equal a row; None if
            there are no points, or a column of the schema is missing.
        person_count: the number of persons in the rows; None if no column names persons.

    """

    row_count: int
    findings: tuple[Finding, ...]
    equal_share: float | None
    person_count: int | None = None


@dataclass(slots=True)
class _Rows:
    """Rows of one kind: how many, the first, and the public names that they are near."""

    count: int = 0
    first: int = 0
    names: Counter[str] = field(default_factory=Counter)

    def note(self, row_number: int, name: str | None = None) -> None:
        """Count one row with this problem."""
        self.first = self.first or row_number
        self.count += 1
        if name is not None:
            self.names[name] += 1

    def finding(self, kind: Misfit, problem: str, column: str | None = None) -> Finding:
        """Return the problem as a finding, with its rows."""
        return Finding(
            kind=kind,
            problem=problem,
            column=column,
            row_count=self.count,
            first_row=self.first,
            names=tuple(sorted(self.names)),
        )


class _Column:
    """What was found in one column."""

    def __init__(
        self, source: SourceColumn, feature: Feature | None, names: tuple[str, ...]
    ) -> None:
        """Start with no problems; features, the label and person names are checked differently."""
        self.source = source
        self._summary = None if feature is None else summary_of(feature)
        self._other_code = None
        if isinstance(feature, CategoricalFeature):
            names = (*feature.categories, *names)
            self._other_code = feature.other_code
        self._near = NearNames(names)
        self._bad: dict[str, _Rows] = {}
        self._blanks, self._near_rows = _Rows(), _Rows()

    def add(self, cells: Cells, rows_before: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Count the fields of a block; return their encodings, and which of them are valid."""
        fits = np.ones(len(cells), dtype=bool)
        try:
            encoded = self.source.encode(cells)
        except CellError:
            encoded = self._one_by_one(cells, fits, rows_before)
        if self._summary is not None:
            self._summary.add(encoded[fits])
        unknown = ~fits if self._other_code is None else ~fits | (encoded == self._other_code)
        if unknown.any():
            numbered = enumerate(zip(cells, unknown.tolist(), strict=True), rows_before + 1)
            for row_number, (cell, is_unknown) in numbered:
                if is_unknown and isinstance(cell, str):
                    self._note_unknown(cell, row_number)
        return encoded, fits

    def _one_by_one(
        self, cells: Cells, fits: NDArray[np.bool_], rows_before: int
    ) -> NDArray[np.float64]:
        """Encode what fits, and count the rest by what is wrong with it."""
        for index, cell in enumerate(cells):
            try:
                self.source.check(cell)
            except CellError as error:
                fits[index] = False
                self._bad.setdefault(str(error), _Rows()).note(rows_before + index + 1)
        encoded = np.full(len(cells), np.nan)
        if isinstance(cells, np.ndarray):
            encoded[fits] = self.source.encode(cells[fits])
        else:
            good = [cell for cell, is_good in zip(cells, fits, strict=True) if is_good]
            encoded[fits] = self.source.encode(Values(good))
        return encoded

    def _note_unknown(self, text: str, row_number: int) -> None:
        """Count a text that is no public name."""
        near = self._near.near(text)
        if text != text.strip():
            self._blanks.note(row_number, near)
        elif near is not None:
            self._near_rows.note(row_number, near)

    def findings(self, row_count: int) -> Iterator[Finding]:
        """Yield the column's problems, the worst first."""
        name = self.source.name
        if row_count and self._summary is not None and self._summary.dead is not None:
            yield Finding(kind=Misfit.DEAD_FEATURE, problem=self._summary.dead, column=name)
        for problem, rows in self._bad.items():
            yield rows.finding(Misfit.BAD_CELL, f"{A_CELL}{problem}", name)
        if self._blanks.count:
            yield self._blanks.finding(Misfit.BLANKS, "begins or ends with a blank", name)
        if self._near_rows.count:
            problem = f"differs from a public name only in {NEAR_IN}"
            yield self._near_rows.finding(Misfit.NEAR_NAME, problem, name)


class _Source:
    """What was found in a whole source."""

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[SourceColumn],
        points: NDArray[np.float64] | None,
        person: PersonColumn | None,
    ) -> None:
        """Start with no problems in any column."""
        self._schema = schema
        self._equal = None if points is None else EqualPoints(points)
        self._findings: list[Finding] = []
        self._columns = [
            _Column(column, feature, tuple(schema.missing_tokens) if feature else schema.classes)
            for column, feature in zip(columns, (*schema.features, None), strict=True)
        ]
        self._named = None if person is None else SourcePersons(person)
        if self._named is not None:
            self._columns.append(_Column(self._named, None, ()))
        self._bad_rows: dict[str, _Rows] = {}
        self._row_count = 0

    def read(
        self,
        source: str,
        query: str | None,
        dialect: CsvDialect,
        progress: Callable[[int], None],
    ) -> None:
        """Read every row; if columns are missing, check the other ones."""
        columns = [column.source for column in self._columns]
        try:
            with open_source(source, query, columns, dialect, refuse_row=self._note_row) as blocks:
                self._read_blocks(blocks, progress)
        except ColumnsMissingError as missing:
            self._drop(missing)
            if self._columns:
                self.read(source, query, dialect, progress)

    def _drop(self, missing: ColumnsMissingError) -> None:
        """Go on without columns that are not there once."""
        for name, problem in missing.problems.items():
            finding = Finding(kind=Misfit.MISSING_COLUMN, problem=problem, column=name)
            self._findings.append(finding)
        self._columns = [
            column for column in self._columns if column.source.name not in missing.problems
        ]

    def _read_blocks(self, blocks: Blocks, progress: Callable[[int], None]) -> None:
        try:
            for block in blocks.stream:
                self._add(block.columns)
                self._row_count += block.count
                progress(self._row_count)
        except DataError as broken:
            self._findings.append(Finding(kind=Misfit.BROKEN, problem=broken.problem))

    def _add(self, cells: Sequence[Cells]) -> None:
        """Count a block."""
        read = [
            column.add(each, self._row_count)
            for column, each in zip(self._columns, cells, strict=True)
        ]
        if self._equal is not None and self._has_schema:
            width = len(self._schema.features)
            fits = np.logical_and.reduce([column_fits for _, column_fits in read])
            self._equal.add(np.stack([encoded for encoded, _ in read[:width]], axis=1)[fits])

    @property
    def _has_schema(self) -> bool:
        """Whether no column of the schema is missing; the persons' comes after them."""
        there = {column.source.name for column in self._columns}
        return there >= {*self._schema.feature_names, self._schema.label}

    @property
    def _persons(self) -> PersonReader | None:
        """What has read all persons that were named so far."""
        if self._named is None:
            return None
        self._named.take_numbers()
        return self._named.persons

    def _note_row(self, row_number: int, problem: str) -> None:
        # It lies between the block that was read last and the next one, if there is one.
        self._row_count += 1
        self._bad_rows.setdefault(problem, _Rows()).note(row_number)

    def report(self, rows_expected: int | None) -> SourceReport:
        """Return all problems found in the source."""
        count = self._row_count
        whole = [rows.finding(Misfit.BAD_ROW, text) for text, rows in self._bad_rows.items()]
        if self._columns and not any(each.kind is Misfit.BROKEN for each in self._findings):
            whole += _row_count_findings(count, rows_expected)
            whole += _person_count_findings(self._persons)
        found = chain(self._findings, whole, *[column.findings(count) for column in self._columns])
        share = self._equal.share if self._equal is not None and self._has_schema else None
        persons = self._persons
        person_count = None if persons is None else persons.count
        return SourceReport(count, tuple(found), share, person_count)


def further_complaints(report: SourceReport, first: str) -> tuple[str, ...]:
    """Return a few reasons to refuse the rows, in addition to the first; one line per column.

    Args:
        report: the report on the source.
        first: the first reason, which is already known.

    """
    lines: dict[str | None, str] = {}
    for finding in report.findings:
        if finding.kind in REFUSED:
            lines.setdefault(finding.column, _complaint(finding))
    others = [
        line
        for column, line in lines.items()
        if line not in first and (column is None or f'column "{column}"' not in first)
    ]
    more = len(others) - COMPLAINTS_MAX
    return (*others[:COMPLAINTS_MAX], *([MORE.format(count=more)] if more > 0 else []))


def _complaint(finding: Finding) -> str:
    """Return one finding as a load refuses its first row."""
    problem = finding.problem.removeprefix(A_CELL)
    if finding.kind is Misfit.MISSING_COLUMN:
        return f'column "{finding.column}" {problem}'
    place = "" if finding.column is None else f'column "{finding.column}", '
    return f"{place}row {finding.first_row}: {problem}"


def _row_count_findings(count: int, expected: int | None) -> list[Finding]:
    """Say where rows that were counted to the end are none, or not as many as expected."""
    if not count:
        problem = "has no row of data"
    elif expected is not None and expected != count:
        problem = f"has {count} rows, and data.rows says {expected}"
    else:
        return []
    return [Finding(kind=Misfit.ROW_COUNT, problem=problem)]


def _person_count_findings(persons: PersonReader | None) -> list[Finding]:
    """Say where the rows are about another number of persons than expected."""
    if persons is None or persons.expected in (None, persons.count):
        return []
    problem = f"has {persons.count} persons, and data.persons says {persons.expected}"
    return [Finding(kind=Misfit.PERSON_COUNT, problem=problem)]


def check_source(
    source: str,
    schema: Schema,
    *,
    query: str | None = None,
    dialect: CsvDialect = PLAIN_CSV,
    rows_expected: int | None = None,
    person: PersonColumn | None = None,
    points: NDArray[np.float64] | None = None,
    progress: Callable[[int], None],
) -> SourceReport:
    """Return the problems of every column of a source of private rows.

    Args:
        source: the path or address of the source, as :func:`app.data.sources.sources.read_rows`
            accepts it.
        schema: the public schema.
        query: the ``SELECT`` query for a database, which must compute each row from one stored row.
        dialect: the separators and the encoding of a CSV file.
        rows_expected: the configured number of rows; None if none is configured.
        person: the private column that names persons; None if a row is the unit of privacy.
        points: public points (feature vectors), encoded by the public schema, shape
            ``(points, features)``, which are compared with the rows.
        progress: a function that is called with the number of rows read so far.

    Raises:
        DataError: the source cannot be opened.
        ConfigurationError: the query of a database combines several rows.

    """
    columns = source_columns(schema, decimal=decimal_of(source, dialect))
    found = _Source(schema, columns, points, person)
    found.read(source, query, dialect, progress)
    return found.report(rows_expected)
