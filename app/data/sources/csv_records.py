"""A reader of a UTF-8 CSV file, by lines or by blocks of whole records.

A block may be read by Arrow's reader if its bytes show that Arrow's reader and Python's reader
divide it into the same fields. Any other block is read line by line by Python's reader. So an
invalid file gets the same error message whether or not it is read by blocks.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.field_values import ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

BLOCK_BYTES = 4 * 2**20
PIECE_BYTES = 2**20
RANGE_BYTES: Final = 16 * 2**20
"""Bytes of records that are read as one part."""
MARK: Final = b"\xef\xbb\xbf"
QUOTE: Final = b'"'
LINE_END: Final = b"\n"
RETURN: Final = b"\r"
# The limit of Python's reader in characters, each of which is a byte or more.
CELL_BYTES_MAX: Final = csv.field_size_limit()


class CsvRecords:
    """The bytes of a CSV file, read from the start by lines or blocks.

    Args:
        read: a function that returns at most a given number of further bytes, and none at the end.
        broken: the errors that ``read`` may raise; the bytes before an error are returned first.

    Attributes:
        position: the number of bytes that were consumed.

    """

    def __init__(self, read: Callable[[int], bytes], broken: tuple[type[Exception], ...]) -> None:
        """Prepare for reading without reading anything."""
        self._read = read
        self._broken = broken
        self._error: Exception | None = None
        self._has_ended = False
        self._held = b""
        self._held_from = self.position = 0

    def lines(self) -> Iterator[str]:
        """Yield the file's lines with their line ends; bytes that are not UTF-8 are escaped.

        Raises:
            Exception: an error of the function that reads the file; all complete lines before it
                are yielded first.

        """
        while True:
            self._fill(PIECE_BYTES)
            lines = self._left().splitlines(keepends=True)
            is_whole = self._has_ended and self._error is None
            if lines and not is_whole and not lines[-1].endswith(LINE_END):
                del lines[-1]
            if not lines and self._has_ended:
                if self._error is not None:
                    raise self._error
                return
            if not lines:
                self._fill(len(self._left()) + PIECE_BYTES)
            for line in lines:
                self.position += len(line)
                yield line.decode(errors=ERRORS)

    def is_small(self, limit: int) -> bool:
        """Return whether fewer than ``limit`` bytes of the file remain."""
        self._fill(limit)
        return self._has_ended and len(self._left()) < limit

    def block(self) -> bytes:
        """Return the next few megabytes of whole records without consuming them; none at the end.

        Raises:
            Exception: an error of the function that reads the file; all whole records before it
                are returned first.

        """
        wanted = BLOCK_BYTES
        while True:
            self._fill(wanted)
            left = self._left()
            if self._has_ended and self._error is None:
                return left
            end = _end_of_records(left)
            if end:
                return left[:end]
            if self._error is not None:
                raise self._error
            wanted = len(left) + BLOCK_BYTES

    def take(self, count: int) -> None:
        """Consume ``count`` bytes of the file."""
        self.position += count

    def _left(self) -> bytes:
        """Return what was read and not taken."""
        if self.position > self._held_from:
            self._held = self._held[self.position - self._held_from :]
            self._held_from = self.position
        return self._held

    def _fill(self, count: int) -> None:
        """Read until so many bytes are there that were not taken, or to the end."""
        pieces = [self._left()]
        held = len(pieces[0])
        while held < count and not self._has_ended:
            try:
                piece = self._read(PIECE_BYTES)
            except self._broken as error:
                self._error, self._has_ended = error, True
                break
            self._has_ended = not piece
            pieces.append(piece)
            held += len(piece)
        self._held = b"".join(pieces)


def without_mark(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Return a function that reads as ``read`` does, and skips a byte order mark at the start."""
    is_begun = False

    def read_on(count: int) -> bytes:
        nonlocal is_begun
        piece = read(count)
        if not is_begun:
            is_begun = True
            while piece and len(piece) < len(MARK) and (more := read(count)):
                piece += more
            piece = piece.removeprefix(MARK) or (read(count) if piece else b"")
        return piece

    return read_on


def record_borders(read: Callable[[int], bytes], separator: str, *, step: int) -> tuple[int, ...]:
    """Return byte offsets at which records start, at least ``step`` bytes apart.

    A line end within a quoted field is not the end of a record. If a quote of the file neither
    begins nor ends a field, and is not one of two quotes side by side, the only offset is 0,
    because it is then unknown which fields are quoted.

    Args:
        read: a function that returns at most a given number of further bytes of a UTF-8 CSV file,
            and none at the end.
        separator: the character between fields.
        step: the least number of bytes between two offsets.

    """
    borders, position, is_open, before = [0], 0, False, LINE_END
    while body := read(step):
        text = body.removeprefix(MARK) if not position else body
        has_quotes = QUOTE in text or before == QUOTE
        if has_quotes and not _begin_or_end_fields(before + text, separator, is_open=is_open):
            return (0,)
        if position and (end := _first_record(text, is_open=is_open)):
            borders.append(position + end)
        is_open ^= text.count(QUOTE) % 2 == 1
        before, position = text[-1:] or before, position + len(body)
    return (0,) if is_open else tuple(borders)


