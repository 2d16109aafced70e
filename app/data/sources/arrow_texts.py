"""The texts of one column as an Arrow array, parsed together for speed.

The result for a field depends on the field's own text only. Texts are parsed together only if the
result is proved to be the same as when each is parsed alone; every other text is parsed alone:

* Of texts that consist of digits, signs, points and the letters e and E (``ALPHABET``), Arrow
  either reads the same decimal numbers as the pattern in :mod:`app.data.field_values`, or refuses
  them. Both round to the nearest float64.
* Texts are compared with the public names of categories and classes byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
from pyarrow import compute, csv

from app.data.field_values import BLANKS, ERRORS, POINT
from app.data.sources.column_values import Texts, Values
from app.data.sources.csv_records import divides_alike

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

ALPHABET: Final = b"0123456789+-.eE"
# Of RE2, by bytes: the pattern of a decimal number with blanks about it.
DECIMAL_NUMBER: Final = r"\A[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*\z"
_SWAPPED: Final = bytes.maketrans(b",.", b".,")
_FIRST, _SLASH, _COMMA, _SPAN = np.uint8(43), np.uint8(47), np.uint8(44), np.uint8(14)
_CASE, _EXPONENT = np.uint8(0x20), np.uint8(0x65)


class ArrowTexts(Texts):
    """The texts of a column as bytes; a text that is not UTF-8 is refused when it is parsed.

    Args:
        array: an Arrow array of type ``binary`` or ``large_binary``, without nulls.

    """

    def __init__(self, array: pa.Array) -> None:
        """Store the Arrow array."""
        self._array = array

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self._array)

    def __iter__(self) -> Iterator[str]:
        """Yield the text of each row."""
        return iter(_texts(self._array))

    def distinct(self) -> Values:
        """Return the distinct texts, and the index of each row's text among them."""
        coded = self._array.dictionary_encode()
        return Values(_texts(coded.dictionary), coded.indices.to_numpy(zero_copy_only=False))

    def distinct_with(self, others: Sequence[Texts]) -> Values:
        """Return the distinct texts of this column and others together.

        The result also has the index of each text among the distinct ones, column by column.
        """
        arrays = [each._array for each in (self, *others) if isinstance(each, ArrowTexts)]  # noqa: SLF001 -- its own
        coded = pa.chunked_array(arrays).dictionary_encode().combine_chunks()
        return Values(_texts(coded.dictionary), coded.indices.to_numpy(zero_copy_only=False))

    def places(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Return the index of each text among ``names``, or -1 if it is none, shape ``(rows,)``."""
        kind = self._array.type
        wanted = pa.array([name.encode(errors=ERRORS) for name in names], kind)
        found = compute.index_in(self._array, value_set=wanted).fill_null(-1)
        return cast("NDArray[np.intp]", found.to_numpy(zero_copy_only=False).astype(np.intp))

    def are_unicode(self) -> bool:
        """Return whether every text of the column is UTF-8."""
        try:
            self._array.cast(pa.large_string())
        except pa.ArrowInvalid:
            return False
        return True

    def joined(self) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
        """Return the bytes of all texts, one after another, and where each text starts.

        Returns:
            The bytes; and the index at which each text starts, followed by the index at which the
            last one ends, shape ``(rows + 1,)``.

        """
        offsets = _offsets(self._array)
        return _body(self._array), offsets - offsets[0]

    def at(self, rows: NDArray[np.bool_]) -> ArrowTexts:
        """Return the texts of some rows.

        Args:
            rows: for each row whether its text is returned, shape ``(rows,)``.

        """
        return ArrowTexts(self._array.filter(pa.array(rows)))

    def numbers(
        self, missing: Collection[str], decimal: str
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Return texts as finite decimal numbers, and which texts must be parsed one by one.

        Args:
            missing: texts that stand for a missing value; they must be parsed one by one.
            decimal: the decimal separator.

        Returns:
            The numbers, shape ``(rows,)``; and for each row whether its text must be parsed one by
            one, shape ``(rows,)``, or None if no text must. The number returned for a text
            that must be parsed one by one has no meaning.

        """
        alone = self._are_among(missing)
        array = self._array if alone is None else self._array.filter(pa.array(~alone))
        if decimal != POINT:
            array = _translated(array)
        numbers = _numbers_of_alphabet(array)
        odd = None
        if numbers is None:
            numbers, odd = _numbers_by_pattern(array)
        if alone is None:
            return numbers, odd
        every = np.zeros(len(alone))
        every[~alone] = numbers
        if odd is not None:
            alone[~alone] = odd
        return every, alone

    def _are_among(self, missing: Collection[str]) -> NDArray[np.bool_] | None:
        """Return which rows are one of some texts; None where none is."""
        if any(missing):
            among = self.places(sorted(missing)) >= 0
        else:
            among = np.diff(_offsets(self._array)) == 0
        return among if among.any() else None


@dataclass(frozen=True, slots=True)
class Fields:
    """Some records of a CSV file, divided into fields.

    Attributes:
        row_count: the number of records.
        cells: the texts of each column; None for a column that is not needed; secret.

    """

    row_count: int
    cells: list[ArrowTexts | None] = field(repr=False)


def divided(body: bytes, separator: str, *, width: int, wanted: Sequence[int]) -> Fields | None:
    """Return records of a CSV file, divided into fields by Arrow's reader.

    Args:
        body: whole records in UTF-8, at most some megabytes.
        separator: the character between fields.
        width: the number of fields of each record.
        wanted: the indices of the needed columns.

    Returns:
        The fields; None if Python's CSV reader may divide the records differently, or refuse one.

    """
    if not divides_alike(body, separator):
        return None
    names = [str(index) for index in range(width)]
    included = [names[index] for index in wanted]
    try:
        table = csv.read_csv(
            pa.BufferReader(body),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(body) + 1, column_names=names
            ),
            parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=included,
            ),
        )
    except pa.ArrowInvalid:
        return None
    cells: list[ArrowTexts | None] = [None] * width
    for index, name in zip(wanted, included, strict=True):
        cells[index] = ArrowTexts(table.column(name).combine_chunks())
    return Fields(table.num_rows, cells)


