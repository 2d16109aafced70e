"""The bytes of a group of answers: a row of the table ``answer_groups`` has many answers.

The body of a group has these parts, with whole numbers big-endian, for n answers:

* the version of the form, 1; the flags below; and n; one byte each;
* the digests of the vectors or cells, 32 bytes each;
* for each answer a byte, or 4 with ``WIDE``: the highest bit tells whether the answer is stable,
  the others are 0 without a label, otherwise 1 + the class index;
* with ``SCORED``: the precisions, 2 bytes each; the bins, 2 bytes each, 0 without a bin, otherwise
  1 + its index; whether each bin is shifted, a byte 0 or 1; the units, a byte each;
* with ``QUALIFIED``: the lengths of the qualifiers, 2 bytes each, then the qualifiers;
* the lengths of the vectors, a byte each, or 4 bytes with ``LONG``; then the vectors.

The number of an answer is not in the body: the row has the first and the last number.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from app.errors import LedgerCorruptError, invariant
from app.ledger.database.recorded_answers import AnswerRow, RecordedAnswer
from app.ledger.entries.entry_kinds import PUBLIC_DIGEST_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ANSWERS_MAX: Final = 64
"""Most answers of a group, as a check of the database also says."""

BYTES_MAX: Final = 996
"""Length of a body up to which a group takes further answers; one answer may be longer.

