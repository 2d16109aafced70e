"""The parts of a source, listed without reading a row, and the encoded rows of each part.

Whoever counts rows on several processes lists the parts once and sends each to one of them,
which reads the file itself.  Rows are encoded as :func:`app.data.sources.sources.read_rows`
encodes them, each alone, so that neither the order of parts nor who reads them shows in a byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from app.data.sources.cells import SourceDigests, source_columns
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
    from app.data.sources.cells import SourceColumn
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.sources.parts import Part
    from app.data.sources.row_blocks import Blocks


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRows:
    """Some consecutive encoded rows of one part; secret, and never shown by ``repr``.

    Attributes:
        values: float64 (m, d), as :class:`app.data.rows.PrivateRows` has them.
        labels: int64 (m,); the index of the label among the classes.
        digests: uint64 (m, 2); the keyed digest of the identifier of each row's person; None
            where each row is a unit of its own.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    digests: NDArray[np.uint64] | None = field(repr=False, default=None)


def list_files(source: str) -> tuple[Part, ...]:
    """Return the files of a source with sizes and version tags; none is opened.

    Args:
        source: files of Parquet or CSV.

    Raises:
        DataError: the source has no parts, or cannot be listed.

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
    """Return the parts of a source in a fixed order; no row is read.

    Of Parquet they are the row groups with rows, whose numbers of rows are known; of CSV the
    files, or some megabytes of records of a file in UTF-8 on a local disk.

    Args:
        source: files of Parquet or CSV.
        schema: the public schema.
        dialect: how a CSV is written.
        person: the private column that names persons; None where a row is the unit.

    Raises:
        DataError: the source has no parts, or cannot be listed, or a part of Parquet has not
            the columns.

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
    """Yield the rows of one part in order, some ten thousand at a time.

    Args:
        part: of the source, from :func:`list_parts` or :func:`list_files`.
        source: whose part it is.
        schema: the public schema.
        dialect: how a CSV is written.
        person: the private column that names persons; None where a row is the unit.

    Raises:
        DataError: what does not fit, by column and row number; or the part is gone, is not the
            file that was listed, or cannot be read.

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
