"""Recorded answers, as the ledger stores and returns them, and the checks of stored values.

A stability test decides, with noise, whether the models agree clearly enough for a stable answer.
Releases with scores stop after a number of failed tests, the cutoff.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER_OR_NOTHING: Final = frozenset({int, type(None)})
_Number: TypeAlias = int | None
_Values: TypeAlias = tuple[int, _Number, int, _Number, _Number, _Number, _Number]


class RecordedAnswer(msgspec.Struct, frozen=True, gc=False):
    """A recorded answer, which is repeated for the same vector.

    A score is recorded as a bin of one of two histograms of the models' scores; the edges of the
    shifted histogram lie half a bin lower. Each failed stability test of an answer uses one unit of
    the cutoff.

    Attributes:
        query_id: the number of the answer, counted from 1 without gaps.
        label: the class index of the label; None for no label.
        stable: whether the answer was stable.
        precision: the number of bins of the score that was asked for; None if a label was asked
            for.
        bin_index: the index of the score's bin; None for an unstable answer, or if a label was
            asked for.
        bin_shifted: whether the bin belongs to the shifted histogram; None if a label was asked
            for.
        units: the number of units of the cutoff that the answer used; None if a label was asked
            for.

    """

    query_id: int
    label: int | None
    stable: bool
    precision: int | None = None
    bin_index: int | None = None
    bin_shifted: bool | None = None
    units: int | None = None


class AnswerRow(NamedTuple):
    """A row of the answers table for a new answer.

    Attributes:
        vector_digest: the keyed digest of the vector, or of its cell, 32 bytes.
        vector: the canonical bytes of the vector as the client posted it, or of its public cell if
            each cell is decided once.
        answer: the recorded answer.
        qualifier: bytes that also identify the query, for example the set of voting generations;
            empty if there are none.

    """

    vector_digest: bytes
    vector: bytes
    answer: RecordedAnswer
    qualifier: bytes = b""


def checked_answer(values: Sequence[object]) -> RecordedAnswer:
    """Return a stored answer after checking its types, which SQLite does not enforce.

    Raises:
        TypeError: a value does not have the type of an answer's value.

    """
    query_id, label, stable, precision, bin_index, shifted, units = cast("_Values", values)
    numbers = (query_id, label, precision, bin_index, units)
    if not _NUMBER_OR_NOTHING.issuperset(map(type, numbers)):
        raise TypeError("a label, a precision, a bin and its units are whole numbers")
    truth = None if shifted is None else bool(shifted)
    return RecordedAnswer(query_id, label, bool(stable), precision, bin_index, truth, units)


def checked_bytes(value: object) -> bytes:
    """Return stored bytes after checking their type.

    Raises:
        TypeError: the value does not consist of bytes.

    """
    if not isinstance(value, bytes):
        raise TypeError("a digest, a vector or a body is made of bytes")
    return value
