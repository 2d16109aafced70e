"""Private rows from CSV files, plain or compressed, local or in an object store.

The first line names the columns; an empty line is not a row. Large files in UTF-8 are divided into
fields by Arrow's reader, block by block, if Arrow's and Python's readers divide the block in the
same way. Every field is read as text, independently of other fields.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from app.data.field_values import ERRORS, MISSING_CELL
from app.data.sources.column_values import Values
from app.data.sources.csv_dialect import BROKEN_TEXT, COMPRESSED, UTF_8, csv_problem
from app.data.sources.csv_records import MARK, CsvRecords, without_mark
from app.data.sources.parts import CSV_SUFFIXES, opened, source_files
from app.data.sources.row_blocks import (
    ROWS_PER_BLOCK,
    SOURCE,
    Block,
    Blocks,
    ColumnsMissingError,
    column_indices,
)
from app.data.sources.stored_files import BAD_PATH, store_errors, store_problem, store_scheme
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.data.sources.column_values import Cells, SourceColumn
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.parts import Part
    from app.data.sources.row_blocks import RefuseRow

    Errors: TypeAlias = tuple[type[Exception], ...]
    Row = list[str]

BROKEN_FILE_ERRORS: Errors = (csv.Error, EOFError, OSError, UnicodeError, zlib.error)
EMPTY = "is empty; the first line names the columns"
# Below it, Arrow's reader takes longer to import than Python's to read.
SMALL_BYTES = 2**20
MARK_BYTES = len(MARK)


@contextmanager
def open_csv(
    source: str, columns: Sequence[SourceColumn], refuse_row: RefuseRow, dialect: CsvDialect
) -> Iterator[Blocks]:
    """Return an opened source of one or several ``.csv`` or ``.csv.gz`` files.

    Args:
        source: the path, address or path pattern of the files.
        columns: the needed columns.
        refuse_row: a function that is called for a row with too many or too few fields.
        dialect: the separators and the encoding of the files.

    Raises:
        DataError: a file cannot be opened, or its header lacks columns.

    """
    parts = source_files(source, CSV_SUFFIXES)
    with open_csv_parts(parts, source, columns, refuse_row, dialect) as blocks:
        yield blocks


@contextmanager
def open_csv_parts(
    parts: Sequence[Part],
    source: str,
    columns: Sequence[SourceColumn],
    refuse_row: RefuseRow,
    dialect: CsvDialect,
) -> Iterator[Blocks]:
    """Return some opened CSV files of a source.

    Args:
        parts: the files, or sections of files.
        source: the path, address or path pattern of the source.
        columns: the needed columns.
        refuse_row: a function that is called for a row with too many or too few fields.
        dialect: the separators and the encoding of the files.

    Raises:
        DataError: a file cannot be opened, or its header lacks columns.

    """

    @contextmanager
    def opened_table(part: Part, rows_before: int) -> Iterator[_Table]:
        with opened(part, source, in_order=True) as file:
            yield _Table(file, part, columns, refuse_row, dialect, rows_before)

    def others(count: int) -> Iterator[Block]:
        for part in parts[1:]:
            with opened_table(part, count) as table:
                yield from table.blocks()
                count = table.count

    def every(first: _Table) -> Iterator[Block]:
        yield from first.blocks()
        yield from others(first.count)

    with opened_table(parts[0], parts[0].rows_before) as first:
        yield Blocks(every(first))


class _Table:
    """The data rows of an open CSV file.

    Attributes:
        count: rows of the source up to the last one that was read.

    """

    def __init__(
        self,
        file: IO[bytes],
        part: Part,
        columns: Sequence[SourceColumn],
        refuse_row: RefuseRow,
        dialect: CsvDialect,
        rows_before: int,
    ) -> None:
        """Read the CSV header, and find the needed columns."""
        self._refuse_row = refuse_row
        self._part = part
        self._dialect = dialect
        self.count = rows_before
        self._broken: Errors = (*BROKEN_FILE_ERRORS, *store_errors(part.file.path))
        self._records: CsvRecords | None = None
        lines = self._lines(file)
        with self._naming("header"):
            header = dialect.header(lines)
        if not header.line.strip():
            raise DataError(SOURCE, f"{part.name} {EMPTY}" if part.name else EMPTY)
        self._width = len(header.names)
        names = [*header.names, *(name for name, _ in part.partitions)]
        place = f"the header of {part.name}" if part.name else "the header"
        try:
            self._indices = column_indices(names, columns, place=place)
        except ColumnsMissingError:
            likely = header.likely([column.name for column in columns])
            if likely is None:
                raise
            raise DataError(SOURCE, f"{place} {likely}") from None
        self._wanted = sorted({index for index in self._indices if index < self._width})
        self._further = lines
        if part.span is not None and self._records is not None:
            self._records = self._further_records(file, self._records.position, part.span)

    def _further_records(
        self, file: IO[bytes], header_end: int, span: tuple[int, int]
    ) -> CsvRecords:
        """Return the records of a part of the file, those after the header."""
        with self._naming(None):
            file.seek(0)
            # The mark of the encoding is read, and not counted.
            mark = MARK_BYTES if file.read(MARK_BYTES) == MARK else 0
            start = file.seek(max(span[0], mark + header_end))
        return CsvRecords(_up_to(file, max(0, span[1] - start)), self._broken)

    def _lines(self, file: IO[bytes]) -> Iterator[str]:
        """Return the lines of a file; those in UTF-8 may be taken by the block too."""
        packed = self._part.file.path.lower().endswith(COMPRESSED)
        plain = gzip.GzipFile(fileobj=file) if packed else file
        if self._dialect.encoding != UTF_8:
            return TextIOWrapper(
                plain,
                encoding=self._dialect.codec,
                errors=ERRORS,
                newline="",
            )
        # What is there of a compressed file that breaks off is not to be lost.
        read = plain.read1 if isinstance(plain, gzip.GzipFile) else plain.read
        self._records = CsvRecords(without_mark(read), self._broken)
        return self._records.lines()

    def blocks(self) -> Iterator[Block]:
        """Yield the rows in blocks; a row of the wrong length is an error after the rows before."""
        records = self._records
        if records is None:
            yield from self._by_lines(self._dialect.rows(self._further))
            return
        with self._naming(None):
            is_small = records.is_small(SMALL_BYTES)
        if is_small:
            yield from self._by_lines(self._dialect.rows(records.lines()))
            return
        yield from self._by_blocks(records)

    def _by_blocks(self, records: CsvRecords) -> Iterator[Block]:
        """Yield the rows by Arrow's reader where it divides them like Python's."""
        from app.data.sources.arrow_texts import divided  # noqa: PLC0415 -- takes long to import

        separator, wanted = self._dialect.separator, self._wanted
        while True:
            with self._naming(None):
                body = records.block()
            if not body:
                return
            end = records.position + len(body)
            fields = divided(body, separator, width=self._width, wanted=wanted)
            if fields is None:
                yield from self._by_lines(_rows_until(records, end, self._dialect))
                continue
            records.take(len(body))
            if fields.row_count:
                yield self._block(fields.cells, fields.row_count)
                self.count += fields.row_count

    def _block(self, cells: Sequence[Cells | None], count: int) -> Block:
        """Return a block of rows with the columns that folders give."""
        texts = [MISSING_CELL if text is None else text for _, text in self._part.partitions]
        given = [Values([text], np.zeros(count, dtype=np.intp)) for text in texts]
        columns = [*cells, *given]
        wanted = [columns[index] for index in self._indices]
        return Block([cells for cells in wanted if cells is not None], self._part.name)

    def _by_lines(self, reader: Iterator[Row]) -> Iterator[Block]:
        """Yield rows as Python's reader divides them."""
        for rows in self._rows(reader):
            for width, run in groupby(rows, key=len):
                alike = list(run)
                if width == self._width:
                    cells = list(zip(*alike, strict=True))
                    yield self._block(cells, len(alike))
                else:
                    problem = f"has {width} cells, the header has {self._width}"
                    for index in range(len(alike)):
                        self._refuse_row(self.count + index + 1, problem)
                self.count += len(alike)

    def _rows(self, reader: Iterator[Row]) -> Iterator[list[Row]]:
        """Yield rows in blocks; the row at which the file breaks is named."""
        count = self.count
        while True:
            lines: list[Row] = []
            broken = None
            try:
                lines.extend(islice(reader, ROWS_PER_BLOCK))
            except self._broken as error:
                broken = error
            rows = [line for line in lines if line]
            if rows:
                yield rows
            count += len(rows)
            if broken is not None:
                raise self._refusal(broken, f"row {count + 1}")
            if not lines:
                return

    @contextmanager
    def _naming(self, place: str | None) -> Iterator[None]:
        """Refuse a file that breaks, by where it does: the next row for None."""
        try:
            yield
        except self._broken as error:
            raise self._refusal(error, place or f"row {self.count + 1}") from None

    def _refusal(self, error: Exception, place: str) -> DataError:
        """Return the refusal of a file that breaks."""
        part = f" in {self._part.name}" if self._part.name else ""
        cause = _cause(error, self._part.file.path)
        return DataError(SOURCE, f"{place}{part}: {cause}")


def _up_to(file: IO[bytes], count: int) -> Callable[[int], bytes]:
    """Return a reader of so many bytes of a file."""
    left = count

    def read(wanted: int) -> bytes:
        nonlocal left
        piece = file.read(min(wanted, left))
        left -= len(piece)
        return piece

    return read


def _rows_until(records: CsvRecords, end: int, dialect: CsvDialect) -> Iterator[Row]:
    """Yield the records that begin before a position, by Python's reader."""
    reader = dialect.rows(records.lines())
    while records.position < end:
        row = next(reader, None)
        if row is None:
            return
        yield row


def _cause(error: Exception, path: str) -> str:
    """Say what broke, without a word of the file."""
    if isinstance(error, EOFError):
        return "the compressed file ends too early"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return "is not valid gzip"
    if isinstance(error, csv.Error):
        return csv_problem(error)
    if isinstance(error, UnicodeError):
        return BROKEN_TEXT
    if store_scheme(path) is not None:
        return store_problem(error)
    return getattr(error, "strerror", None) or BAD_PATH
