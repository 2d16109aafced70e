"""Conversion of the rows of a client's CSV to lines of ``POST /query/stream``."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from app.data.field_values import with_point
from app.data.sources.column_values import NearNames
from app.data.sources.csv_dialect import OPTION, PLAIN_CSV, csv_problem
from app.errors import ConfigurationError
from app.http.wire.headers_and_bodies import number_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.sources.csv_dialect import CsvDialect


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the client's CSV: its number (1 for the first under the header) and its fields."""

    number: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A feature, with the position of its column in the client's CSV."""

    name: str
    is_numeric: bool
    position: int


class Table:
    """An open CSV file: its header, and its rows, which can be read once."""

    def __init__(self, file: TextIO, source: str, dialect: CsvDialect = PLAIN_CSV) -> None:
        """Read the header; ``source`` names the file in errors."""
        self.source = source
        self.dialect = dialect
        try:
            self._head = dialect.header(file)
        except (csv.Error, UnicodeError) as error:
            raise ConfigurationError(source, self._why(error)) from None
        if not self._head.line.strip():
            raise ConfigurationError(source, "is empty; a header line is needed")
        self.header = self._head.names
        self._cells = self._read(dialect.rows(file))

    def check(self, names: Sequence[str]) -> None:
        """Refuse a header that lacks features only because another CSV separator is assumed.

        Args:
            names: the names of the features.

        Raises:
            ConfigurationError: the header fits with another separator; the error names the option
                to give.

        """
        likely = None
        if not set(names).issubset(self.header):
            likely = self._head.likely(names, form=OPTION)
        if likely is not None:
            raise ConfigurationError(self.source, f"the header {likely}")

    def _why(self, error: Exception) -> str:
        """Say why a file is refused."""
        if isinstance(error, csv.Error):
            return csv_problem(error)
        return f"is not a CSV in {self.dialect.encoding.upper()}: set --encoding"

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the CSV; empty lines are skipped.

        Raises:
            ConfigurationError: a row has more or fewer fields than the header.

        """
        for number, cells in enumerate(filter(None, self._cells), start=1):
            if len(cells) != len(self.header):
                problem = f"row {number} has {len(cells)} cells, the header has {len(self.header)}"
                raise ConfigurationError(self.source, problem)
            yield Row(number, cells)

    def _read(self, reader: Iterator[list[str]]) -> Iterator[list[str]]:
        try:
            yield from reader
        except (csv.Error, UnicodeError) as error:
            raise ConfigurationError(self.source, self._why(error)) from None


class LineWriter:
    """A converter from CSV rows to queries with values in schema order."""

    def __init__(
        self,
        schema: dict[str, object],
        table: Table,
        *,
        precision: int | None = None,
    ) -> None:
        """Find each feature's column by its name; other columns are ignored.

        Args:
            schema: the public schema that the server sent.
            table: the open CSV.
            precision: the number of score bins to ask for; None for the server's default.

        Raises:
            ConfigurationError: the column of a feature is missing, or occurs twice.

        """
        self._asked = {} if precision is None else {"precision": precision}
        self._missing = frozenset((*_strings(schema["missing"]), ""))
        self._decimal = table.dialect.decimal
        features = _tables(schema["features"])
        table.check([str(feature["name"]) for feature in features])
        self._columns = [_column(feature, table.header, table.source) for feature in features]

    def line(self, row: Row) -> bytes:
        """Return a row's query as one JSON line.

        Raises:
            ConfigurationError: a field that must be a number is none; the error names the column
                and the row.

        """
        features = [self._value(column, row) for column in self._columns]
        return json.dumps({"features": features, **self._asked}).encode() + b"\n"

    def _value(self, column: Column, row: Row) -> float | str | None:
        cell = row.cells[column.position]
        if cell in self._missing:
            return None
        if not column.is_numeric:
            return cell
        number = number_in(with_point(cell, self._decimal))
        if number is None:
            raise ConfigurationError(column.name, f"row {row.number}: a number is needed")
        return number


def _column(feature: dict[str, object], header: Sequence[str], source: str) -> Column:
    name = str(feature["name"])
    if header.count(name) != 1:
        how = "no" if name not in header else "more than one"
        near = None if name in header else NearNames(header).near(name)
        meant = "" if near is None else f'; there is "{near}"'
        raise ConfigurationError(
            source, f"has {how} column named {name}, which the server asks for{meant}"
        )
    return Column(name, feature["kind"] == "numeric", header.index(name))


def _strings(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _tables(value: object) -> list[dict[str, object]]:
    tables = value if isinstance(value, list) else []
    return [each for each in tables if isinstance(each, dict)]
