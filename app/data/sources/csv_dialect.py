"""The dialect of a CSV file: its separator, its decimal separator and its text encoding.

If the header of a file lacks columns of the schema, the module tries other dialects, so that the
error can propose the setting that is probably wrong. The error names only settings and the columns
of the schema, because the first line of a file without a header is a private row.
"""

from __future__ import annotations

import codecs
import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from app.data.field_values import ERRORS
from app.data.sources.column_values import NearNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Row = list[str]

UTF_8: Final = "utf-8"
COMPRESSED: Final = ".gz"
SEPARATORS: Final = (",", ";", "\t", "|")
# Of names: one alone is found by chance, as where no name holds a separator at all.
FOUND_MIN: Final = 2
# How the marks of UTF-16 and UTF-32 come through where UTF-8 is expected.
MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The first bytes of files that are no text, and what to do with them.
OTHER_FILES: Final = (
    (b"\x1f\x8b", "looks compressed by gzip: let the name of the file end in .csv.gz"),
    (b"PK\x03\x04", "looks like a ZIP archive or a spreadsheet: save the table as CSV"),
    (b"PAR1", "looks like Parquet: let the name of the file end in .parquet"),
)
BROKEN_TEXT: Final = "is not text in the encoding of data.encoding, here or soon after"
STRAY_QUOTE: Final = "is not well-formed CSV: a quote is stray, or never closed"
LONG_CELL: Final = "has a cell above {limit} characters, or a quote that is never closed"
# How Python's reader words its limit.
LIMIT: Final = "field limit"
IN_FILE: Final = "data.{} = {}"
OPTION: Final = "--{} {}"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The configured dialect of a CSV file.

    Attributes:
        separator: the character between fields.
        decimal: the decimal separator of numbers.
        encoding: the text encoding; UTF-8 may start with a byte order mark.

    """

    separator: str = ","
    decimal: str = "."
    encoding: str = UTF_8

    @property
    def codec(self) -> str:
        """Return Python's text encoding; for UTF-8, the one that skips a byte order mark."""
        return "utf-8-sig" if self.encoding == UTF_8 else self.encoding

    def open(self, path: str | Path) -> TextIO:
        """Open a file as text; a file whose name ends in ``.gz`` is decompressed.

        Bytes that are not valid in the encoding are escaped, so that the caller can name their row.

        Raises:
            OSError: the file cannot be opened.
            ValueError: the path is not valid.

        """
        encoding = self.codec
        if str(path).lower().endswith(COMPRESSED):
            return gzip.open(path, "rt", encoding=encoding, errors=ERRORS, newline="")
        return Path(path).open(encoding=encoding, errors=ERRORS, newline="")

    def rows(self, lines: Iterable[str]) -> Iterator[Row]:
        """Yield the list of fields of each record.

        Raises:
            csv.Error: a record is not well-formed CSV.

        """
        return csv.reader(lines, delimiter=self.separator, strict=True)

    def header(self, file: Iterable[str]) -> Header:
        """Return the first line that is not empty; the lines after it are not read.

        Raises:
            csv.Error: the line is not well-formed CSV in any known dialect.
            UnicodeError: the line is not valid text in the encoding.

        """
        lines: list[str] = []
        try:
            names = next(filter(None, self.rows(_noted(file, lines))), [])
        except csv.Error:
            names = []
            if _encoding_of(lines[-1]) is None and not _quoted_otherwise(lines[-1], self):
                raise
        return Header(names, lines[-1] if lines else "", self)


def csv_problem(error: csv.Error) -> str:
    """Return why Python's CSV reader refuses a record; without any text of the record."""
    if LIMIT in str(error):
        return LONG_CELL.format(limit=csv.field_size_limit())
    return STRAY_QUOTE


PLAIN_CSV: Final = CsvDialect()
"""Commas, decimal points, UTF-8."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a CSV file.

    Attributes:
        names: the names of the columns; empty if the file is empty, or if the line is in another
            dialect.
        line: the text of the line; secret, since a file may have no header.
        dialect: the dialect in which the line was read.

    """

    names: Row
    line: str
    dialect: CsvDialect

    def likely(self, wanted: Sequence[str], *, form: str = IN_FILE) -> str | None:
        """Return a message about a setting that is probably wrong if columns are missing.

        The result is None if no setting seems wrong.

        Args:
            wanted: the names of the columns that the file should have.
            form: the format string in which the message shows a setting and its value: as in the
                configuration, or as an option of the command line.

        """
        begins = self.line.encode(errors=ERRORS)
        for magic, advice in OTHER_FILES:
            if begins.startswith(magic):
                return advice
        encoding = _encoding_of(self.line)
        if encoding is not None and self.dialect.encoding == UTF_8:
            meant = form.format("encoding", f'"{encoding}"')
            return f"looks written in {encoding.upper()}: set {meant}"
        known = _found(self.names, wanted)
        for separator in SEPARATORS:
            cells = _cells(self.line, separator)
            if separator != self.dialect.separator and _found(cells, wanted) > known:
                shown = '"\\t"' if separator == "\t" else f'"{separator}"'
                named = "tabs" if separator == "\t" else shown
                advice = f"looks separated by {named}: set {form.format('separator', shown)}"
                comma = form.format("decimal", '","')
                is_comma = separator == ","
                return advice if is_comma else f"{advice}, and {comma} where numbers have a comma"
        if any("\udc80" <= character <= "\udcff" for character in self.line):
            return "is not UTF-8 text: set " + form.format("encoding", '"cp1252"') + ", say"
        return None


def _noted(file: Iterable[str], lines: list[str]) -> Iterator[str]:
    """Yield lines, and keep them."""
    for line in file:
        lines.append(line)
        yield line


def _encoding_of(line: str) -> str | None:
    """Return the encoding that a line read as UTF-8 is likely in; None for UTF-8 itself."""
    begins = line.encode(errors=ERRORS)
    marked = next((name for mark, name in MARKS if begins.startswith(mark)), None)
    if marked is not None or "\0" not in line:
        return marked
    return "utf-16-be" if line.startswith("\0") else "utf-16-le"


def _quoted_otherwise(line: str, dialect: CsvDialect) -> bool:
    """Return whether a line that is no CSV is one of another separator."""
    others = (separator for separator in SEPARATORS if separator != dialect.separator)
    return any(len(_cells(line, separator)) >= FOUND_MIN for separator in others)


def _cells(line: str, separator: str) -> Row:
    """Return the cells of a line by a separator; none where it is no CSV of it."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def _found(cells: Sequence[str], wanted: Sequence[str]) -> int:
    """Return how many wanted names are nearly there; 0 for fewer than two."""
    near = NearNames(wanted)
    count = len({near.near(cell) for cell in cells} - {None})
    return count if count >= FOUND_MIN else 0
