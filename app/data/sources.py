"""Private rows from a CSV file, plain or compressed, every cell validated.

Read in blocks, so that memory stays near rows x features x 8 bytes.  A
refusal names the column and the row number (1 is the first row of data), and
never a value.  No row is ever dropped; a line without any character is no row.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from app.data.cells import CellError, LabelColumn, RememberingColumn, column_reader
from app.data.rows import PrivateRows
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from app.data.schema import Schema

__all__ = ["PrivateRows", "read_rows"]

SOURCE = "data.source"
ROWS_PER_BLOCK = 8192
BROKEN_FILE_ERRORS = (csv.Error, EOFError, OSError, zlib.error)

Row = list[str]


def read_rows(
    source: str | Path,
    schema: Schema,
    *,
    rows_expected: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> PrivateRows:
    """Read every row of a CSV file, plain or ``.gz``, and encode it by public rules.

    Columns may come in any order; others than the schema's are ignored.

    Args:
        source: path of a ``.csv`` or ``.csv.gz`` file.
        schema: the public schema.
        rows_expected: n as the configuration gives it, which must agree.
        progress: called with the number of rows read so far.

    Raises:
        DataError: what does not fit, by column and row number.

    """
    with _open(str(source)) as file:
        rows = _Table(csv.reader(file, strict=True), schema).read(progress or _ignore)
    if rows_expected is not None and rows.count != rows_expected:
        raise DataError("data.rows", f"says {rows_expected}, but the source has {rows.count} rows")
    return rows


class _Table:
    """The data rows of an open CSV file."""

    def __init__(self, reader: Iterator[Row], schema: Schema) -> None:
        """Read the header and find the columns."""
        self._reader = reader
        header = self._header()
        self._width = len(header)
        names = (*schema.feature_names, schema.label)
        self._indices = [_column_index(header, name) for name in names]
        self._names = names
        self._columns = [
            *(RememberingColumn(column_reader(feature, schema)) for feature in schema.features),
            RememberingColumn(LabelColumn(schema.classes)),
        ]

    def read(self, progress: Callable[[int], None]) -> PrivateRows:
        """Read all rows, block by block, into arrays that grow."""
        values = np.empty((ROWS_PER_BLOCK, len(self._columns) - 1), dtype=np.float64)
        labels = np.empty(ROWS_PER_BLOCK, dtype=np.int64)
        count = 0
        for block in self._blocks():
            columns = self._encode(block, rows_before=count)
            end = count + len(block)
            if end > len(labels):
                capacity = max(end, len(labels) * 3 // 2)
                values.resize((capacity, values.shape[1]), refcheck=False)
                labels.resize(capacity, refcheck=False)
            for index, column in enumerate(columns[:-1]):
                values[count:end, index] = column
            labels[count:end] = columns[-1]
            count = end
            progress(count)
        if not count:
            raise DataError(SOURCE, "has a header and no row of data")
        values.resize((count, values.shape[1]), refcheck=False)
        labels.resize(count, refcheck=False)
        return PrivateRows(values=values, labels=labels)

    def _header(self) -> Row:
        """Return the names of the columns."""
        try:
            row = next((row for row in self._reader if row), None)
        except BROKEN_FILE_ERRORS as error:
            raise DataError(SOURCE, f"header: {_cause(error)}") from None
        if row is not None:
            return row
        raise DataError(SOURCE, "is empty; the first line names the columns")

    def _blocks(self) -> Iterator[list[Row]]:
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
            block = [line for line in lines if line]
            if block:
                yield block
            count += len(block)

    def _encode(self, block: list[Row], *, rows_before: int) -> list[NDArray[np.float64]]:
        """Encode a block column by column; on any failure, name its first cell."""
        try:
            columns = list(zip(*block, strict=True))
            if len(columns) != self._width:
                self._refuse(block, rows_before=rows_before)
            return [
                column.encode(columns[index])
                for column, index in zip(self._columns, self._indices, strict=True)
            ]
        except (CellError, ValueError):
            self._refuse(block, rows_before=rows_before)
            raise

    def _refuse(self, block: list[Row], *, rows_before: int) -> None:
        """Raise for the first row that does not fit, and its first column."""
        for row_number, row in enumerate(block, start=rows_before + 1):
            if len(row) != self._width:
                problem = f"has {len(row)} cells, the header has {self._width}"
                raise DataError(SOURCE, f"row {row_number}: {problem}")
            for name, column, index in zip(self._names, self._columns, self._indices, strict=True):
                try:
                    column.reader.read(row[index])
                except CellError as error:
                    raise DataError(SOURCE, f'column "{name}", row {row_number}: {error}') from None


def _open(source: str) -> TextIO:
    """Open a file as text; bytes that are no UTF-8 come through escaped, to be named later."""
    lowered = source.lower()
    if "://" in source or not lowered.endswith((".csv", ".csv.gz")):
        raise DataError(SOURCE, "is not a .csv or .csv.gz file; this version reads no other")
    try:
        if lowered.endswith(".gz"):
            return io.TextIOWrapper(
                gzip.open(source, "rb"), encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
        return Path(source).open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except FileNotFoundError:
        raise DataError(SOURCE, f"no such file: {source}") from None
    except (OSError, ValueError) as error:
        raise DataError(SOURCE, f"{source} cannot be read: {_cause(error)}") from None


def _column_index(header: Row, name: str) -> int:
    """Return where a column is; once, exactly."""
    if header.count(name) != 1:
        problem = "is missing" if name not in header else "occurs more than once"
        raise DataError(SOURCE, f'column "{name}" {problem} in the header')
    return header.index(name)


def _cause(error: Exception) -> str:
    """Say what broke, without a word of the file."""
    if isinstance(error, EOFError):
        return "the compressed file ends too early"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "is not valid gzip"
    if isinstance(error, csv.Error):
        return "is not well-formed CSV: a stray quote, or a cell above 131072 characters"
    return getattr(error, "strerror", None) or "bad path"


def _ignore(_count: int) -> None:
    """Report progress to no one."""
