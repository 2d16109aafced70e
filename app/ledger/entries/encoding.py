"""Canonical JSON: the one byte string that a document has.

Keys are sorted by code point, nothing is put between tokens, everything
outside ASCII is escaped.  Numbers are integers that every JSON reader holds
exactly; a real number is written as a string, since its text would otherwise
depend on who prints it.  Python's ``json.dumps(document, sort_keys=True,
separators=(",", ":"))`` gives the same text, which is what lets a stranger
check a hash with the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from app.errors import InvariantError, invariant

INTEGER_MAX: Final = 2**53 - 1
"""Largest magnitude of an integer: beyond it some JSON readers round."""

DEPTH_MAX: Final = 64
"""Deepest nesting of a document."""

_PLAIN: Final = frozenset({str, bool, type(None)})
_WITH_INTEGERS: Final = _PLAIN | {int}
_encode_fast = msgspec.json.Encoder(order="sorted").encode
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
).encode


def canonical_json(document: Mapping[str, object]) -> str:
    """Return the canonical text of a JSON object.

    Args:
        document: mappings with string keys, lists, strings, integers of
            at most 53 bits, booleans and None, nested at most ``DEPTH_MAX``.

    Returns:
        ASCII text.

    Raises:
        InvariantError: the document holds anything else, a float above all.

    """
    _check(document, DEPTH_MAX)
    try:
        text = _encode_fast(document)
        # The two write alike what is in ASCII and needs no escape, as answers do.
        if b"\\" not in text and b"\x7f" not in text:
            return text.decode("ascii")
    except UnicodeError:
        pass
    return _encode(document)


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
