"""Whatever an event holds, its entry has one text, reads back, and a stranger finds its hash."""

from __future__ import annotations

import importlib.util
import json
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from app.errors import InvariantError
from app.ledger.entries.chain import (
    GENESIS,
    INTEGER_MAX,
    Entry,
    canonical_json,
    next_entry,
    public_entry,
    read_event,
)
from app.ledger.entries.entry_kinds import EVENT_TYPES, LedgerEvent
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from types import ModuleType

LISTS_MAX = 4
# What a text may hold: anything but lone surrogates, which UTF-8 has no bytes for.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def values_of(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0911 -- one line a type
    """Return every value that a field's declared type allows."""
    match kind:
        case inspect.StrType(min_length=None):
            return TEXTS
        case inspect.StrType(min_length=size):
            return st.text("0123456789abcdef", min_size=size or 0, max_size=kind.max_length)
        case inspect.IntType():
            return st.integers(kind.ge or 0, INTEGER_MAX if kind.le is None else kind.le)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType(values=allowed):
            return st.sampled_from(allowed)
        case inspect.UnionType(types=types):
            return st.one_of(*map(values_of, types))
        case inspect.ListType(item_type=item):
            smallest, largest = kind.min_length or 0, kind.max_length or LISTS_MAX
            return st.lists(values_of(item), min_size=smallest, max_size=min(largest, LISTS_MAX))
        case inspect.DictType(value_type=item):
            return st.dictionaries(TEXTS, values_of(item), max_size=LISTS_MAX)
    raise NotImplementedError(kind)


def events_of(event_type: type[LedgerEvent]) -> st.SearchStrategy[LedgerEvent]:
    """Return every event of a kind."""
    info = inspect.type_info(event_type)
    assert isinstance(info, inspect.StructType)
    fields = {field.name: values_of(field.type) for field in info.fields}
    return st.builds(event_type, **fields)


EVENTS = st.one_of(*map(events_of, EVENT_TYPES))


def chain(events: list[LedgerEvent]) -> list[Entry]:
    """Return entries that follow one another, whether or not what they say does."""
    return reduce(
        lambda entries, event: [
            *entries,
            next_entry(entries[-1].head if entries else GENESIS, event),
        ],
        events,
        [],
    )


@pytest.fixture(scope="module")
def stranger() -> ModuleType:
    """Return the program that the ledger's page gives to strangers."""
    path = ROOT / "tests" / "docs" / "verify_exported_ledger.py"
    spec = importlib.util.spec_from_file_location("stranger", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("event_type", EVENT_TYPES, ids=lambda each: each.__name__)
def test_an_event_of_any_kind_reads_back(event_type: type[LedgerEvent]) -> None:
    """Any values that a kind allows are written as one text, from which they are read again."""

    @given(events_of(event_type))
    def reads_back(event: LedgerEvent) -> None:
        (entry,) = chain([event])
        assert read_event(entry) == event
        parsed = json.loads(entry.body)
        assert json.dumps(parsed, sort_keys=True, separators=(",", ":")) == entry.body
        assert entry.body.isascii()

    reads_back()


@given(st.lists(EVENTS, min_size=1, max_size=4))
def test_a_stranger_finds_the_hash_of_any_entry(
    stranger: ModuleType, events: list[LedgerEvent]
) -> None:
    """What GET /ledger gives of an entry, sent as JSON and read again, is all a hash covers."""
    for entry in chain(events):
        received = json.loads(json.dumps(public_entry(entry)))
        assert stranger.entry_hash(received) == entry.hash


@given(EVENTS, st.data())
def test_no_other_text_of_a_body_is_canonical(event: LedgerEvent, data: st.DataObject) -> None:
    """Spaces, another order of keys, or unescaped text is another text, and so another hash."""
    (entry,) = chain([event])
    parsed = json.loads(entry.body)
    keys = data.draw(st.permutations(list(parsed)))
    other = json.dumps(
        {key: parsed[key] for key in keys},
        ensure_ascii=data.draw(st.booleans()),
        separators=data.draw(st.sampled_from([(",", ":"), (", ", ": ")])),
    )
    assert msgspec.json.decode(other) == parsed
    assert canonical_json(msgspec.json.decode(other)) == entry.body


@given(st.sampled_from(EVENT_TYPES), st.floats() | st.integers(min_value=INTEGER_MAX + 1))
def test_a_number_that_readers_print_differently_has_no_text(
    event_type: type[LedgerEvent], number: float
) -> None:
    """A fraction, an infinity or an integer beyond 53 bits is refused before it is hashed."""
    name = event_type.__struct_fields__[0]
    with pytest.raises(InvariantError):
        canonical_json({name: number})
