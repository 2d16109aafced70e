"""Private rows from a CSV file, plain or compressed.

The first line names the columns; a line without any character is no row.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from contextlib import contextmanager
from itertools import groupby, islice
from typing import TYPE_CHECKING, TextIO

from app.data.sources.csv_dialect import BROKEN_TEXT
from app.data.sources.row_blocks import (
    ROWS_PER_BLOCK,
    SOURCE,
    Block,
    Blocks,
    ColumnsMissingError,
    column_indices,
    opening,
)
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.data.sources.cells import SourceColumn
    from app.data.sources.csv_dialect import CsvDialect, Header
    from app.data.sources.row_blocks import RefuseRow

    Row = list[str]

SUFFIXES = (".csv", ".csv.gz")
BAD_PATH = "bad path"
BROKEN_FILE_ERRORS = (csv.Error, EOFError, OSError, UnicodeError, zlib.error)


@contextmanager
def open_csv(
    source: str, columns: Sequence[SourceColumn], refuse_row: RefuseRow, dialect: CsvDialect
) -> Iterator[Blocks]:
    """Open a ``.csv`` or ``.csv.gz`` file.

    Args:
        source: path of the file.
        columns: the columns that are read.
        refuse_row: told of a row too long or too short.
        dialect: how the file is written.

    Raises:
        DataError: it cannot be opened, or its header does not fit.

    """
    with opening(source, invalid=BAD_PATH):
        opened = dialect.open(source)
    with opened as file:
        yield Blocks(_Table(file, columns, refuse_row, dialect).blocks())


class _Table:
    """The data rows of an open CSV file."""

    def __init__(
        self,
        file: TextIO,
        columns: Sequence[SourceColumn],
        refuse_row: RefuseRow,
        dialect: CsvDialect,
    ) -> None:
        """Read the header and find the columns."""
        self._refuse_row = refuse_row
        header = _header(file, dialect)
        self._width = len(header.names)
        try:
            self._indices = column_indices(header.names, columns, place="the header")
        except ColumnsMissingError:
            likely = header.likely([column.name for column in columns])
            if likely is None:
                raise
            raise DataError(SOURCE, f"the header {likely}") from None
        self._reader: Iterator[Row] = dialect.rows(file)

    def blocks(self) -> Iterator[Block]:
        """Yield the rows; of a row too long or too short, after those before it."""
        count = refused = 0
        for rows in self._rows():
            for width, run in groupby(rows, key=len):
                alike = list(run)
                if width == self._width:
                    cells = list(zip(*alike, strict=True))
                    yield Block([cells[index] for index in self._indices], rows_refused=refused)
                    refused = 0
                else:
                    problem = f"has {width} cells, the header has {self._width}"
                    for index in range(len(alike)):
                        self._refuse_row(count + index + 1, problem)
                    refused += len(alike)
                count += len(alike)

    def _rows(self) -> Iterator[list[Row]]:
        """Yield rows in blocks; the row at which the file breaks is named."""
        count = 0
        while True:
            lines: list[Row] = []
            broken = None
            try:
                lines.extend(islice(self._reader, ROWS_PER_BLOCK))
            except BROKEN_FILE_ERRORS as error:
                broken = _cause(error)
            rows = [line for line in lines if line]
            if rows:
                yield rows
            count += len(rows)
            if broken is not None:
                raise DataError(SOURCE, f"row {count + 1}: {broken}")
            if not lines:
                return


def _header(file: TextIO, dialect: CsvDialect) -> Header:
    """Read the names of the columns."""
    try:
        header = dialect.header(file)
    except BROKEN_FILE_ERRORS as error:
        raise DataError(SOURCE, f"header: {_cause(error)}") from None
    if not header.line.strip():
        raise DataError(SOURCE, "is empty; the first line names the columns")
    return header


def _cause(error: Exception) -> str:
    """Say what broke, without a word of the file."""
    if isinstance(error, EOFError):
        return "the compressed file ends too early"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "is not valid gzip"
    if isinstance(error, csv.Error):
        return "is not well-formed CSV: a stray quote, or a cell above 131072 characters"
    if isinstance(error, UnicodeError):
        return BROKEN_TEXT
    return getattr(error, "strerror", None) or BAD_PATH
