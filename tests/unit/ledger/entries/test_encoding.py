"""Canonical JSON is one text for one document, and anyone's JSON library gives it."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvariantError
from app.ledger.entries.chain import DEPTH_MAX, INTEGER_MAX, canonical_json, event_body
from app.ledger.entries.entry_kinds import AnswersReleased

SCALARS = st.none() | st.booleans() | st.integers(-INTEGER_MAX, INTEGER_MAX) | st.text(max_size=20)
DOCUMENTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        ),
        max_leaves=10,
    ),
    max_size=4,
)


@given(DOCUMENTS)
def test_text_reads_back_as_the_document(document: dict[str, object]) -> None:
    """A document survives its canonical text."""
    assert json.loads(canonical_json(document)) == document


@given(DOCUMENTS)
def test_text_is_what_the_standard_library_writes(document: dict[str, object]) -> None:
    """The documented call of the standard library gives the same bytes."""
    expected = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert canonical_json(document) == expected
    assert canonical_json(document).isascii()


@pytest.mark.parametrize(
    "character", [*map(chr, range(0x20)), '"', "\\", "/", "\x7f", "é", "\ud800"]
)
def test_escapes_are_those_of_the_standard_library(character: str) -> None:
    """A character that two writers of JSON may escape differently is escaped in one way."""
    document = {"kind": f"a{character}z", f"{character}": [character, 1, None]}
    expected = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert canonical_json(document) == expected


def test_text_does_not_depend_on_the_order_of_keys() -> None:
    """Keys are sorted at every level."""
    assert canonical_json({"b": {"z": 1, "a": 2}, "a": []}) == '{"a":[],"b":{"a":2,"z":1}}'


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"epsilon": 0.5}, id="a float"),
        pytest.param({"list": [[float("nan")]]}, id="a float inside"),
        pytest.param({"count": INTEGER_MAX + 1}, id="an integer that some readers round"),
        pytest.param({"list": [0, None, INTEGER_MAX + 1, 1]}, id="such an integer in a list"),
        pytest.param({"list": [0, -INTEGER_MAX - 1]}, id="a negative one in a list"),
        pytest.param({"list": [True, 0, 0.5]}, id="a float in a list"),
        pytest.param({"digest": b"bytes"}, id="bytes"),
        pytest.param({"set": {1}}, id="a set"),
        pytest.param({1: "number"}, id="a key that is no string"),
    ],
)
def test_anything_that_is_written_in_two_ways_is_refused(document: dict[str, object]) -> None:
    """A document that another reader could write differently has no canonical text."""
    with pytest.raises(InvariantError):
        canonical_json(document)


def test_nesting_has_a_limit() -> None:
    """A document nested past the limit is refused before the stack is used up."""
    document: dict[str, object] = {}
    for _ in range(DEPTH_MAX + 1):
        document = {"inner": document}
    with pytest.raises(InvariantError, match="nested too deeply"):
        canonical_json(document)


@given(
    st.integers(1, INTEGER_MAX),
    st.lists(st.tuples(st.text(max_size=8), st.none() | st.integers(0, 300), st.booleans())),
)
def test_entries_of_answers_have_the_canonical_text(
    first: int, answers: list[tuple[str, int | None, bool]]
) -> None:
    """The short way of the commonest kind writes what the long one does, escapes included."""
    event = AnswersReleased(
        first_query_id=first,
        digests=[digest for digest, _, _ in answers],
        labels=[label for _, label, _ in answers],
        stable=[is_stable for _, _, is_stable in answers],
    )
    assert event_body(event) == canonical_json(msgspec.structs.asdict(event))


@pytest.mark.parametrize(
    "wrong",
    [
        {"labels": [0.5]},
        {"stable": [1.0]},
        {"digests": [object()]},
        {"labels": [INTEGER_MAX + 1]},
        {"first_query_id": INTEGER_MAX + 1},
    ],
)
def test_entries_of_answers_hold_no_floats_and_no_large_integers(wrong: dict[str, object]) -> None:
    """What the long way refuses, the short one does not write."""
    fields = {"first_query_id": 1, "digests": ["ab"], "labels": [1], "stable": [True]} | wrong
    with pytest.raises(InvariantError):
        event_body(AnswersReleased(**fields))  # type: ignore[arg-type]  # as it must not be
