"""Short bodies: what they leave out comes back from groups, and no other text is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.database.answer_groups import columns_in, packed_groups
from app.ledger.entries.chain import INTEGER_MAX, event_body
from app.ledger.entries.digests import public_digests
from app.ledger.entries.entry_kinds import AnswersReleased, AnswersReleased2, ScoresReleased
from app.ledger.entries.short_bodies import ShortBody, read_short_body, short_body, whole_body
from app.ledger.ledger import RecordedAnswer

if TYPE_CHECKING:
    from random import Random

LABELS, GENERATIONS, SCORES = (
    (event_type.KIND, event_type.VERSION)
    for event_type in (AnswersReleased, AnswersReleased2, ScoresReleased)
)
SHORT = '{"answers":3,"first_query_id":1}'
WITH_ACTIVE = '{"active":2,"answers":3,"first_query_id":1}'
ANSWERS_MAX = 150


@st.composite
def answers(draw: st.DrawFn) -> list[RecordedAnswer]:
    """Draw the answers of an entry, all with scores or none."""
    first, count = (
        draw(st.integers(1, INTEGER_MAX - ANSWERS_MAX)),
        draw(st.integers(1, ANSWERS_MAX)),
    )
    is_scored = draw(st.booleans())
    labels = st.none() | st.sampled_from([0, 1, 126, 127, 70_000, 2**31 - 3])
    scores = st.tuples(
        st.integers(2, 1000), st.none() | st.integers(0, 999), st.booleans(), st.integers(0, 2)
    )
    return [
        RecordedAnswer(
            number, draw(labels), draw(st.booleans()), *(draw(scores) if is_scored else ())
        )
        for number in range(first, first + count)
    ]


def event_of(
    given_answers: list[RecordedAnswer], digests: list[bytes], active: int | None
) -> AnswersReleased | ScoresReleased:
    """Return the event that an entry of these answers records."""
    fields: dict[str, Any] = {
        "first_query_id": given_answers[0].query_id,
        "digests": public_digests(digests),
        "labels": [each.label for each in given_answers],
        "stable": [each.stable for each in given_answers],
    }
    if given_answers[0].precision is not None:
        scores: dict[str, Any] = {
            "precisions": [each.precision for each in given_answers],
            "bins": [each.bin_index for each in given_answers],
            "shifted": [each.bin_shifted for each in given_answers],
            "units": [each.units for each in given_answers],
        }
        return ScoresReleased(**fields, **scores)
    if active is None:
        return AnswersReleased(**fields)
    return AnswersReleased2(**fields, active=active)


@given(answers(), st.randoms(use_true_random=False), st.none() | st.integers(1, INTEGER_MAX))
def test_a_whole_body_is_made_again_to_the_byte(
    recorded: list[RecordedAnswer], random: Random, active: int | None
) -> None:
    """The short body and the groups of any answers give the canonical text of their entry."""
    digests = [random.randbytes(32) for _ in recorded]
    event = event_of(recorded, digests, active)
    stored = short_body(event)
    short = read_short_body(event.KIND, event.VERSION, stored)
    assert short is not None
    assert (short.answers, short.first_query_id) == (len(recorded), recorded[0].query_id)
    columns: dict[str, list[object]] = {}
    first = recorded[0].query_id
    vectors = [bytes(number % 300) for number in range(len(recorded))]
    begin = 0
    for end, body in packed_groups(digests, vectors, recorded, [b""] * len(recorded)):
        for name, values in columns_in(bytes(body), first + begin, first + end - 1).items():
            columns.setdefault(name, []).extend(values)
        begin = end
    assert whole_body(short, columns) == event_body(event)
    assert len(stored) < 80


@pytest.mark.parametrize(
    ("kind", "body", "active"),
    [(LABELS, SHORT, None), (SCORES, SHORT, None), (GENERATIONS, WITH_ACTIVE, 2)],
)
def test_each_kind_has_its_form(kind: tuple[str, int], body: str, active: int | None) -> None:
    """Of a release with generations a short body also says which of them voted."""
    assert read_short_body(*kind, body) == ShortBody(3, 1, active)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (LABELS, WITH_ACTIVE),
        (SCORES, WITH_ACTIVE),
        (GENERATIONS, SHORT),
        (("VectorsAsked", 1), SHORT),
        (("AnswersReleased", 3), SHORT),
        *(
            (LABELS, body)
            for body in (
                "",
                "{}",
                "null",
                '{"answers":3}',
                '{"first_query_id":1}',
                '{"first_query_id":1,"answers":3}',
                '{"answers":3, "first_query_id":1}',
                '{"answers":3,"first_query_id":1} ',
                '{"answers":0,"first_query_id":1}',
                '{"answers":3,"first_query_id":0}',
                '{"answers":-3,"first_query_id":1}',
                '{"answers":3.0,"first_query_id":1}',
                '{"answers":"3","first_query_id":1}',
                '{"answers":true,"first_query_id":1}',
                '{"answers":3,"answers":3,"first_query_id":1}',
                '{"answers":9007199254740992,"first_query_id":1}',
                '{"answers":3,"first_query_id":1,"stable":[]}',
                '{"active":null,"answers":3,"first_query_id":1}',
                '{"answers":3,"first_query_id":1,"x":"\ud800"}',
            )
        ),
    ],
)
def test_no_other_text_is_a_short_body(kind: tuple[str, int], body: str) -> None:
    """Not one with another key, another order or other numbers, nor of another kind of entry."""
    assert read_short_body(*kind, body) is None
