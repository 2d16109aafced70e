"""Private rows from Parquet: one file, or several files in the order of their names.

A file is read in batches, never into memory as a whole; ``arrow_columns.py`` has the rule for the
values.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from app.data.field_values import MISSING_CELL
from app.data.sources.arrow_columns import arrow_cells, refuse_type
from app.data.sources.column_values import IdentifierColumn, Values
from app.data.sources.parts import opened, source_files
from app.data.sources.row_blocks import SOURCE, Block, Blocks, column_indices
from app.data.sources.stored_files import GONE, reaching, store_scheme
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from app.data.sources.column_values import SourceColumn
    from app.data.sources.parts import Part

ROWS_PER_BATCH = 65_536
PAGE_BUFFER_BYTES = 2**20
INVALID = "is not valid Parquet"


@contextmanager
def open_parquet(source: str, columns: Sequence[SourceColumn]) -> Iterator[Blocks]:
    """Return an opened source of one or several Parquet files.

    Args:
        source: the path, address or path pattern of the files.
        columns: the needed columns.

    Raises:
        DataError: a file cannot be opened, or lacks columns.

    """
    parts = source_files(source)
    row_count = sum(sum(_row_counts(part, source, columns)) for part in parts)
    with closing(_blocks(parts, source, columns)) as stream:
        yield Blocks(stream, row_count)


@contextmanager
def open_parquet_part(part: Part, source: str, columns: Sequence[SourceColumn]) -> Iterator[Blocks]:
    """Return one opened part (a file or a row group) of a Parquet source.

    Args:
        part: the part.
        source: the path, address or path pattern of the source.
        columns: the needed columns.

    Raises:
        DataError: the file cannot be opened, lacks columns, or has changed since it was listed.

    """
    if part.row_count is None:
        part = replace(part, row_count=sum(_row_counts(part, source, columns)))
    with closing(_blocks((part,), source, columns)) as stream:
        yield Blocks(stream, part.row_count)


def row_groups(part: Part, source: str, columns: Sequence[SourceColumn]) -> list[Part]:
    """Return the nonempty row groups of a Parquet file with their numbers of rows, in order.

    Args:
        part: the file.
        source: the path, address or path pattern of the source.
        columns: the needed columns.

    Raises:
        DataError: the file cannot be opened, or lacks columns.

    """
    counts = enumerate(_row_counts(part, source, columns))
    return [replace(part, row_group=group, row_count=rows) for group, rows in counts if rows]


def _row_counts(part: Part, source: str, columns: Sequence[SourceColumn]) -> list[int]:
    """Check that a file has the columns, and return the number of rows of each row group."""
    with _open(part, source) as file:
        schema = file.schema_arrow
        names = [*schema.names, *(name for name, _ in part.partitions)]
        indices = column_indices(names, columns, place=part.place)
        for column, index in zip(columns, indices, strict=True):
            if index >= len(schema.names):
                continue
            refuse_type(schema.field(index), column, place=part.place)
        metadata = file.metadata
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


@contextmanager
def _open(part: Part, source: str, coded: Sequence[str] = ()) -> Iterator[parquet.ParquetFile]:
    """Open one file; of an object store, what is read of a row group is asked for together.

    Args:
        part: the file, or a row group of it.
        source: whose part it is.
        coded: columns whose texts, where they are texts, come by their dictionary.

    """
    is_stored = store_scheme(part.file.path) is not None
    with opened(part, source, in_order=False) as file:
        with reaching(part.file.path, part.name or source, gone=f"{part.place} {GONE}"):
            try:
                reader = parquet.ParquetFile(
                    file if is_stored else part.file.path,
                    buffer_size=PAGE_BUFFER_BYTES,
                    pre_buffer=is_stored,
                    read_dictionary=list(coded),
                )
            except pa.ArrowException:
                raise DataError(SOURCE, f"{part.name or source} {INVALID}") from None
        with reader:
            yield reader


def _blocks(
    parts: Sequence[Part], source: str, columns: Sequence[SourceColumn]
) -> Generator[Block, None, None]:
    """Yield the rows part by part."""
    count = parts[0].rows_before if parts else 0
    for part in parts:
        given = dict(part.partitions)
        wanted = [column.name for column in columns if column.name not in given]
        coded = [
            column.name
            for column in columns
            if column.name in wanted and not isinstance(column, IdentifierColumn)
        ]
        with _open(part, source, coded) as file:
            for batch in _batches(file, part, wanted, rows_before=count):
                if batch.num_rows:
                    yield Block(
                        [
                            _repeated(given[column.name], batch.num_rows)
                            if column.name in given
                            else arrow_cells(batch.column(column.name), column)
                            for column in columns
                        ],
                        part.name,
                    )
                count += batch.num_rows


def _repeated(text: str | None, count: int) -> Values:
    """Return the fields of a column that is a folder's name."""
    return Values([MISSING_CELL if text is None else text], np.zeros(count, dtype=np.intp))


def _batches(
    file: parquet.ParquetFile, part: Part, wanted: list[str], *, rows_before: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part row group by row group, so that no more is held."""
    groups = range(file.num_row_groups) if part.row_group is None else [part.row_group]
    for group in groups:
        batches = file.iter_batches(
            ROWS_PER_BATCH, row_groups=[group], columns=wanted, use_threads=False
        )
        while (batch := _next_batch(batches, part, rows_before=rows_before)) is not None:
            yield batch
            rows_before += batch.num_rows


def _next_batch(
    batches: Iterator[pa.RecordBatch], part: Part, *, rows_before: int
) -> pa.RecordBatch | None:
    """Return the next batch, or None at the end; where the file breaks is named."""
    place = f"row {rows_before + 1}" + (f" in {part.name}" if part.name else "")
    broken = DataError(SOURCE, f"{place}: {INVALID} from here on")
    path = part.file.path
    with reaching(path, part.place, gone=f"{part.place} {GONE}"):
        try:
            return next(batches, None)
        except pa.ArrowException:
            raise broken from None
        except (OSError, ValueError):
            if store_scheme(path) is None:
                raise broken from None
            raise
