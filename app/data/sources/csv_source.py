"""Private rows from a CSV file, plain or compressed.

The first line names the columns; a line without any character is no row.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from app.data.sources.row_blocks import (
    ROWS_PER_BLOCK,
    SOURCE,
    Block,
    Blocks,
    column_indices,
    opening,
)
from app.data.spelling import ERRORS
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.data.sources.cells import SourceColumn
    from app.data.sources.row_blocks import RefuseRow

    Row = list[str]

SUFFIXES = (".csv", ".csv.gz")
BAD_PATH = "bad path"
BROKEN_FILE_ERRORS = (csv.Error, EOFError, OSError, zlib.error)


@contextmanager
def open_csv(
    source: str, columns: Sequence[SourceColumn], refuse_row: RefuseRow
) -> Iterator[Blocks]:
    """Open a ``.csv`` or ``.csv.gz`` file.

    Args:
        source: path of the file.
        columns: the columns that are read.
        refuse_row: told of a row too long or too short.

    Raises:
        DataError: it cannot be opened, or its header does not fit.

    """
    with _open(source) as file:
        yield Blocks(_Table(csv.reader(file, strict=True), columns, refuse_row).blocks())


class _Table:
    """The data rows of an open CSV file."""

    def __init__(
        self, reader: Iterator[Row], columns: Sequence[SourceColumn], refuse_row: RefuseRow
    ) -> None:
        """Read the header and find the columns."""
        self._reader = reader
        self._refuse_row = refuse_row
        header = self._header()
        self._width = len(header)
        self._indices = column_indices(header, columns, place="the header")

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

    def _header(self) -> Row:
        """Return the names of the columns."""
        try:
            row = next((row for row in self._reader if row), None)
        except BROKEN_FILE_ERRORS as error:
            raise DataError(SOURCE, f"header: {_cause(error)}") from None
        if row is not None:
            return row
        raise DataError(SOURCE, "is empty; the first line names the columns")

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


def _open(source: str) -> TextIO:
    """Open a file as text; bytes that are no UTF-8 come through escaped, to be named later."""
    with opening(source, invalid=BAD_PATH):
        if source.lower().endswith(".gz"):
            return io.TextIOWrapper(
                gzip.open(source, "rb"), encoding="utf-8-sig", errors=ERRORS, newline=""
            )
        return Path(source).open(encoding="utf-8-sig", errors=ERRORS, newline="")


def _cause(error: Exception) -> str:
    """Say what broke, without a word of the file."""
    if isinstance(error, EOFError):
        return "the compressed file ends too early"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "is not valid gzip"
    if isinstance(error, csv.Error):
        return "is not well-formed CSV: a stray quote, or a cell above 131072 characters"
    return getattr(error, "strerror", None) or BAD_PATH
