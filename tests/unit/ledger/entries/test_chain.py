"""An entry's hash covers its contents and the hash before it."""

from __future__ import annotations

import hashlib

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries.chain import (
    GENESIS,
    Entry,
    entry_hash,
    next_entry,
    public_entry,
    read_event,
)
from app.ledger.entries.entry_kinds import EVENT_TYPES, ReleaseHalted, ShareCharged
from tests.builders.ledger.releases import opened, shares

HALT = ReleaseHalted(reason="é")


def test_hash_is_the_documented_one() -> None:
    """The hash is SHA-256 over the tag, the previous hash and the canonical entry."""
    text = (
        "conclave-ledger-entry-1\n" + "0" * 64 + "\n"
        r'{"body":{"reason":"\u00e9"},"kind":"ReleaseHalted","sequence":1,"version":1}'
    )
    assert next_entry(GENESIS, HALT).hash == hashlib.sha256(text.encode()).hexdigest()


def test_every_field_enters_the_hash() -> None:
    """No two entries that differ in one field share a hash."""
    fields: dict[str, str | int] = {
        "previous_hash": GENESIS.hash,
        "sequence": 1,
        "kind": "Kind",
        "version": 1,
        "body": "{}",
    }
    changes: list[dict[str, str | int]] = [
        {},
        {"previous_hash": "1" * 64},
        {"sequence": 2},
        {"kind": "Kinds"},
        {"version": 2},
        {"body": "[]"},
    ]
    hashes = {entry_hash(**{**fields, **change}) for change in changes}  # type: ignore[arg-type]  # -- each key has its type
    assert len(hashes) == len(changes)


def test_entries_follow_one_another() -> None:
    """Each entry carries the number after and the hash of the one before."""
    first = next_entry(GENESIS, opened())
    second = next_entry(first.head, shares()[0])
    assert (second.sequence, second.previous_hash) == (2, first.hash)


@pytest.mark.parametrize("event", [opened(), *shares()[1:], HALT], ids=lambda event: event.KIND)
def test_event_survives_its_entry(event: ShareCharged) -> None:
    """An event reads back from its entry as it was."""
    assert read_event(next_entry(GENESIS, event)) == event


@pytest.mark.parametrize("change", [{"kind": "ShareCharged2"}, {"version": 2}, {"version": 0}])
def test_unknown_kinds_and_versions_stop_the_reader(change: dict[str, str]) -> None:
    """What this version does not know is not passed over."""
    entry = replace(next_entry(GENESIS, HALT), **change)
    with pytest.raises(LedgerCorruptError, match="entry 1 is of an unknown kind"):
        read_event(entry)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"reason":1}',
        '{"reason":"x","further":1}',
        '{"reason":"x"',
        '{"reason":"\ud800"}',
    ],
)
def test_body_that_does_not_fit_its_kind_is_refused(body: str) -> None:
    """A body with another shape, or none, names its entry."""
    entry = Entry(7, "ReleaseHalted", 1, body, GENESIS.hash, GENESIS.hash)
    with pytest.raises(LedgerCorruptError, match="entry 7 has a body that does not fit"):
        read_event(entry)


def test_public_entry_has_its_body_as_an_object() -> None:
    """What leaves is the stored entry, with the body parsed."""
    entry = next_entry(GENESIS, HALT)
    assert public_entry(entry) == {
        "sequence": 1,
        "kind": "ReleaseHalted",
        "version": 1,
        "body": {"reason": "é"},
        "previous_hash": GENESIS.hash,
        "hash": entry.hash,
    }


def test_kinds_and_versions_are_each_used_once() -> None:
    """No two event types share a kind and version, which the class's name says."""
    names = [(event_type.KIND, event_type.VERSION) for event_type in EVENT_TYPES]
    assert len(set(names)) == len(names)
    for event_type, (kind, version) in zip(EVENT_TYPES, names, strict=True):
        assert event_type.__name__ == (kind if version == 1 else f"{kind}{version}")
