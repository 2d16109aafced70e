"""Answers of groups as rows of their own, to be changed by SQL, and as groups again."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from app.ledger.database.answer_groups import ANSWERS_MAX, pack, unpack
from app.ledger.ledger import RecordedAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

READ = "SELECT release_number, last_query_id, first_query_id, sequence, body FROM answer_groups"


class SingleAnswer(NamedTuple):
    """A row of the table ``answers``, in the order of its columns."""

    release_number: int
    query_id: int
    sequence: int
    vector_digest: bytes
    vector: bytes
    label: int | None
    stable: bool
    precision: int | None
    bin_index: int | None
    bin_shifted: bool | None
    units: int | None
    qualifier: bytes | None


Group = tuple[int, int, int, int, bytes]
"""A row of the table ``answer_groups``, in the order of its columns."""


def parted(groups: Iterable[Group]) -> Iterator[SingleAnswer]:
    """Yield each answer of groups as a row of its own."""
    for release_number, last, first, sequence, body in groups:
        for digest, vector, answer, qualifier in unpack(body, first, last):
            yield SingleAnswer(
                release_number,
                answer.query_id,
                sequence,
                digest,
                vector,
                answer.label,
                answer.stable,
                answer.precision,
                answer.bin_index,
                answer.bin_shifted,
                answer.units,
                qualifier,
            )


def gathered(answers: Iterable[SingleAnswer]) -> Iterator[Group]:
    """Yield rows of answers as groups: those of an entry, as long as their numbers follow."""
    ordered = sorted(answers, key=lambda each: each[:2])
    numbered = enumerate(ordered)

    def together(placed: tuple[int, SingleAnswer]) -> tuple[object, ...]:
        place, each = placed
        is_scored = each.precision is not None
        return each.release_number, each.sequence, each.query_id - place, is_scored

    for (release_number, sequence, *_), placed in groupby(numbered, key=together):
        rows = [each for _, each in placed]
        for begin in range(0, len(rows), ANSWERS_MAX):
            some = rows[begin : begin + ANSWERS_MAX]
            body = pack(
                [each.vector_digest for each in some],
                [each.vector for each in some],
                [_answer(each) for each in some],
                [each.qualifier or b"" for each in some],
            )
            last, first = some[-1].query_id, some[0].query_id
            yield release_number, last, first, sequence, bytes(body)  # type: ignore[misc]  # of its key


def _answer(row: SingleAnswer) -> RecordedAnswer:
    shifted = None if row.bin_shifted is None else bool(row.bin_shifted)
    score = (row.precision, row.bin_index, shifted, row.units)
    return RecordedAnswer(row.query_id, row.label, bool(row.stable), *score)