Four rows with such a body fill a page of SQLite, and PostgreSQL stores such a row in one piece.
"""

VERSION: Final = 1
SCORED, QUALIFIED, LONG, WIDE = 1, 2, 4, 8
_FLAGS: Final = SCORED | QUALIFIED | LONG | WIDE
_HEADER_BYTES: Final = 3
_DIGEST_BYTES: Final = 32
_ANSWER_BYTES: Final = _DIGEST_BYTES + 2
_SCORE_BYTES: Final = 6
_LENGTH_BYTES: Final = 2
_SHORT_MAX: Final = 0xFF
_LABEL_BITS: Final = 7, 31
_PLAIN_LABELS: Final = 127
_PLAIN_HEADERS: Final = {count: bytes((VERSION, 0, count)) for count in range(1, ANSWERS_MAX + 1)}
_ONE_ANSWER: Final = bytes((VERSION, 0, 1))
_MALFORMED: Final = "a group of answers is malformed"


class _Places(NamedTuple):
    """Where the parts of a body begin; ``end`` is the length that the body must have."""

    answer_count: int
    flags: int
    labels: int
    scores: int
    qualifiers: int
    qualifier_lengths: tuple[int, ...]
    vectors: int
    vector_lengths: Sequence[int]


def ends_of_groups(
    vectors: Sequence[bytes], qualifiers: Sequence[bytes], *, is_scored: bool
) -> list[int]:
    """Divide consecutive answers into groups; return the number of answers up to each group's end.

    A group has at most ``ANSWERS_MAX`` answers, and more than one only if its body has at most
    ``BYTES_MAX`` bytes in the short form.
    """
    fixed = _ANSWER_BYTES + (_SCORE_BYTES if is_scored else 0)
    sizes = [fixed + len(vector) for vector in vectors]
    if any(qualifiers):
        sizes = [
            size + _LENGTH_BYTES + len(qualifier)
            for size, qualifier in zip(sizes, qualifiers, strict=True)
        ]
    room = BYTES_MAX - _HEADER_BYTES
    if len(set(sizes)) == 1:
        together = max(1, min(ANSWERS_MAX, room // sizes[0]))
        return [*range(together, len(sizes), together), len(sizes)]
    ends: list[int] = []
    start = began = 0
    for place, size in enumerate(accumulate(sizes), start=1):
        if place - start > 1 and (size - began > room or place - start > ANSWERS_MAX):
            start, began = place - 1, size - sizes[place - 1]
            ends.append(start)
    return [*ends, len(sizes)]


def packed_groups(
    vector_digests: Sequence[bytes],
    vectors: Sequence[bytes],
    given: Sequence[RecordedAnswer],
    qualifiers: Sequence[bytes],
) -> list[tuple[int, bytearray]]:
    """Return the number of answers up to the end of each group, and the group's body.

    The groups are those of :func:`ends_of_groups`, the bodies those of :func:`pack`; the answers of
    most entries need no flag, and are packed here in a third of the time.

    Args:
        vector_digests: the keyed digest of each vector, or of its cell, 32 bytes.
        vectors: the canonical bytes of each vector, or of its cell.
        given: the consecutive answers of an entry, which all have scores or all have none.
        qualifiers: bytes that also identify each query; empty if there are none.

    Raises:
        InvariantError: a digest has another length, or a label is not an index.
        ValueError: a value is out of the range of the form.

    """
    if len(given) == 1:
        return [(1, pack(vector_digests, vectors, given, qualifiers))]
    is_scored = given[0].precision is not None
    ends = ends_of_groups(vectors, qualifiers, is_scored=is_scored)
    pairs = [*zip([0, *ends], ends, strict=False)]
    flags, labels = _packed_labels(given)
    sizes = _packed_lengths(vectors)
    if flags or is_scored or len(sizes) > len(vectors) or any(qualifiers):
        return [
            (end, pack(vector_digests[at:end], vectors[at:end], given[at:end], qualifiers[at:end]))
            for at, end in pairs
        ]
    invariant({*map(len, vector_digests)} == {_DIGEST_BYTES}, "a digest has 32 bytes")
    return [
        (
            end,
            bytearray().join(
                (
                    bytes((VERSION, 0, end - at)),
                    *vector_digests[at:end],
                    labels[at:end],
                    sizes[at:end],
                    *vectors[at:end],
                )
            ),
        )
        for at, end in pairs
    ]


def pack(
    vector_digests: Sequence[bytes],
    vectors: Sequence[bytes],
    given: Sequence[RecordedAnswer],
    qualifiers: Sequence[bytes],
) -> bytearray:
    """Return the body of a group of 1 to ``ANSWERS_MAX`` answers, given as columns.

    Args:
        vector_digests: the keyed digest of each vector, or of its cell, 32 bytes.
        vectors: the canonical bytes of each vector, or of its cell.
        given: the answers, which all have scores or all have none.
        qualifiers: bytes that also identify each query; empty if there are none.

    Raises:
        InvariantError: the columns are no group of answers.
        ValueError: a value is out of the range of the form.

    """
    count = len(given)
    is_group = len(vector_digests) == len(vectors) == len(qualifiers) == count
    invariant(is_group and 0 < count <= ANSWERS_MAX, "a group has columns of 1 to 64 answers")
    if count == 1 and _may_be_plain(vector_digests[0], vectors[0], given[0], qualifiers[0]):
        return _packed_plainly(vector_digests[0], vectors[0], given[0])
    invariant({*map(len, vector_digests)} == {_DIGEST_BYTES}, "a digest has 32 bytes")
    flags, labels = _packed_labels(given)
    scores = qualified = b""
    try:
        if given[0].precision is not None:
            flags, scores = flags | SCORED, _packed_scores(given)
        if any(qualifiers):
            sizes = struct.pack(f">{count}H", *map(len, qualifiers))
            flags, qualified = flags | QUALIFIED, sizes + b"".join(qualifiers)
        sizes = _packed_lengths(vectors)
    except struct.error:
        raise ValueError(_MALFORMED) from None
    flags |= LONG if len(sizes) > count else 0
    header = bytes((VERSION, flags, count))
    parts = (header, *vector_digests, labels, scores, qualified, sizes, *vectors)
    return bytearray().join(parts)


def _may_be_plain(digest: bytes, vector: bytes, answer: RecordedAnswer, qualifier: bytes) -> bool:
    """Return whether a group of one answer needs no flag."""
    return (
        len(digest) == _DIGEST_BYTES
        and len(vector) <= _SHORT_MAX
        and answer.precision is None
        and not qualifier
        and (answer.label is None or 0 <= answer.label < _PLAIN_LABELS)
    )


def _packed_plainly(digest: bytes, vector: bytes, answer: RecordedAnswer) -> bytearray:
    """Return the body of a group of one answer; it takes a quarter of the time."""
    code = 0 if answer.label is None else answer.label + 1
    if answer.stable:
        code += 1 << _LABEL_BITS[0]
    return bytearray().join((_ONE_ANSWER, digest, bytes((code, len(vector))), vector))


def _packed_labels(given: Sequence[RecordedAnswer]) -> tuple[int, bytes]:
    """Return the flag of the labels' length, and the labels with the stable flags."""
    short, wide = _LABEL_BITS
    labels = {answer.label for answer in given if answer.label is not None}
    largest = max(labels, default=0)
    invariant(min(labels, default=0) >= 0, "a label is an index")
    is_wide = largest + 1 >= 1 << short
    top = 1 << (wide if is_wide else short)
    told = [
        (0 if answer.label is None else answer.label + 1) + (top if answer.stable else 0)
        for answer in given
    ]
    if not is_wide:
        return 0, bytes(told)
    invariant(largest + 1 < top, "a label is an index")
    return WIDE, struct.pack(f">{len(told)}L", *told)


