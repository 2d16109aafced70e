"""Private rows from an ``.npz`` file with one array per column.

The arrays are read side by side from the archive, block by block. Nothing is unpickled, and no
column is read into memory as a whole.
"""

from __future__ import annotations

import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from app.data.sources.column_values import Values, dates, widened
from app.data.sources.row_blocks import SOURCE, Block, Blocks, cell_error, column_indices, opening
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from app.data.sources.column_values import Cells, SourceColumn

MEMBER_SUFFIX = ".npy"
ROWS_PER_READ = 65_536
READABLE_KINDS = "bfiuSU"
DATE_KIND = "M"
BROKEN_FILE_ERRORS = (EOFError, NotImplementedError, OSError, RuntimeError, ValueError, zlib.error)
INVALID = "is not a valid .npz file"


@dataclass(frozen=True)
class _Array:
    """One array of the archive, open for reading from its first value on."""

    file: IO[bytes]
    dtype: np.dtype[np.generic]
    length: int


@contextmanager
def open_npz(source: str, columns: Sequence[SourceColumn]) -> Iterator[Blocks]:
    """Return an opened ``.npz`` archive, after reading the header of each needed array.

    Args:
        source: the path of the file.
        columns: the needed columns.

    Raises:
        DataError: the file cannot be opened, or an array is not valid, for example
            not one-dimensional.

    """
    with ExitStack() as stack:
        with opening(source, invalid=INVALID, broken=(zipfile.BadZipFile, NotImplementedError)):
            archive = stack.enter_context(zipfile.ZipFile(source))
        members = [member.removesuffix(MEMBER_SUFFIX) for member in archive.namelist()]
        places = column_indices(members, columns, place="the archive")
        arrays = [
            _array(stack, archive, archive.infolist()[place], column)
            for place, column in zip(places, columns, strict=True)
        ]
        row_count = _common_length(arrays, columns)
        yield Blocks(_blocks(arrays, columns, row_count), row_count)


def _array(
    stack: ExitStack, archive: zipfile.ZipFile, member: zipfile.ZipInfo, column: SourceColumn
) -> _Array:
    """Open one array and check that it is a column of text, numbers or booleans."""
    try:
        file = stack.enter_context(archive.open(member))
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    except (zipfile.BadZipFile, *BROKEN_FILE_ERRORS):
        raise DataError(SOURCE, f'column "{column.name}" is not a valid array') from None
    if len(shape) != 1:
        raise DataError(SOURCE, f'column "{column.name}" is an array of {len(shape)} dimensions')
    if dtype.kind not in READABLE_KINDS and not (column.takes_dates and dtype.kind == DATE_KIND):
        problem = "holds Python objects" if dtype.hasobject else f"holds {dtype.name}"
        problem = f'column "{column.name}" {problem}; store text, numbers or booleans'
        raise DataError(SOURCE, problem)
    return _Array(file, dtype, shape[0])


def _common_length(arrays: Sequence[_Array], columns: Sequence[SourceColumn]) -> int:
    """Return how long every array is."""
    length = arrays[0].length
    for array, column in zip(arrays, columns, strict=True):
        if array.length != length:
            problem = f'column "{column.name}" has {array.length} rows'
            raise DataError(SOURCE, f'{problem}, "{columns[0].name}" has {length}')
    return length


def _blocks(
    arrays: Sequence[_Array], columns: Sequence[SourceColumn], row_count: int
) -> Iterator[Block]:
    """Yield the rows, reading all arrays at the same pace."""
    for start in range(0, row_count, ROWS_PER_READ):
        count = min(ROWS_PER_READ, row_count - start)
        yield Block(
            [
                _next_cells(array, count, column, rows_before=start)
                for array, column in zip(arrays, columns, strict=True)
            ]
        )


def _next_cells(array: _Array, count: int, column: SourceColumn, *, rows_before: int) -> Cells:
    """Return the next cells of one column; where its array breaks is named."""
    try:
        body = array.file.read(count * array.dtype.itemsize)
        values = np.frombuffer(body, dtype=array.dtype, count=count)
        return _cells(values, column)
    except (zipfile.BadZipFile, *BROKEN_FILE_ERRORS):
        problem = "the array breaks off here, or soon after"
        raise cell_error(column.name, rows_before + 1, problem) from None


def _cells(values: NDArray[np.generic], column: SourceColumn) -> Cells:
    """Return values of one column: numbers as they are, of anything else each one once.

    0.0 and -0.0, which are one here, are read alike.
    """
    kind = values.dtype.kind
    if kind == DATE_KIND:
        return dates(values)
    if kind == "f" or (kind in "iu" and column.takes_numbers):
        # What no float64 can hold becomes infinite, and is refused as that.
        with np.errstate(over="ignore"):
            numbers = widened(values, column) if kind == "f" else values.astype(np.float64)
        if column.takes_numbers:
            return numbers
        values = numbers
    distinct, places = np.unique(values, return_inverse=True)
    return Values(distinct.tolist(), places)
