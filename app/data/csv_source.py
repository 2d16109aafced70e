"""Private rows from a CSV file, plain or compressed.

The first line names the columns; a line without any character is no row.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from app.data.row_blocks import ROWS_PER_BLOCK, SOURCE, Block, Blocks, column_indices
from app.data.spelling import ERRORS
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.data.cells import SourceColumn

    Row = list[str]

SUFFIXES = (".csv", ".csv.gz")
BROKEN_FILE_ERRORS = (csv.Error, EOFError, OSError, zlib.error)


@contextmanager
def open_csv(source: str, columns: Sequence[SourceColumn]) -> Iterator[Blocks]:
    """Open a ``.csv`` or ``.csv.gz`` file.

    Raises:
        DataError: it cannot be opened, or its header does not fit.

    """
    with _open(source) as file:
        yield Blocks(_Table(csv.reader(file, strict=True), columns).blocks())


class _Table:
    """The data rows of an open CSV file."""

    def __init__(self, reader: Iterator[Row], columns: Sequence[SourceColumn]) -> None:
        """Read the header and find the columns."""
        self._reader = reader
        header = self._header()
        self._width = len(header)
        self._indices = column_indices(header, columns, place="the header")

    def blocks(self) -> Iterator[Block]:
        """Yield the rows; of a row too long or too short, after those before it."""
        count = 0
        for rows in self._rows():
            odd = next((index for index, row in enumerate(rows) if len(row) != self._width), None)
            even = rows[:odd]
            if even:
                cells = list(zip(*even, strict=True))
                yield Block([cells[index] for index in self._indices])
            if odd is not None:
                problem = f"has {len(rows[odd])} cells, the header has {self._width}"
                raise DataError(SOURCE, f"row {count + odd + 1}: {problem}")
            count += len(rows)

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
            try:
                lines.extend(islice(self._reader, ROWS_PER_BLOCK))
            except BROKEN_FILE_ERRORS as error:
                row_number = count + sum(map(bool, lines)) + 1
                raise DataError(SOURCE, f"row {row_number}: {_cause(error)}") from None
            if not lines:
                return
            rows = [line for line in lines if line]
            if rows:
                yield rows
            count += len(rows)


def _open(source: str) -> TextIO:
    """Open a file as text; bytes that are no UTF-8 come through escaped, to be named later."""
    try:
        if source.lower().endswith(".gz"):
            return io.TextIOWrapper(
                gzip.open(source, "rb"), encoding="utf-8-sig", errors=ERRORS, newline=""
            )
        return Path(source).open(encoding="utf-8-sig", errors=ERRORS, newline="")
    except FileNotFoundError:
        raise DataError(SOURCE, f"no such file: {source}") from None
    except (OSError, ValueError) as error:
        raise DataError(SOURCE, f"{source} cannot be read: {_cause(error)}") from None


def _cause(error: Exception) -> str:
    """Say what broke, without a word of the file."""
    if isinstance(error, EOFError):
        return "the compressed file ends too early"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "is not valid gzip"
    if isinstance(error, csv.Error):
        return "is not well-formed CSV: a stray quote, or a cell above 131072 characters"
    return getattr(error, "strerror", None) or "bad path"