def _packed_lengths(vectors: Sequence[bytes]) -> bytes:
    """Return the lengths of vectors, a byte each if that is enough."""
    lengths = [*map(len, vectors)]
    if max(lengths) <= _SHORT_MAX:
        return bytes(lengths)
    return struct.pack(f">{len(lengths)}L", *lengths)


def _packed_scores(given: Sequence[RecordedAnswer]) -> bytes:
    precisions = [each.precision or 0 for each in given]
    invariant(min(precisions) > 0, "a group has labels or scores")
    bins = [0 if each.bin_index is None else each.bin_index + 1 for each in given]
    numbers = struct.pack(f">{2 * len(given)}H", *precisions, *bins)
    shifted = bytes(each.bin_shifted is True for each in given)
    return numbers + shifted + bytes(each.units or 0 for each in given)


def unpack(body: bytes, first: int, last: int) -> list[AnswerRow]:
    """Return the answers of a group.

    Args:
        body: the stored body of the group.
        first: the number of the first answer.
        last: the number of the last answer.

    Raises:
        LedgerCorruptError: the body is not that of a group with these answers.

    """
    places = _places_in(body, first, last)
    digests = _digests(body, places.answer_count)
    vectors = _parts(body, places.vectors, places.vector_lengths)
    qualifiers: Iterable[bytes] = (b"",) * places.answer_count
    if places.flags & QUALIFIED:
        qualifiers = _parts(body, places.qualifiers, places.qualifier_lengths)
    if places.flags & (SCORED | WIDE):
        given = [_answer(body, places, at, first + at) for at in range(places.answer_count)]
    else:
        codes = body[places.labels : places.labels + places.answer_count]
        given = [_plain_answer(number, code) for number, code in enumerate(codes, first)]
    return [*map(AnswerRow, digests, vectors, given, qualifiers)]


def digests_in(body: bytes, first: int, last: int) -> list[bytes]:
    """Return the digest of every answer of a group, in order.

    Raises:
        LedgerCorruptError: the body is not that of a group with these answers.

    """
    return _digests(body, _places_in(body, first, last).answer_count)


