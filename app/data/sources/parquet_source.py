"""Private rows from Parquet: a file, or a folder of parts in the order of their names.

A column may hold text, numbers, decimals, booleans or, for a date, dates, nullable and
dictionary-encoded or not; it is read batch by batch and never as a whole.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from app.data.sources.cells import Values, dates
from app.data.sources.parquet_parts import part_paths
from app.data.sources.row_blocks import SOURCE, Block, Blocks, column_indices, opening
from app.data.spelling import ERRORS, MISSING_CELL
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from app.data.sources.cells import Cells, SourceColumn

ROWS_PER_BATCH = 65_536
PAGE_BUFFER_BYTES = 2**20
INVALID = "is not valid Parquet"

_TEXT_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)
_NUMBER_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_null,
)
# The library has no dictionary of these.
_NARROW_DECIMALS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_decimal32,
    pa.types.is_decimal64,
)
_OTHER_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)
_DATE_TYPES: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_date,
    pa.types.is_timestamp,
)


@contextmanager
def open_parquet(source: str, columns: Sequence[SourceColumn]) -> Iterator[Blocks]:
    """Open a Parquet file, or every part of a folder.

    Raises:
        DataError: it cannot be opened, or a part has not the columns.

    """
    path = Path(source)
    parts = part_paths(path) if path.is_dir() else {"": path}
    row_count = sum(_row_count(part, name, columns) for name, part in parts.items())
    with closing(_blocks(parts, columns)) as stream:
        yield Blocks(stream, row_count)


def _row_count(path: Path, name: str, columns: Sequence[SourceColumn]) -> int:
    """Check that a file has the columns, and return its number of rows."""
    with _open(path, name) as file:
        schema = file.schema_arrow
        place = name or "the file"
        indices = column_indices(schema.names, columns, place=place)
        for column, index in zip(columns, indices, strict=True):
            field = schema.field(index)
            if not _is_readable(_plain_type(field.type), column):
                problem = f'column "{field.name}" in {place} holds neither text nor numbers'
                raise DataError(SOURCE, f"{problem}, but {field.type}")
        return int(file.metadata.num_rows)


def _open(path: Path, name: str) -> parquet.ParquetFile:
    """Open one file."""
    with opening(path, invalid=INVALID, broken=(pa.ArrowException,), name=name):
        return parquet.ParquetFile(path, buffer_size=PAGE_BUFFER_BYTES, pre_buffer=False)


def _blocks(
    parts: Mapping[str, Path], columns: Sequence[SourceColumn]
) -> Generator[Block, None, None]:
    """Yield the rows part by part."""
    wanted = [column.name for column in columns]
    count = 0
    for name, path in parts.items():
        with _open(path, name) as file:
            batches = file.iter_batches(ROWS_PER_BATCH, columns=wanted, use_threads=False)
            while True:
                batch = _next_batch(batches, name, rows_before=count)
                if batch is None:
                    break
                cells = [_cells(batch.column(column.name), column) for column in columns]
                if batch.num_rows:
                    yield Block(cells, name)
                count += batch.num_rows


def _next_batch(
    batches: Iterator[pa.RecordBatch], name: str, *, rows_before: int
) -> pa.RecordBatch | None:
    """Return the next batch, or None at the end; where the file breaks is named."""
    try:
        return next(batches, None)
    except (pa.ArrowException, OSError, ValueError):
        place = f"row {rows_before + 1}" + (f" in {name}" if name else "")
        raise DataError(SOURCE, f"{place}: {INVALID} from here on") from None


def _cells(array: pa.Array, column: SourceColumn) -> Cells:
    """Return a batch of one column: numbers as they are, of anything else each value once."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if column.takes_dates and _is_one_of(_DATE_TYPES, kind):
        return dates(_local(array).cast(pa.date32(), safe=False).to_numpy(zero_copy_only=False))
    if _is_one_of(_NUMBER_TYPES, kind) and (column.takes_numbers or pa.types.is_floating(kind)):
        array = array.cast(pa.float64(), safe=False)
    if column.takes_numbers and pa.types.is_float64(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    if _is_one_of(_TEXT_TYPES, kind):
        # As bytes: what is not UTF-8 is then refused by its row, as in a CSV.
        array = array.cast(pa.large_binary())
    if _is_one_of(_NARROW_DECIMALS, kind):
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    coded = array.dictionary_encode()
    is_text = _is_one_of(_TEXT_TYPES, kind)
    distinct = _texts(coded.dictionary) if is_text else coded.dictionary.to_pylist()
    # An empty text is missing too, and texts alone are read together.
    missing = MISSING_CELL if is_text else None
    places = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return Values([*distinct, missing] if coded.null_count else distinct, places)


def _texts(encoded: pa.Array) -> list[str]:
    """Return texts of their bytes, together where all of them are UTF-8; else some are escaped."""
    try:
        texts: list[str] = encoded.cast(pa.large_string()).to_numpy(zero_copy_only=False).tolist()
    except pa.ArrowInvalid:
        return [text.decode(errors=ERRORS) for text in encoded.to_pylist()]
    return texts


def _local(array: pa.Array) -> pa.Array:
    """Return moments as they are in their time zone, without it."""
    return compute.local_timestamp(array) if pa.types.is_timestamp(array.type) else array


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, dictionary-encoded or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_readable(kind: pa.DataType, column: SourceColumn) -> bool:
    """Tell whether values of a type have a text, or are dates where these belong."""
    if column.takes_dates and _is_one_of(_DATE_TYPES, kind):
        return True
    return _is_one_of((*_TEXT_TYPES, *_NUMBER_TYPES, *_OTHER_TYPES), kind)


def _is_one_of(tests: Sequence[Callable[[pa.DataType], bool]], kind: pa.DataType) -> bool:
    """Tell whether some test holds of a type."""
    return any(test(kind) for test in tests)
