"""The hash chain of a ledger: an entry's hash covers its contents and the previous hash.

An entry records one event, for example new answers. Its contents are written as canonical JSON,
which gives every document exactly one byte string. Object keys are sorted by code point, there is
no space between tokens, and every character outside ASCII is escaped. Numbers are integers that
every JSON reader can read exactly; a real number is written as a string, since programs print real
numbers in different ways. Python's ``json.dumps(document, sort_keys=True, separators=(",", ":"))``
gives the same text, so anyone can check a hash with the standard library alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.ledger.entries.entry_kinds import EVENT_TYPES, AnswersReleased, LedgerEvent

INTEGER_MAX: Final = 2**53 - 1
"""Largest magnitude of an integer: beyond it some JSON readers round."""

DEPTH_MAX: Final = 64
"""Deepest nesting of a document."""

_PLAIN: Final = frozenset({str, bool, type(None)})
_WITH_INTEGERS: Final = _PLAIN | {int}
_WITH_NOTHING: Final = frozenset({int, type(None)})
_encode_fast = msgspec.json.Encoder(order="sorted").encode
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def canonical_json(document: Mapping[str, object]) -> str:
    """Return the canonical text of a JSON object.

    Args:
        document: mappings with string keys, lists, strings, integers of at most 53 bits, booleans
            and None, nested at most ``DEPTH_MAX`` deep.

    Returns:
        ASCII text.

    Raises:
        InvariantError: the document contains any other value, for example a float.

    """
    _check(document, DEPTH_MAX)
    return _plain_text(document) or _encode(document)


def _plain_text(checked: Mapping[str, object] | LedgerEvent) -> str | None:
    """Return the canonical text of what is in ASCII and needs no escape; None of the rest."""
    try:
        text = _encode_fast(checked)
        return None if b"\\" in text or b"\x7f" in text else text.decode("ascii")
    except UnicodeError:
        return None


def _check(value: object, depth_left: int) -> None:
    if type(value) in _PLAIN or isinstance(value, str):
        return
    if isinstance(value, int):
        invariant(abs(value) <= INTEGER_MAX, "a ledger integer has at most 53 bits")
        return
    invariant(depth_left > 0, "a ledger document is nested too deeply")
    if isinstance(value, list | tuple):
        _check_items(value, depth_left - 1)
        return
    if not isinstance(value, Mapping):
        raise InvariantError("a ledger document holds no floats and no objects")
    for key, item in value.items():
        invariant(isinstance(key, str), "a ledger document has string keys")
        _check(item, depth_left - 1)


def _check_items(items: Sequence[object], depth_left: int) -> None:
    """Check a list; those of an entry of answers by their kinds of item, not one by one."""
    kinds = set(map(type, items))
    if kinds <= _PLAIN:
        return
    if kinds <= _WITH_INTEGERS:
        integers = [item for item in items if type(item) is int]
        items = (max(integers), min(integers))
    for item in items:
        _check(item, depth_left)


DOMAIN_TAG: Final = "conclave-ledger-entry-1"
"""Begins every hashed text, so that no other use of SHA-256 can stand in for one."""

FIRST_RELEASE: Final = 1
"""Number of the release that was opened first in a database."""

GENESIS_HASH: Final = "0" * 64
"""What stands in for the hash before the first entry."""


class Head(msgspec.Struct, frozen=True):
    """The number and hash of a ledger's newest entry; number 0 for an empty ledger."""

    sequence: int
    hash: str


GENESIS: Final = Head(0, GENESIS_HASH)


class Entry(msgspec.Struct, frozen=True):
    """A ledger entry as stored: its body is canonical JSON text."""

    sequence: int
    kind: str
    version: int
    body: str
    previous_hash: str
    hash: str

    @property
    def head(self) -> Head:
        """The number and hash of this entry."""
        return Head(self.sequence, self.hash)


_DECODERS: Final = {
    (event_type.KIND, event_type.VERSION): msgspec.json.Decoder(event_type, strict=True)
    for event_type in EVENT_TYPES
}


def entry_hash(*, previous_hash: str, sequence: int, kind: str, version: int, body: str) -> str:
    """Return the hash of a ledger entry, 64 hexadecimal characters.

    It is the SHA-256 hash of three lines: the domain tag (a fixed text), the previous hash, and the
    canonical JSON of ``body``, ``kind``, ``sequence`` and ``version``.
    """
    text = (
        f"{DOMAIN_TAG}\n{previous_hash}\n"
        f'{{"body":{body},"kind":"{kind}","sequence":{sequence},"version":{version}}}'
    )
    return hashlib.sha256(text.encode()).hexdigest()


def computed_hash(entry: Entry) -> str:
    """Return the hash that a ledger entry should have, given the previous hash that it names."""
    return entry_hash(
        previous_hash=entry.previous_hash,
        sequence=entry.sequence,
        kind=entry.kind,
        version=entry.version,
        body=entry.body,
    )


def next_entry(head: Head, event: LedgerEvent) -> Entry:
    """Return the ledger entry that records ``event`` after the newest entry ``head``."""
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
    """Return the canonical JSON text of an event's public fields."""
    if type(event) is AnswersReleased and _are_checked(event):
        text = _plain_text(event)
        if text is not None:
            return text
    return canonical_json(msgspec.structs.asdict(event))


def _are_checked(event: AnswersReleased) -> bool:
    """Return whether nothing in the commonest kind of entry needs a closer look."""
    types = set(map(type, event.digests)), set(map(type, event.stable))
    is_typed = types == ({str}, {bool}) and type(event.first_query_id) is int
    if not is_typed or not _WITH_NOTHING.issuperset(map(type, event.labels)):
        return False
    labels = {0, *filter(None, event.labels)}  # at most one a class, whatever the answers
    return max(event.first_query_id, *labels) <= INTEGER_MAX and min(labels) >= 0


def read_event(entry: Entry) -> LedgerEvent:
    """Return the event that a ledger entry records.

    Raises:
        LedgerCorruptError: the kind or version is unknown, or the body does not fit its kind.

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
    """Return a ledger entry as ``GET /ledger`` shows it: the body is a JSON object."""
    return {**msgspec.structs.asdict(entry), "body": msgspec.json.decode(entry.body)}