def columns_in(body: bytes, first: int, last: int) -> dict[str, list[object]]:
    """Return what the entry of a group says of its answers, by the name of the entry's field.

    Raises:
        LedgerCorruptError: the body is not that of a group with these answers.

    """
    places = _places_in(body, first, last)
    count, flags = places.answer_count, places.flags
    codes: Sequence[int] = body[places.labels : places.labels + count]
    if flags & WIDE:
        codes = struct.unpack_from(f">{count}L", body, places.labels)
    top = 1 << _LABEL_BITS[1 if flags & WIDE else 0]
    label_bits = top - 1
    halves = body[_HEADER_BYTES : places.labels].hex(",", PUBLIC_DIGEST_CHARS // 2).split(",")
    columns: dict[str, list[object]] = {
        "digests": [*halves[::2]],
        "labels": [(code & label_bits) - 1 if code & label_bits else None for code in codes],
        "stable": [code >= top for code in codes],
    }
    return columns | _scores_in(body, places) if flags & SCORED else columns


def _scores_in(body: bytes, places: _Places) -> dict[str, list[object]]:
    """Return what an entry says of the scores of a group whose form was checked."""
    count, begin = places.answer_count, places.scores
    precisions, bins = _halves(struct.unpack_from(f">{2 * count}H", body, begin))
    shifted, units = _halves(body[begin + 4 * count : begin + _SCORE_BYTES * count])
    if max(shifted) > 1 or min(precisions) == 0:
        raise LedgerCorruptError(_MALFORMED)
    return {
        "precisions": [*precisions],
        "bins": [None if number == 0 else number - 1 for number in bins],
        "shifted": [flag == 1 for flag in shifted],
        "units": [*units],
    }


def _halves(numbers: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = len(numbers) // 2
    return numbers[:middle], numbers[middle:]


def answer_in(body: bytes, first: int, last: int, number: int) -> tuple[bytes, RecordedAnswer]:
    """Return one answer of a group by its number, with the digest of its vector.

    Raises:
        LedgerCorruptError: the body is not that of a group with this answer.

    """
    at, count = number - first, last - first + 1
    if not 0 <= at < count:
        raise LedgerCorruptError(_MALFORMED)
    begin = _HEADER_BYTES + _DIGEST_BYTES * at
    digest = body[begin : begin + _DIGEST_BYTES]
    labels = _HEADER_BYTES + _DIGEST_BYTES * count
    vectors = labels + 2 * count
    if body[:_HEADER_BYTES] == _PLAIN_HEADERS.get(count) and len(body) >= vectors:
        lengths = body[labels + count : vectors]
        alike = lengths[0]  # as in most groups, which saves the sum
        length = alike * count if lengths.count(alike) == count else sum(lengths)
        if len(body) == vectors + length:
            return digest, _plain_answer(number, body[labels + at])
    return digest, _answer(body, _places_in(body, first, last), at, number)


def _digests(body: bytes, count: int) -> list[bytes]:
    begins = range(_HEADER_BYTES, _HEADER_BYTES + _DIGEST_BYTES * count, _DIGEST_BYTES)
    return [body[begin : begin + _DIGEST_BYTES] for begin in begins]


def _parts(body: bytes, begin: int, lengths: Sequence[int]) -> list[bytes]:
    ends = accumulate(lengths, initial=begin)
    begin = next(ends)
    return [body[begin : (begin := end)] for end in ends]


def _places_in(body: bytes, first: int, last: int) -> _Places:
    """Check the form and the length of a body, and return where its parts begin."""
    count = last - first + 1
    try:
        version, flags, held = body[:_HEADER_BYTES]
        is_known = version == VERSION and flags | _FLAGS == _FLAGS
        if not is_known or held != count or not 0 < count <= ANSWERS_MAX:
            raise LedgerCorruptError(_MALFORMED)
        labels = _HEADER_BYTES + _DIGEST_BYTES * count
        scores = labels + count * (4 if flags & WIDE else 1)
        begin = scores + (_SCORE_BYTES * count if flags & SCORED else 0)
        qualifier_lengths: tuple[int, ...] = ()
        qualifiers = begin
        if flags & QUALIFIED:
            qualifier_lengths = struct.unpack_from(f">{count}H", body, begin)
            qualifiers = begin + _LENGTH_BYTES * count
            begin = qualifiers + sum(qualifier_lengths)
        lengths: Sequence[int]
        if flags & LONG:
            lengths = struct.unpack_from(f">{count}L", body, begin)
            begin += 4 * count
        else:
            lengths = body[begin : begin + count]
            begin += count
    except (struct.error, ValueError):
        raise LedgerCorruptError(_MALFORMED) from None
    if begin + sum(lengths) != len(body):
        raise LedgerCorruptError(_MALFORMED)
    return _Places(count, flags, labels, scores, qualifiers, qualifier_lengths, begin, lengths)


def _plain_answer(number: int, code: int) -> RecordedAnswer:
    """Return an answer without a score, by the byte of its label."""
    label = (code & 0x7F) - 1
    return RecordedAnswer(number, None if label < 0 else label, code > 0x7F)  # noqa: PLR2004 -- its bits


def _answer(body: bytes, places: _Places, at: int, number: int) -> RecordedAnswer:
    """Return the answer at a place of a group whose form was checked."""
    if places.flags & WIDE:
        begin = places.labels + 4 * at
        code, top = int.from_bytes(body[begin : begin + 4], "big"), 1 << _LABEL_BITS[1]
    else:
        code, top = body[places.labels + at], 1 << _LABEL_BITS[0]
    stable = code >= top
    label = code - top - 1 if stable else code - 1
    told = None if label < 0 else label
    if not places.flags & SCORED:
        return RecordedAnswer(number, told, stable)
    count, begin = places.answer_count, places.scores + 2 * at
    precision = int.from_bytes(body[begin : begin + 2], "big")
    begin += 2 * count
    released = int.from_bytes(body[begin : begin + 2], "big") - 1
    shifted, units = body[places.scores + 4 * count + at], body[places.scores + 5 * count + at]
    if shifted > 1 or precision == 0:
        raise LedgerCorruptError(_MALFORMED)
    bin_index = None if released < 0 else released
    return RecordedAnswer(number, told, stable, precision, bin_index, shifted == 1, units)