def _begin_or_end_fields(body: bytes, separator: str, *, is_open: bool) -> bool:
    """Return whether each quote of some bytes begins or ends a field, or is one of two.

    Args:
        body: the bytes with the one before them; what follows the last one is not looked at.
        separator: between fields.
        is_open: whether they begin within a quoted field.

    """
    codes = np.frombuffer(body, dtype=np.uint8)
    quotes = np.flatnonzero(codes[1:] == QUOTE[0]) + 1
    first, last = quotes[int(is_open) :: 2], quotes[int(not is_open) :: 2]
    if body.startswith(QUOTE) and not is_open:
        last = np.insert(last, 0, 0)
    borders = np.zeros(256, dtype=np.bool_)
    borders[[ord(separator), LINE_END[0], QUOTE[0]]] = True
    begin = bool(borders[codes[first - 1]].all())
    borders[RETURN[0]] = True
    return begin and bool(borders[codes[last[last < len(codes) - 1] + 1]].all())


def _first_record(body: bytes, *, is_open: bool) -> int:
    """Return the number of bytes up to the end of the first record that ends in some; 0 for none.

    Args:
        body: the bytes.
        is_open: whether they begin within a quoted field.

    """
    end = counted = 0
    while end := body.find(LINE_END, end) + 1:
        is_open ^= body.count(QUOTE, counted, end) % 2 == 1
        if not is_open:
            return end
        counted = end
    return 0


def divides_alike(body: bytes, separator: str) -> bool:
    """Return whether Python's and Arrow's CSV readers divide some records into the same fields.

    They do if every quote that begins a field is the field's first character, every quote that ends
    a field is its last, two quotes side by side stand for one, all lines end in the same way, no
    field can be longer than Python's reader accepts, and the bytes do not begin like a byte order
    mark, which Arrow's reader leaves out.

    Args:
        body: the bytes of some consecutive records.
        separator: the character between fields.

    """
    if not separator.isascii() or b"\0" in body or body.startswith(MARK):
        return False
    if body.count(RETURN) != body.count(RETURN + LINE_END):
        return False
    codes = np.frombuffer(body, dtype=np.uint8)
    line_ends = np.flatnonzero(codes == LINE_END[0])
    quotes = np.flatnonzero(codes == QUOTE[0])
    if not len(quotes):
        return _longest(line_ends, len(body)) <= CELL_BYTES_MAX
    if not _begin_and_end_fields(codes, quotes, separator):
        return False
    spans = quotes[1::2] - quotes[::2]
    if int(spans.max()) > CELL_BYTES_MAX or (np.diff(quotes)[1::2] == 1).any():
        # A field of many lines, or of many quotes, may be longer than any of them.
        line_ends = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    return _longest(line_ends, len(body)) <= CELL_BYTES_MAX


def _begin_and_end_fields(
    codes: NDArray[np.uint8], quotes: NDArray[np.intp], separator: str
) -> bool:
    """Return whether quotes come in pairs about whole fields, or are doubled within one."""
    if len(quotes) % 2:
        return False
    first, last = quotes[::2], quotes[1::2]
    before = codes[first - 1]
    if first[0] == 0:
        before[0] = LINE_END[0]
    after = codes[np.minimum(last + 1, len(codes) - 1)]
    if last[-1] == len(codes) - 1:
        after[-1] = LINE_END[0]
    borders = np.zeros(256, dtype=np.bool_)
    borders[[ord(separator), LINE_END[0], QUOTE[0]]] = True
    begin = bool(borders[before].all())
    borders[RETURN[0]] = True
    return begin and bool(borders[after].all())


def _longest(line_ends: NDArray[np.intp], end: int) -> int:
    """Return the greatest distance between line ends, the beginning and the end."""
    return int(np.diff(line_ends, prepend=-1, append=end).max())


def _end_of_records(body: bytes) -> int:
    """Return where the last record ends whose quotes are paired; the last line, for none."""
    if LINE_END not in body:
        return body.rfind(RETURN) + 1
    last = end = body.rfind(LINE_END) + 1
    quotes = body.count(QUOTE, 0, end)
    while end and quotes % 2:
        before = body.rfind(LINE_END, 0, end - 1) + 1
        quotes -= body.count(QUOTE, before, end)
        end = before
    return end or last
