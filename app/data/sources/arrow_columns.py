"""The rule for the values of an Arrow column: which types are read, and as what.

A column may contain texts, numbers, decimals or booleans, and for a date feature dates. It may have
nulls and may be dictionary-encoded. What a value becomes depends on the value and on the column's
type, which the file states, and not on other rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
from pyarrow import compute

from app.data.field_values import MISSING_CELL
from app.data.sources.arrow_texts import ArrowTexts
from app.data.sources.column_values import (
    UNITS_PER_DAY,
    IdentifierColumn,
    Values,
    dates,
    widened,
)
from app.data.sources.row_blocks import SOURCE
from app.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.data.sources.column_values import Cells, SourceColumn

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


def refuse_type(field: pa.Field, column: SourceColumn, *, place: str) -> None:
    """Refuse a column of a file whose values have no text, or are no dates where these belong.

    Args:
        field: the column's name and type in the file.
        column: the needed column.
        place: a noun for the file, for the error.

    Raises:
        DataError: the type is refused.

    """
    if not _is_readable(_plain_type(field.type), column):
        problem = f'column "{field.name}" in {place} holds neither text nor numbers'
        raise DataError(SOURCE, f"{problem}, but {field.type}")
    if column.takes_dates and not _has_known_zone(_plain_type(field.type)):
        problem = f'column "{field.name}" in {place} has an unknown time zone'
        raise DataError(SOURCE, problem)


def arrow_cells(array: pa.Array, column: SourceColumn) -> Cells:
    """Return a batch of one column: numbers as they are, of anything else each value once.

    Args:
        array: consecutive values of the column, of a type that :func:`refuse_type` accepts.
        column: the needed column.

    """
    if pa.types.is_dictionary(array.type):
        if _is_one_of(_TEXT_TYPES, array.type.value_type):
            return _coded_texts(array)
        array = array.dictionary_decode()
    kind = array.type
    if isinstance(column, IdentifierColumn) and pa.types.is_integer(kind) and not array.null_count:
        return _texts(array.cast(pa.string()))
    if isinstance(column, IdentifierColumn) and pa.types.is_floating(kind):
        array = pa.array(widened(array.to_numpy(zero_copy_only=False), column))
    if column.takes_dates and _is_one_of(_DATE_TYPES, kind):
        return dates(_days(array))
    if _is_one_of(_NUMBER_TYPES, kind) and (column.takes_numbers or pa.types.is_floating(kind)):
        array = array.cast(pa.float64(), safe=False)
    if column.takes_numbers and pa.types.is_float64(array.type):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    if _is_one_of(_TEXT_TYPES, kind):
        return _texts(array)
    if _is_one_of(_NARROW_DECIMALS, kind):
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
    coded = array.dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    places = coded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return Values([*distinct, None] if coded.null_count else distinct, places)


def _texts(array: pa.Array) -> ArrowTexts:
    """Return texts as bytes: what is not UTF-8 is then refused by its row, as in a CSV."""
    encoded = array.cast(pa.large_binary())
    # An empty text is missing too.
    return ArrowTexts(encoded.fill_null(MISSING_CELL.encode()) if array.null_count else encoded)


def _coded_texts(array: pa.DictionaryArray) -> Cells:
    """Return the texts of a dictionary that some row has, and where they stand."""
    if array.null_count or len(array.dictionary) > len(array):
        return _texts(array.dictionary_decode())
    indices = array.indices.to_numpy(zero_copy_only=False)
    used = np.bincount(indices, minlength=len(array.dictionary)) > 0
    if used.all():
        return Values(_texts(array.dictionary), indices)
    return Values(_texts(array.dictionary.filter(pa.array(used))), (np.cumsum(used) - 1)[indices])


def _days(array: pa.Array) -> NDArray[np.generic]:
    """Return the date of each moment in the time zone of its type, NaT for null.

    No moment of 64 bits overflows: its day in Greenwich and the rest of it are taken before the
    zone's offset is added, which Arrow adds to the whole count without a check.
    """
    if pa.types.is_date(array.type):
        return cast("NDArray[np.generic]", array.to_numpy(zero_copy_only=False))
    counts, local = _counts(array), _counts(_local(array))
    days, rest = np.divmod(counts, UNITS_PER_DAY[array.type.unit])
    # Where the local count has wrapped, this difference wraps back.
    days += (rest + (local - counts)) // UNITS_PER_DAY[array.type.unit]
    is_missing = array.is_null().to_numpy(zero_copy_only=False)
    return np.where(is_missing, np.datetime64("NaT"), days.view("datetime64[D]"))


def _counts(moments: pa.Array) -> NDArray[np.int64]:
    """Return moments as counts of their unit; where there is none, 0."""
    counts = moments.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return cast("NDArray[np.int64]", counts)


def _local(array: pa.Array) -> pa.Array:
    """Return moments as they are in their time zone, without it, wrapped at the ends of 64 bits."""
    return compute.local_timestamp(array) if pa.types.is_timestamp(array.type) else array


def _has_known_zone(kind: pa.DataType) -> bool:
    """Return whether moments of a type have no time zone, or one that this machine knows."""
    try:
        _local(pa.nulls(1, kind))
    except pa.ArrowInvalid:
        return False
    return True


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
