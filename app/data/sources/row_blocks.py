"""Conversion of rows from any source, read in blocks of columns, to float64 arrays.

Every field is validated by the same rules for any source, so that the same rows give the same
bytes. An error names the column and the row number (row 1 is the first row of data), and never a
value. No row is dropped.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from app.data.field_values import CellError
from app.data.rows import PrivateRows
from app.data.sources.column_values import NearNames
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.sources.column_values import Cells, SourceColumn, SourcePersons

    RefuseRow: TypeAlias = Callable[[int, str], None]

SOURCE = "data.source"
ROWS_PER_BLOCK = 8192


class ColumnsMissingError(DataError):
    """Columns of the schema are missing in a source, or occur more than once.

    Attributes:
        problems: the problem of each column, by the column's name.

    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        """Store the problems, and name the first column in the error's one line."""
        name, problem = next(iter(problems.items()))
        super().__init__(SOURCE, f'column "{name}" {problem}')
        self.problems = dict(problems)


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a source, by column, without refused rows between them.

    Attributes:
        columns: the fields of each needed column, in the order of the columns; secret.
        part: the name of the part of the source that contains the rows; empty if there is only one.

    """

    columns: Sequence[Cells] = field(repr=False)
    part: str = ""

    @property
    def count(self) -> int:
        """The number of rows in the block."""
        return len(self.columns[-1])


@dataclass(frozen=True)
class Blocks:
    """An open source of rows, which are read block by block.

    Attributes:
        stream: the blocks; none of them is empty.
        row_count: the number of rows; None if it is not known without reading.

    """

    stream: Iterator[Block]
    row_count: int | None = None


@contextmanager
def opening(
    path: str | Path, *, invalid: str, broken: tuple[type[Exception], ...] = (), name: str = ""
) -> Iterator[None]:
    """Turn errors of opening a source's file into Conclave's own error, with the file's name.

    Args:
        path: the path of the file.
        invalid: the message for a broken file, or for an error for which the operating system gives
            no message.
        broken: the classes of errors that a broken file raises.
        name: the name of the file in the message; the path if it is empty.

    Raises:
        DataError: the file cannot be opened.

    """
    try:
        yield
    except FileNotFoundError:
        raise DataError(SOURCE, f"no such file: {path}") from None
    except broken:
        raise DataError(SOURCE, f"{name or path} {invalid}") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or invalid
        raise DataError(SOURCE, f"{path} cannot be read: {problem}") from None


def column_indices(
    header: Sequence[str], columns: Sequence[SourceColumn], *, place: str
) -> list[int]:
    """Return the index of each needed column in the source, which may have further columns.

    Args:
        header: the names of the source's columns, in order.
        columns: the needed columns.
        place: a noun for the object that has the header, for error messages.

    Raises:
        ColumnsMissingError: a column does not occur exactly once.

    """
    problems = {
        column.name: _column_problem(header, column.name, place=place)
        for column in columns
        if header.count(column.name) != 1
    }
    if problems:
        raise ColumnsMissingError(problems)
    return [header.index(column.name) for column in columns]


def collect(
    blocks: Blocks,
    columns: Sequence[SourceColumn],
    progress: Callable[[int], None],
    named: SourcePersons | None = None,
) -> PrivateRows:
    """Return all private rows of an open source, encoded by public rules.

    Args:
        blocks: the blocks of the open source.
        columns: the columns of the schema and, at the end, the one that names persons, if there is
            one.
        progress: a function that is called with the number of rows read so far.
        named: the column that names persons; None if every row is a unit of privacy.

    Raises:
        DataError: a field does not fit, and the error names the first one; or there is no row.

    """
    capacity = blocks.row_count or ROWS_PER_BLOCK
    width = len(columns) - (1 if named is None else 2)
    values = np.empty((capacity, width), dtype=np.float64)
    labels = np.empty(capacity, dtype=np.int64)
    count = 0
    for encoded in encoded_blocks(blocks.stream, columns):
        end = count + len(encoded[-1])
        if end > len(labels):
            capacity = max(end, len(labels) * 3 // 2)
            values.resize((capacity, values.shape[1]), refcheck=False)
            labels.resize(capacity, refcheck=False)
        for index, column in enumerate(encoded[:width]):
            values[count:end, index] = column
        labels[count:end] = encoded[width]
        count = end
        progress(count)
    if not count:
        raise DataError(SOURCE, "has no row of data")
    values.resize((count, values.shape[1]), refcheck=False)
    labels.resize(count, refcheck=False)
    persons = None if named is None else named.persons.persons(named.take_numbers())
    return PrivateRows(values=values, labels=labels, persons=persons)


def encoded_blocks(
    stream: Iterator[Block],
    columns: Sequence[SourceColumn],
    *,
    rows_before: int = 0,
    rows_before_part: int | None = None,
) -> Iterator[list[NDArray[np.float64]]]:
    """Yield the encoded columns of each block of rows, float64, all of the same length.

    Args:
        stream: the blocks of an open source, or of one of its parts.
        columns: the needed columns.
        rows_before: the number of rows of the source before the first block.
        rows_before_part: the number of rows of the source before the part in which the stream
            starts; None if it is ``rows_before``.

    Raises:
        DataError: a field does not fit; the error names the first one.

    """
    part, before_part = None, rows_before_part
    for block in stream:
        if block.part != part:
            before_part = rows_before if part is not None or before_part is None else before_part
            part = block.part
        yield _encode(block, columns, rows_before, rows_before_part=before_part or 0)
        rows_before += block.count


def _column_problem(header: Sequence[str], name: str, *, place: str) -> str:
    """Say how a column is not there once, and whether one of nearly its name is."""
    if name in header:
        return f"occurs more than once in {place}"
    near = NearNames([name])
    other = next((other for other in header if near.near(other)), None)
    if other is None:
        return f"is missing in {place}"
    shown = f'"{other}"' if other.isprintable() else ascii(other)
    return f"is missing in {place}, which has {shown}: name it alike in one of them"


def refuse_row(row_number: int, problem: str) -> None:
    """Raise an error for a row with too many or too few fields.

    Args:
        row_number: the number of the row, from 1.
        problem: a phrase that describes the problem.

    Raises:
        DataError: always.

    """
    raise DataError(SOURCE, f"row {row_number}: {problem}")


def cell_error(name: str, row_number: int | str, problem: object) -> DataError:
    """Return the error for one invalid field.

    Args:
        name: the name of the column.
        row_number: the number of the row, from 1.
        problem: a phrase that describes the problem without the value.

    """
    return DataError(SOURCE, f'column "{name}", row {row_number}: {problem}')


def _encode(
    block: Block, columns: Sequence[SourceColumn], rows_before: int, *, rows_before_part: int
) -> list[NDArray[np.float64]]:
    """Encode a block column by column; on any failure, name its first cell."""
    try:
        return [column.encode(cells) for column, cells in zip(columns, block.columns, strict=True)]
    except CellError:
        _refuse(block, columns, rows_before, rows_before_part=rows_before_part)
        raise


def _refuse(
    block: Block, columns: Sequence[SourceColumn], rows_before: int, *, rows_before_part: int
) -> None:
    """Raise for the first row that does not fit, and its first column."""
    rows = zip(*block.columns, strict=True)
    for row_number, row in enumerate(rows, start=rows_before + 1):
        for column, cell in zip(columns, row, strict=True):
            try:
                column.check(cell)
            except CellError as error:
                within = f" (row {row_number - rows_before_part} of {block.part})"
                place = f"{row_number}{within if block.part else ''}"
                raise cell_error(column.name, place, error) from None
