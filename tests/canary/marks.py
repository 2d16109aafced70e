"""What must not leave, and the search for it in whatever was emitted."""

from __future__ import annotations

import base64
import re
import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mark:
    """One private value in every form that is searched for.

    Attributes:
        name: what it is, e.g. ``votes of query 3``.
        pieces: found wherever they stand.
        numbers: found as whole numbers: no digit, letter or point beside them.

    """

    name: str
    pieces: tuple[bytes, ...] = ()
    numbers: tuple[int, ...] = ()

    def is_in(self, emitted: bytes) -> bool:
        """Tell whether any form of the value is there."""
        folded = emitted.lower()
        if any(piece in emitted or piece in folded for piece in self.pieces):
            return True
        return any(_whole(number).search(emitted) for number in self.numbers)


def text_mark(name: str, text: str) -> Mark:
    """Mark a string: itself, its hexadecimal digits, its base64."""
    return Mark(name, encodings(text.encode()))


def number_mark(name: str, number: float) -> Mark:
    """Mark a number: its decimals, as float32 too, and its bits as bytes, hex and base64."""
    decimals = (repr(number), repr(number)[:7], str(np.float32(number)), number.hex())
    bits = [struct.pack(order, number) for order in ("<d", ">d")]
    forms = [form for raw in (repr(number).encode(), *bits) for form in encodings(raw)]
    return Mark(name, (*(text.encode() for text in decimals), *forms, struct.pack("<f", number)))


def encodings(raw: bytes) -> tuple[bytes, ...]:
    """Return bytes as they are, in hexadecimal digits and in base64, however aligned."""
    return (raw, raw.hex().encode(), *(_base64(raw, shift) for shift in range(3)))


def found(marks: tuple[Mark, ...], emitted: bytes) -> list[str]:
    """Return the names of the values that were emitted."""
    return [mark.name for mark in marks if mark.is_in(emitted)]


def _base64(raw: bytes, shift: int) -> bytes:
    """Return what base64 makes of ``raw`` after ``shift`` bytes, whatever stands around it."""
    whole = (shift + len(raw)) // 3 * 4
    first = 4 if shift else 0  # the group that depends on what stood before
    return base64.b64encode(bytes(shift) + raw)[first:whole]


def _whole(number: int) -> re.Pattern[bytes]:
    """Match a number that is no part of another, of a word or of a UUID."""
    return re.compile(rb"(?<![\w.])(?<!\w-)%d(?![\w-]|\.\d)" % number)
