"""The parts of a source, listed without reading a row, and the encoded rows of each part.

A part is a file of the source, or a section of a file. If several processes count rows, the parts
are listed once, and each is sent to one process, which reads the file itself. Every row is encoded
as :func:`app.data.sources.sources.read_rows` does, independently of other rows. Therefore the
result depends neither on the order of the parts nor on the process.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from app.data.sources.column_values import SourceDigests, source_columns
from app.data.sources.csv_dialect import COMPRESSED, PLAIN_CSV, UTF_8
from app.data.sources.csv_records import RANGE_BYTES, record_borders
from app.data.sources.parts import CSV_SUFFIXES, is_csv, is_parquet, opened, source_files
from app.data.sources.row_blocks import SOURCE, encoded_blocks, refuse_row
from app.data.sources.sources import decimal_of
from app.data.sources.stored_files import store_scheme
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from app.data.persons import PersonColumn
    from app.data.schema import Schema
    from app.data.sources.column_values import SourceColumn
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.parts import Part
    from app.data.sources.row_blocks import Blocks


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Some consecutive encoded rows of one part; secret, and never shown by ``repr``.

    Attributes:
        values: encoded feature values, float64, shape ``(rows, features)``: a number clipped to its
            bounds, NaN if it is missing, or the code of a category.
        labels: the index of each row's label among the classes, int64, shape ``(rows,)``.
        digests: the keyed digest of the identifier of each row's person, uint64, shape
            ``(rows, 2)``; None if a row is the unit of privacy.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    digests: NDArray[np.uint64] | None = field(repr=False, default=None)


def list_files(source: str) -> tuple[Part, ...]:
    """Return the files of a source with their sizes and version tags; no file is opened.

    Args:
        source: the path, address or path pattern of Parquet or CSV files.

    Raises:
        DataError: the source is neither Parquet nor CSV, or cannot be listed.

    """
    if is_csv(source):
        return source_files(source, CSV_SUFFIXES)
    if is_parquet(source):
        return source_files(source)
    raise DataError(SOURCE, "has no parts: it is neither Parquet nor CSV")


def list_parts(
    source: str,
    schema: Schema,
    *,
    dialect: CsvDialect = PLAIN_CSV,
    person: PersonColumn | None = None,
) -> tuple[Part, ...]:
    """Return the parts (files or sections of files) of a source in a fixed order.

    No row is read. The parts of a Parquet file are its row groups, whose numbers of rows are known.
    The parts of a CSV file are sections of some megabytes, if the file is in UTF-8 on a local disk,
    or else the whole file.

    Args:
        source: the path, address or path pattern of Parquet or CSV files.
        schema: the public schema.
        dialect: the separators and the encoding of a CSV file.
        person: the private column that names persons; None if a row is the unit of privacy.

    Raises:
        DataError: the source is neither Parquet nor CSV, cannot be listed, or a Parquet file lacks
            columns.

    """
    files = list_files(source)
    if is_csv(source):
        return tuple(part for file in files for part in _ranges(file, dialect))
    from app.data.sources.parquet_source import row_groups  # noqa: PLC0415 -- takes long

    columns, _ = _columns(source, schema, dialect, person)
    parts: list[Part] = []
    count = 0
    for file in files:
        before_file = count
        for part in row_groups(file, source, columns):
            parts.append(replace(part, rows_before=count, rows_before_file=before_file))
            count += part.row_count or 0
    return tuple(parts)


def _ranges(file: Part, dialect: CsvDialect) -> list[Part]:
    """Return the records of a CSV as parts, or the file itself.

    A file is read through once for it; what lies in an object store, or is compressed, is left
    whole.
    """
    path = file.file.path
    is_plain = dialect.encoding == UTF_8 and dialect.separator.isascii()
    if not is_plain or path.lower().endswith(COMPRESSED) or store_scheme(path) is not None:
        return [file]
    if file.file.size < 2 * RANGE_BYTES:
        return [file]
    with opened(file, file.name or path, in_order=True) as body:
        borders = (*record_borders(body.read, dialect.separator, step=RANGE_BYTES), file.file.size)
    if len(borders) == len((0, 1)):
        return [file]
    return [replace(file, span=span) for span in pairwise(borders)]


def read_part(
    part: Part,
    source: str,
    schema: Schema,
    *,
    dialect: CsvDialect = PLAIN_CSV,
    person: PersonColumn | None = None,
) -> Iterator[EncodedRows]:
    """Yield the rows of one part in order, in blocks of some ten thousand rows.

    Args:
        part: a part that :func:`list_parts` or :func:`list_files` returned.
        source: the path, address or path pattern of the source.
        schema: the public schema.
        dialect: the separators and the encoding of a CSV file.
        person: the private column that names persons; None if a row is the unit of privacy.

    Raises:
        DataError: a field does not fit the schema, and the error names the column and the row
            number; or the file is gone, has changed since it was listed, or cannot be read.

    """
    columns, named = _columns(source, schema, dialect, person)
    width = len(schema.features)
    with _opened(part, source, columns, dialect) as blocks:
        for encoded in encoded_blocks(
            blocks.stream,
            columns,
            rows_before=part.rows_before,
            rows_before_part=part.rows_before_file,
        ):
            values = np.empty((len(encoded[width]), width))
            for index, column in enumerate(encoded[:width]):
                values[:, index] = column
            labels = encoded[width].astype(np.int64)
            yield EncodedRows(values, labels, None if named is None else named.take())


def _opened(
    part: Part, source: str, columns: list[SourceColumn], dialect: CsvDialect
) -> AbstractContextManager[Blocks]:
    """Open one part in the format of its source."""
    if is_csv(source):
        from app.data.sources.csv_source import open_csv_parts  # noqa: PLC0415 -- as Parquet's

        return open_csv_parts((part,), source, columns, refuse_row, dialect)
    from app.data.sources.parquet_source import open_parquet_part  # noqa: PLC0415 -- takes long

    return open_parquet_part(part, source, columns)


def _columns(
    source: str, schema: Schema, dialect: CsvDialect, person: PersonColumn | None
) -> tuple[list[SourceColumn], SourceDigests | None]:
    """Return new columns of the schema and, at the end, of persons; and the latter alone."""
    columns = source_columns(schema, decimal=decimal_of(source, dialect))
    if person is None:
        return columns, None
    named = SourceDigests(person)
    return [*columns, named], named