def _texts(array: pa.Array) -> list[str]:
    """Return texts of their bytes, together where all of them are UTF-8; else some are escaped."""
    try:
        texts: list[str] = array.cast(pa.large_string()).to_numpy(zero_copy_only=False).tolist()
    except pa.ArrowInvalid:
        return [text.decode(errors=ERRORS) for text in array.to_pylist()]
    return texts


def _offsets(array: pa.Array) -> NDArray[np.int64] | NDArray[np.int32]:
    """Return where each text begins in the bytes, and where the last one ends."""
    count = len(array) + 1
    if pa.types.is_large_binary(array.type):
        return np.frombuffer(array.buffers()[1], np.int64, array.offset + count)[-count:]
    return np.frombuffer(array.buffers()[1], np.int32, array.offset + count)[-count:]


def _body(array: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of all texts, one after the other."""
    if not len(array) or array.buffers()[2] is None:
        return np.zeros(0, dtype=np.uint8)
    offsets = _offsets(array)
    return np.frombuffer(array.buffers()[2], dtype=np.uint8)[offsets[0] : offsets[-1]]


def _translated(array: pa.Array) -> pa.Array:
    """Return texts with points for commas, and with commas, which no number has, for points."""
    offsets = _offsets(array)
    body = _body(array).tobytes().translate(_SWAPPED)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets - offsets[0])), pa.py_buffer(body)]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _numbers_of_alphabet(array: pa.Array) -> NDArray[np.float64] | None:
    """Return numbers of the alphabet's characters; None where some text may be none."""
    body = _body(array)
    from_first = body - _FIRST
    plain = (from_first <= _SPAN) & (body != _SLASH) & (body != _COMMA)
    if not (plain | ((body | _CASE) == _EXPONENT)).all():
        return None
    return _cast(array)


def _numbers_by_pattern(array: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers among any texts, and which rows are none that is sure."""
    matched = compute.match_substring_regex(array, pattern=DECIMAL_NUMBER)
    odd = ~np.asarray(matched.to_numpy(zero_copy_only=False), dtype=np.bool_)
    every = np.zeros(len(array))
    texts = _as_text(array.filter(matched))
    bare = compute.ascii_ltrim(compute.ascii_trim(texts, characters=BLANKS), characters="+")
    numbers = _cast(bare)
    if numbers is None:
        return every, np.ones(len(array), dtype=np.bool_)
    every[~odd] = numbers
    return every, odd


def _cast(array: pa.Array) -> NDArray[np.float64] | None:
    """Return texts as finite numbers; None where one is none."""
    try:
        numbers = _as_text(array).cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _as_text(array: pa.Array) -> pa.Array:
    """Return bytes as text, without a look at them."""
    if pa.types.is_large_binary(array.type):
        return array.view(pa.large_string())
    return array.view(pa.string()) if pa.types.is_binary(array.type) else array
