"""The bytes of a group of answers: what is packed comes back, and nothing else is taken."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvariantError, LedgerCorruptError
from app.ledger.database.answer_groups import (
    ANSWERS_MAX,
    BYTES_MAX,
    LONG,
    QUALIFIED,
    SCORED,
    WIDE,
    answer_in,
    digests_in,
    ends_of_groups,
    pack,
    packed_groups,
    unpack,
)
from app.ledger.ledger import AnswerRow, RecordedAnswer

FIRST = 7
NUMBERS = (0, 1, 126, 127, 254, 70_000, 2**31 - 3)
vectors = st.one_of(st.binary(max_size=12), st.binary(min_size=250, max_size=260))
labels = st.none() | st.sampled_from(NUMBERS)


@st.composite
def groups(draw: st.DrawFn) -> list[AnswerRow]:
    """Draw the answers of a group, all with scores or none."""
    is_scored, count = draw(st.booleans()), draw(st.integers(1, ANSWERS_MAX))
    rows = []
    for number in range(FIRST, FIRST + count):
        answer = RecordedAnswer(number, draw(labels), draw(st.booleans()))
        if is_scored:
            answer = RecordedAnswer(
                number,
                answer.label,
                answer.stable,
                draw(st.integers(2, 1000)),
                draw(st.none() | st.integers(0, 999)),
                draw(st.booleans()),
                draw(st.integers(0, 2)),
            )
        digest = draw(st.binary(min_size=32, max_size=32))
        rows.append(AnswerRow(digest, draw(vectors), answer, draw(st.binary(max_size=5))))
    return rows


@st.composite
def entries(draw: st.DrawFn) -> list[AnswerRow]:
    """Draw the answers of an entry, among them entries whose vectors all have one length."""
    width, is_scored = draw(st.integers(0, 300)), draw(st.booleans())
    lengths = draw(st.sampled_from([st.just(width), st.integers(0, 260)]))
    qualifiers = draw(st.sampled_from([st.just(b""), st.binary(max_size=5)]))
    of_labels = draw(st.sampled_from([st.none() | st.integers(0, 126), labels]))
    rows = []
    for number in range(FIRST, FIRST + draw(st.integers(1, 3 * ANSWERS_MAX))):
        score = (10, draw(st.none() | st.integers(0, 9)), True, 1) if is_scored else ()
        answer = RecordedAnswer(number, draw(of_labels), draw(st.booleans()), *score)
        digest, vector = number.to_bytes(32, "big"), bytes(draw(lengths))
        rows.append(AnswerRow(digest, vector, answer, draw(qualifiers)))
    return rows


def packed(rows: list[AnswerRow]) -> bytes:
    """Return the body of some answers."""
    digests, kept, answers, qualifiers = zip(*rows, strict=True)
    return bytes(pack(digests, kept, answers, qualifiers))


def plain(count: int, *, label: int | None = 0, vector: bytes = b"vector") -> list[AnswerRow]:
    """Return answers with labels, whose digests are made of their numbers."""
    return [
        AnswerRow(number.to_bytes(32, "big"), vector, RecordedAnswer(number, label, stable=True))
        for number in range(FIRST, FIRST + count)
    ]


@settings(max_examples=60, deadline=None)
@given(groups())
def test_what_is_packed_comes_back(rows: list[AnswerRow]) -> None:
    """All answers, their digests, and each answer alone."""
    body, last = packed(rows), FIRST + len(rows) - 1
    assert unpack(body, FIRST, last) == rows
    assert digests_in(body, FIRST, last) == [row.vector_digest for row in rows]
    for row in rows:
        found = answer_in(body, FIRST, last, row.answer.query_id)
        assert found == (row.vector_digest, row.answer)


@settings(max_examples=40, deadline=None)
@given(groups(), st.data())
def test_a_cut_or_longer_body_is_refused(rows: list[AnswerRow], data: st.DataObject) -> None:
    """Whatever is missing at its end, or follows it."""
    body, last = packed(rows), FIRST + len(rows) - 1
    cut = data.draw(st.integers(0, len(body) - 1))
    for changed in (body[:cut], body + b"\x00", body + body):
        with pytest.raises(LedgerCorruptError):
            unpack(changed, FIRST, last)
        with pytest.raises(LedgerCorruptError):
            answer_in(changed, FIRST, last, FIRST)
        with pytest.raises(LedgerCorruptError):
            digests_in(changed, FIRST, last)


@settings(max_examples=40, deadline=None)
@given(groups(), st.data())
def test_a_flipped_length_is_refused(rows: list[AnswerRow], data: st.DataObject) -> None:
    """Any other length of a vector, and any other number of answers."""
    body, last = packed(rows), FIRST + len(rows) - 1
    width = 4 if body[1] & LONG else 1
    lengths = len(body) - sum(len(row.vector) for row in rows) - width * len(rows)
    place = data.draw(st.integers(lengths, lengths + width * len(rows) - 1))
    bit = 1 << data.draw(st.integers(0, 7))
    for at in (place, 2):
        changed = bytearray(body)
        changed[at] ^= bit
        with pytest.raises(LedgerCorruptError):
            unpack(bytes(changed), FIRST, last)
        with pytest.raises(LedgerCorruptError):
            answer_in(bytes(changed), FIRST, last, FIRST)
    for first, end in ((FIRST - 1, last), (FIRST, last + 1), (last + 1, FIRST)):
        with pytest.raises(LedgerCorruptError):
            unpack(body, first, end)
        with pytest.raises(LedgerCorruptError):
            answer_in(body, first, end, FIRST)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        pytest.param(0, 0, id="version 0"),
        pytest.param(0, 2, id="version 2"),
        pytest.param(1, 16, id="unknown flag"),
        pytest.param(1, SCORED, id="scores that are not there"),
        pytest.param(1, QUALIFIED, id="qualifiers that are not there"),
        pytest.param(1, LONG, id="long lengths that are not there"),
        pytest.param(1, WIDE, id="wide labels that are not there"),
        pytest.param(2, 0, id="no answer"),
        pytest.param(2, 65, id="too many answers"),
    ],
)
def test_another_header_is_refused(place: int, value: int) -> None:
    """A form that this version does not know, or that the bytes do not have."""
    body = bytearray(packed(plain(3)))
    body[place] = value
    with pytest.raises(LedgerCorruptError):
        unpack(bytes(body), FIRST, FIRST + 2)
    with pytest.raises(LedgerCorruptError):
        answer_in(bytes(body), FIRST, FIRST + 2, FIRST)


def test_more_answers_than_a_group_takes_are_refused_when_read() -> None:
    """Even where the body has them all."""
    header = bytes((1, 0, ANSWERS_MAX + 1))
    body = header + bytes(34 * (ANSWERS_MAX + 1))
    with pytest.raises(LedgerCorruptError):
        unpack(body, 1, ANSWERS_MAX + 1)
    with pytest.raises(LedgerCorruptError):
        answer_in(body, 1, ANSWERS_MAX + 1, 1)


@pytest.mark.parametrize(("column", "value"), [(0, 0), (4, 2)])
def test_a_score_out_of_range_is_refused(column: int, value: int) -> None:
    """A precision of no bins, and a flag that is none."""
    row = AnswerRow(bytes(32), b"", RecordedAnswer(FIRST, 1, True, 10, 3, False, 0))  # noqa: FBT003 -- its order
    body = bytearray(packed([row]))
    at = 3 + 32 + 1 + column
    body[at : at + 2] = struct.pack(">H", value) if column == 0 else bytes((value, 0))
    with pytest.raises(LedgerCorruptError):
        unpack(bytes(body), FIRST, FIRST)
    with pytest.raises(LedgerCorruptError):
        answer_in(bytes(body), FIRST, FIRST, FIRST)


def test_an_answer_of_another_group_is_refused() -> None:
    """A number before the first or after the last."""
    body = packed(plain(3))
    for number in (FIRST - 1, FIRST + 3):
        with pytest.raises(LedgerCorruptError):
            answer_in(body, FIRST, FIRST + 2, number)


@pytest.mark.parametrize("label", [-1, -7, 2**31 - 1])
def test_a_label_that_is_no_index_is_not_packed(label: int) -> None:
    """It would come back as another."""
    with pytest.raises(InvariantError):
        packed(plain(1, label=label))


def test_columns_that_are_no_group_are_not_packed() -> None:
    """None, too many, columns of other lengths, a short digest, scores beside labels."""
    rows = plain(2)
    digests, kept, answers, qualifiers = zip(*rows, strict=True)
    score = RecordedAnswer(FIRST, 1, True, 10, 3, False, 0)  # noqa: FBT003 -- its order
    for columns in (
        ((), (), (), ()),
        (digests, kept[:1], answers, qualifiers),
        ((digests[0], b"short"), kept, answers, qualifiers),
        (digests, kept, (score, answers[1]), qualifiers),
        tuple(zip(*plain(ANSWERS_MAX + 1), strict=True)),
    ):
        with pytest.raises(InvariantError):
            pack(*columns)


def test_numbers_beyond_the_form_are_not_packed() -> None:
    """A qualifier longer than its length can tell, and a precision of more than two bytes."""
    (row,) = plain(1)
    for changed in (
        row._replace(qualifier=bytes(70_000)),
        row._replace(answer=RecordedAnswer(FIRST, 1, True, 70_000, 3, False, 0)),  # noqa: FBT003 -- its order
        row._replace(answer=RecordedAnswer(FIRST, 1, True, 10, 3, False, 256)),  # noqa: FBT003 -- as above
    ):
        with pytest.raises(ValueError, match=r"malformed|range"):
            packed([changed])


@settings(max_examples=60, deadline=None)
@given(
    kept=st.lists(vectors, min_size=1, max_size=300),
    is_scored=st.booleans(),
    is_qualified=st.booleans(),
)
def test_answers_are_divided_without_gaps(
    *, kept: list[bytes], is_scored: bool, is_qualified: bool
) -> None:
    """Each group has an answer or more, as many as fit, and its body is as short as it says."""
    qualifiers = [b"active" if is_qualified else b""] * len(kept)
    ends = ends_of_groups(kept, qualifiers, is_scored=is_scored)
    begins = [0, *ends[:-1]]
    assert ends[-1] == len(kept)
    score = (10, 3, False, 0) if is_scored else ()
    for begin, end in zip(begins, ends, strict=True):
        assert 0 < end - begin <= ANSWERS_MAX
        answers = [RecordedAnswer(n, 1, True, *score) for n in range(begin, end)]  # noqa: FBT003 -- its order
        body = pack([bytes(32)] * (end - begin), kept[begin:end], answers, qualifiers[begin:end])
        is_short = not body[1] & LONG
        assert len(body) <= BYTES_MAX or end - begin == 1 or not is_short


@settings(max_examples=60, deadline=None)
@given(entries())
def test_the_groups_of_an_entry_are_packed_as_each_alone(rows: list[AnswerRow]) -> None:
    """Whatever is worked out once for all groups changes no byte of one."""
    digests, kept, answers, qualifiers = zip(*rows, strict=True)
    found = packed_groups(digests, kept, answers, qualifiers)
    ends = ends_of_groups(kept, qualifiers, is_scored=answers[0].precision is not None)
    assert [end for end, _ in found] == ends
    for begin, (end, body) in zip([0, *ends[:-1]], found, strict=True):
        assert bytes(body) == packed(rows[begin:end])


def test_a_group_is_as_long_as_it_may_be_whatever_the_lengths_of_vectors() -> None:
    """Vectors of one length are divided by a quotient, others one by one: with the same ends."""
    for length in range(300):
        alike = ends_of_groups([bytes(length)] * 200, [b""] * 200, is_scored=False)
        mixed = ends_of_groups([bytes(length)] * 200 + [b""], [b""] * 201, is_scored=False)
        assert mixed[: len(alike) - 1] == alike[:-1]


def test_an_entry_of_the_usual_size_takes_full_rows() -> None:
    """Vectors of ten bytes: 22 answers a row, and long ones a row each."""
    assert ends_of_groups([bytes(10)] * 64, [b""] * 64, is_scored=False) == [22, 44, 64]
    assert ends_of_groups([bytes(100)], [b""], is_scored=False) == [1]
    assert ends_of_groups([bytes(5000)] * 2, [b""] * 2, is_scored=False) == [1, 2]
