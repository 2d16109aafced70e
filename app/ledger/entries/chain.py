"""The hash chain: an entry's hash covers its contents and the hash before it."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from app.errors import LedgerCorruptError
from app.ledger.entries.encoding import canonical_json
from app.ledger.entries.entry_kinds import EVENT_TYPES, LedgerEvent

DOMAIN_TAG: Final = "conclave-ledger-entry-1"
"""Begins every hashed text, so that no other use of SHA-256 can stand in for one."""

GENESIS_HASH: Final = "0" * 64
"""What stands in for the hash before the first entry."""


class Head(msgspec.Struct, frozen=True):
    """Number and hash of the newest entry; sequence 0 for an empty ledger."""

    sequence: int
    hash: str


GENESIS: Final = Head(0, GENESIS_HASH)


class Entry(msgspec.Struct, frozen=True):
    """One entry as it is stored: its body is canonical JSON text."""

    sequence: int
    kind: str
    version: int
    body: str
    previous_hash: str
    hash: str

    @property
    def head(self) -> Head:
        """The head of a ledger that ends here."""
        return Head(self.sequence, self.hash)


_DECODERS: Final = {
    (event_type.KIND, event_type.VERSION): msgspec.json.Decoder(event_type, strict=True)
    for event_type in EVENT_TYPES
}


def entry_hash(*, previous_hash: str, sequence: int, kind: str, version: int, body: str) -> str:
    """Return the hash of an entry, 64 hexadecimal characters.

    SHA-256 over three lines: the domain tag, the previous hash, and the
    canonical JSON of ``body``, ``kind``, ``sequence`` and ``version``.
    """
    text = (
        f"{DOMAIN_TAG}\n{previous_hash}\n"
        f'{{"body":{body},"kind":"{kind}","sequence":{sequence},"version":{version}}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def computed_hash(entry: Entry) -> str:
    """Return the hash that an entry must have after the hash that it says is before it."""
    return entry_hash(
        previous_hash=entry.previous_hash,
        sequence=entry.sequence,
        kind=entry.kind,
        version=entry.version,
        body=entry.body,
    )


def next_entry(head: Head, event: LedgerEvent) -> Entry:
    """Return the entry that records ``event`` after ``head``."""
    sequence = head.sequence + 1
    body = event_body(event)
    hash_after = entry_hash(
        previous_hash=head.hash,
        sequence=sequence,
        kind=event.KIND,
        version=event.VERSION,
        body=body,
    )
    return Entry(sequence, event.KIND, event.VERSION, body, head.hash, hash_after)


def event_body(event: LedgerEvent) -> str:
    """Return the canonical text of an event's public fields."""
    return canonical_json(msgspec.structs.asdict(event))


def read_event(entry: Entry) -> LedgerEvent:
    """Return the event that an entry records.

    Raises:
        LedgerCorruptError: an unknown kind or version, or a body that does
            not fit its kind.

    """
    decoder = _DECODERS.get((entry.kind, entry.version))
    if decoder is None:
        message = f"entry {entry.sequence} is of an unknown kind: {entry.kind} {entry.version}"
        raise LedgerCorruptError(message)
    try:
        return decoder.decode(entry.body)
    except (msgspec.DecodeError, UnicodeEncodeError):
        message = f"entry {entry.sequence} has a body that does not fit its kind, {entry.kind}"
        raise LedgerCorruptError(message) from None


def public_entry(entry: Entry) -> dict[str, object]:
    """Return an entry as ``GET /ledger`` gives it: the body is a JSON object."""
    return {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "version": entry.version,
        "body": msgspec.json.decode(entry.body),
        "previous_hash": entry.previous_hash,
        "hash": entry.hash,
    }
