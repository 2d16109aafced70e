"""The levels and blocks of the index of answers, and the rule that moves items between levels.

The digest of an answer is the keyed hash of its query's vector (or public cell). A key is the first
``PREFIX_BYTES`` bytes of a digest. An item of the index is a key with the answer's number. Each
item is in exactly one place: in the list of newest items, or in one block of one level. The body of
a block is the bytes of its items, sorted. Level L has ``FAN_OUT ** L`` blocks, one for each value
of the digest's first ``4 L`` bits. So block b of a level covers the same digests as ``FAN_OUT``
blocks of the next level, of which the first has the number ``FAN_OUT * b``.

When the list of newest items has ``NEWEST_MAX`` items, they are moved to the blocks of level 1. At
the same time one block of each level, in turn, is moved to the next level if it is at least half
full. So each commit moves a bounded number of items, however long the ledger is. The places of all
items follow from the number of answers and their digests, which ledger entries show, and reveal
nothing private.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from app.errors import LedgerCorruptError, invariant
from app.ledger.answer_index.key_map import KeyMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

NEWEST_MAX: Final = 512
"""Keys of the newest part, from which on they go to the blocks of level 1."""

FAN_OUT: Final = 16
"""Blocks of the next level for each block of a level."""

LEVELS_MAX: Final = 8
"""Levels: as many as the first four bytes of a digest tell apart."""

IMAGE_LEVELS: Final = 3
"""Levels that the writer keeps in memory too, some million keys of 14 bytes."""

START_BITS: Final = {1: 18, 2: 20, 3: 24}
"""First bits of keys that are noted for each level in memory: in 18 MB at most.

A new key begins like one of two million recorded ones in an eighth of all cases.
"""

MAPPED_LEVELS: Final = 6
"""Levels up to which it is noted which blocks are stored, in 16 MB at most for level 6.

There are no blocks of further levels before some thousand million answers.
"""

PREFIX_BYTES: Final = 8
NUMBER_BYTES: Final = 6
ITEM_BYTES: Final = PREFIX_BYTES + NUMBER_BYTES
_PLACE_BYTES: Final = LEVELS_MAX // 2
_BITS: Final = 4
_KEY_BITS: Final = 8 * PREFIX_BYTES
_STRAYING_BYTES: Final = 20 * ITEM_BYTES
"""How far before its expected place in a block a key is sought: of 200 keys most stray by 7."""

_WHOLE_ITEM: Final = np.dtype(f"V{ITEM_BYTES}")
_ITEM: Final = np.dtype([("key", ">u8"), ("number", f"V{NUMBER_BYTES}")])
_PREFIX_OF: Final = itemgetter(slice(PREFIX_BYTES))


class Blocks(Protocol):
    """The interface for reading stored blocks of the index of answers."""

    def read(self, level: int, first: int, count: int) -> Mapping[int, bytes]:
        """Return a level's stored blocks with numbers from ``first`` to ``first + count - 1``."""


class NoBlocks:
    """No stored blocks: used to update the copy in memory after another server's write."""

    def read(self, level: int, first: int, count: int) -> Mapping[int, bytes]:
        """Return an empty mapping, since there are no blocks."""
        del level, first, count
        return {}


def item_of(digest: bytes, number: int) -> bytes:
    """Return the index item (``ITEM_BYTES``) of an answer: its key, and its number.

    Raises:
        LedgerCorruptError: the number is negative, or longer than ``NUMBER_BYTES``.

    """
    try:
        return digest[:PREFIX_BYTES] + number.to_bytes(NUMBER_BYTES, "big")
    except OverflowError:
        raise LedgerCorruptError("a key of the newest answers has no answer's number") from None


def block_of(digest: bytes, level: int) -> int:
    """Return the number of the block of a level to which an answer's digest belongs."""
    place = int.from_bytes(digest[:_PLACE_BYTES], "big")
    return place >> _BITS * (LEVELS_MAX - level)


def items_in(body: bytes) -> list[bytes]:
    """Return every index item in the body of a block, in order.

    Raises:
        LedgerCorruptError: the block does not hold whole items.

    """
    _check_whole(body)
    return [body[at : at + ITEM_BYTES] for at in range(0, len(body), ITEM_BYTES)]


def number_of_item(item: bytes) -> int:
    """Return the number of the answer that an index item stands for."""
    return int.from_bytes(item[PREFIX_BYTES:], "big")


def numbers_in(body: bytes, digest: bytes) -> list[int]:
    """Return the answer numbers of a block's items whose key is the start of ``digest``.

    Raises:
        LedgerCorruptError: the block does not hold whole items.

    """
    _check_whole(body)
    return _numbers_of(body, digest[:PREFIX_BYTES])


def _numbers_of(body: bytes, prefix: bytes) -> list[int]:
    """Return the answer numbers of a block's items with a key, which follow each other."""
    at = body.find(prefix)
    while at > 0 and at % ITEM_BYTES:  # the bytes are there, and are not the key of an item
        at = body.find(prefix, at + 1)
    found: list[int] = []
    while at >= 0 and body[at : at + PREFIX_BYTES] == prefix:
        found.append(int.from_bytes(body[at + PREFIX_BYTES : at + ITEM_BYTES], "big"))
        at += ITEM_BYTES
    return found


def parted(body: bytes, level: int) -> dict[int, bytes]:
    """Divide index items among the blocks of a level; return each block's body, by number."""
    keys = _keys_of(body)
    order = np.argsort(keys, kind="stable")
    blocks = keys.take(order) >> np.uint64(_KEY_BITS - _BITS * level)
    firsts = np.append(0, np.flatnonzero(blocks[1:] != blocks[:-1]) + 1)
    moved = np.frombuffer(body, _WHOLE_ITEM).take(order).tobytes()
    begins = (firsts * ITEM_BYTES).tolist()
    ends = [*begins[1:], len(body)]
    numbers = blocks[firsts].tolist()
    return {
        number: moved[begin:end] for number, begin, end in zip(numbers, begins, ends, strict=True)
    }


def _keys_of(body: bytes) -> NDArray[np.uint64]:
    """Return the key of each of n items as a whole number, shape (n,)."""
    return np.frombuffer(body, _ITEM)["key"].astype(np.uint64)


def _pairs_of(body: bytes) -> tuple[list[int], list[int]]:
    """Return the keys and the numbers of every item, as whole numbers."""
    items = np.frombuffer(body, np.uint8).reshape(-1, ITEM_BYTES)
    numbers = np.zeros((len(items), 8), np.uint8)
    numbers[:, 8 - NUMBER_BYTES :] = items[:, PREFIX_BYTES:]
    return _keys_of(body).tolist(), numbers.view(">u8").ravel().tolist()


def _prefixes_of(digests: Sequence[bytes]) -> bytes:
    """Return the keys of digests as bytes, one after the other."""
    return b"".join(map(_PREFIX_OF, digests))


def _keys_in(prefixes: bytes) -> NDArray[np.uint64]:
    """Return n keys, given as bytes, as whole numbers, shape (n,)."""
    return np.frombuffer(prefixes, ">u8").astype(np.uint64)


def _items_of(prefixes: bytes, first: int) -> bytes:
    """Return the items of keys, given as bytes, whose answers are numbered from ``first`` on."""
    keys = np.frombuffer(prefixes, np.uint8).reshape(-1, PREFIX_BYTES)
    items = np.empty((len(keys), ITEM_BYTES), np.uint8)
    numbers = np.arange(first, first + len(keys), dtype=">u8").view(np.uint8).reshape(-1, 8)
    items[:, :PREFIX_BYTES] = keys
    items[:, PREFIX_BYTES:] = numbers[:, 8 - NUMBER_BYTES :]
    return items.tobytes()


def _check_whole(body: bytes) -> None:
    if len(body) % ITEM_BYTES:
        raise LedgerCorruptError("a block of keys does not hold whole keys")


class KeyImage:
    """The in-memory copy of the index's newest items, and of its first levels of blocks.

    The copy covers the answers up to a certain number, ``answered``. If the database has later
    answers, the caller adds them in the order of their entries, or reads the whole copy again.

    Attributes:
        answered: the number of the newest answer in the copy.
        earlier: the number of answers that were recorded before this index existed, and are not in
            it; they are the first answers of the release.
        depth: the largest number of a level that has a block; 0 if none has.

    """

    def __init__(
        self,
        *,
        answered: int,
        earlier: int,
        depth: int,
        newest: bytes = b"",
        bodies: Mapping[tuple[int, int], bytes] | None = None,
        deep: Iterable[tuple[int, Sequence[int]]] | None = None,
    ) -> None:
        """Take over the stored newest items and first levels of the index.

        Args:
            answered: the number of the newest answer.
            earlier: the number of answers of before the index.
            depth: the largest number of a level that has a block.
            newest: the items that are in no block.
            bodies: the blocks of the levels up to ``IMAGE_LEVELS``, by level and number.
            deep: numbers of stored blocks of each level after ``IMAGE_LEVELS``, with the level; up
                to ``MAPPED_LEVELS`` every block; None if there is no such level.

        """
        invariant(deep is not None or depth <= IMAGE_LEVELS, "deep blocks are told")
        self.answered = answered
        self.earlier = earlier
        self.depth = depth
        self._newest = newest
        self._added = b""  # keys of the answers after the newest items
        self._bodies = dict(bodies or {})
        self._map = KeyMap()
        self._numbers: dict[int, tuple[int, ...] | int] = {}  # of the newest, by key
        together: dict[int, list[bytes]] = {}
        for (level, _), body in self._bodies.items():
            _check_whole(body)
            together.setdefault(level, []).append(body)
        for level, of_level in together.items():
            self._note_keys(level, b"".join(of_level))
        for level, blocks in deep or ():
            self.note_blocks(level, blocks)
        self._learn(*_pairs_of(newest))

    @property
    def is_full(self) -> bool:
        """Whether the newest items are so many that they must be moved to blocks."""
        return self._count_in_no_block() >= NEWEST_MAX

    @property
    def turn(self) -> int:
        """The number of the next turn, in which blocks pass their items on."""
        return (self.answered - self.earlier - self._count_in_no_block()) // NEWEST_MAX

    def _count_in_no_block(self) -> int:
        return len(self._newest) // ITEM_BYTES + len(self._added) // PREFIX_BYTES

    def note_blocks(self, level: int, blocks: Sequence[int]) -> None:
        """Note that blocks of a level that is not in memory are stored."""
        if blocks and level <= MAPPED_LEVELS:
            self._map.add(level, _BITS * level, blocks)

    def noted_blocks(self) -> set[tuple[int, int]]:
        """Return the level and number of every stored block that is noted, and not in memory."""
        levels = range(IMAGE_LEVELS + 1, MAPPED_LEVELS + 1)
        return {(level, block) for level in levels for block in self._map.starts(level)}

    def likeliest(self, digest: bytes) -> int | None:
        """Return the number of the answer that most likely has a key, or None.

        It is an answer in the last level in memory, which has most answers of a long ledger. This
        is the shortest search; :meth:`search_one` finds what it does not.
        """
        level = IMAGE_LEVELS
        prefix = digest[:PREFIX_BYTES]
        key = int.from_bytes(prefix, "big")
        if not self._map.may_have(level, key):
            return None
        body = self._bodies.get((level, key >> _KEY_BITS - _BITS * level), b"")
        # Keys are sorted, and like random numbers: its next bits tell about where this one is.
        share = key >> _KEY_BITS - _BITS * level - 8 & 0xFF
        near = (len(body) * share >> 8) - _STRAYING_BYTES
        at = body.find(prefix, near) if near > 0 else body.find(prefix)
        if at < 0 or at % ITEM_BYTES:
            return None
        return int.from_bytes(body[at + PREFIX_BYTES : at + ITEM_BYTES], "big")

    def search_one(self, digest: bytes) -> tuple[list[int], list[tuple[int, int]]]:
        """Search for the key of one digest, as :meth:`search` does for many.

        Returns:
            The numbers of the answers in memory that have the key, those of the last level first;
            and the level and number of each stored block not in memory that may have it, deepest
            first.

        """
        prefix = digest[:PREFIX_BYTES]
        key = int.from_bytes(prefix, "big")
        found: list[int] = []
        deep: list[tuple[int, int]] = []
        levels = self._map.levels_of(key)
        if self.depth > MAPPED_LEVELS:
            levels = [*range(self.depth, max(IMAGE_LEVELS, MAPPED_LEVELS), -1), *levels]
        for level in levels:
            place = level, key >> _KEY_BITS - _BITS * level
            if level > IMAGE_LEVELS:
                deep.append(place)
            else:
                found += self._in_block(place, prefix)
        if key in self._numbers:
            found += self._known(key)
        return found, deep

    def search(
        self, digests: Sequence[bytes]
    ) -> tuple[list[int], dict[tuple[int, int], list[bytes]]]:
        """Search for the keys of digests.

        Returns:
            The numbers of the answers in memory that have one of the keys; and each stored block
            not in memory that may have some of the keys, by level and number, with those keys.

        """
        found: list[int] = []
        deep: dict[tuple[int, int], list[bytes]] = {}
        keys = _keys_in(_prefixes_of(digests))
        wanted = keys.tolist()
        if not self._numbers.keys().isdisjoint(wanted):
            for key in wanted:
                found += self._known(key)
        for level, key in self._map.places(keys):
            place = level, key >> _KEY_BITS - _BITS * level
            if level > IMAGE_LEVELS:
                deep.setdefault(place, []).append(key.to_bytes(PREFIX_BYTES, "big"))
            else:
                found += self._in_block(place, key.to_bytes(PREFIX_BYTES, "big"))
        for level in range(max(IMAGE_LEVELS, MAPPED_LEVELS) + 1, self.depth + 1):
            for key in wanted:
                place = level, key >> _KEY_BITS - _BITS * level
                deep.setdefault(place, []).append(key.to_bytes(PREFIX_BYTES, "big"))
        return found, deep

    def _known(self, key: int) -> tuple[int, ...]:
        known = self._numbers.get(key, ())
        return (known,) if isinstance(known, int) else known

    def _in_block(self, place: tuple[int, int], prefix: bytes) -> list[int]:
        """Search a block in memory for a key."""
        return _numbers_of(self._bodies.get(place, b""), prefix)

    def _note_keys(self, level: int, body: bytes) -> None:
        """Note the keys of items that come to a level in memory."""
        if body:
            bits = START_BITS[level]
            self._map.add(level, bits, _keys_of(body) >> np.uint64(_KEY_BITS - bits))

    def add(self, digests: Sequence[bytes]) -> None:
        """Add new answers to the newest items; if these are full, they must be moved at once."""
        first, prefixes = self.answered + 1, _prefixes_of(digests)
        self._added += prefixes
        self.answered += len(digests)
        if not self.is_full:  # else they are in blocks before anything is searched
            self._learn(_keys_in(prefixes).tolist(), range(first, first + len(digests)))

    def newest_items(self) -> bytes:
        """Return the items that are in no block yet, in the order of their answers."""
        if self._added:
            first = self.answered + 1 - len(self._added) // PREFIX_BYTES
            self._newest += _items_of(self._added, first)
            self._added = b""
        return self._newest

    def seal(self, blocks: Blocks) -> dict[tuple[int, int], bytes]:
        """Move the newest items to blocks, and return every changed block by level and number.

        Args:
            blocks: the stored blocks of the levels that are not in memory.

        """
        changed = _Changed(self._bodies, blocks)
        first_turn = self.turn
        self._move(changed, self.newest_items(), 1)
        self._newest, self._numbers = b"", {}
        for turn in range(first_turn, self.turn):
            for level in range(1, min(self.depth, LEVELS_MAX - 1) + 1):
                self._pass_on(changed, level, turn % FAN_OUT**level)
        kept = {place: body for place, body in changed.bodies.items() if place[0] <= IMAGE_LEVELS}
        self._bodies.update(kept)
        for level, block in changed.bodies.keys() - kept.keys():
            self.note_blocks(level, [block])
        self.depth = max(self.depth, *(level for level, _ in changed.bodies))
        return changed.bodies

    def _pass_on(self, changed: _Changed, level: int, block: int) -> None:
        """Move the keys of a block to the next level, if it is at least half full."""
        body = changed.read(level, block, 1).get(block, b"")
        if len(body) < NEWEST_MAX // 2 * ITEM_BYTES:
            return
        changed.bodies[level, block] = b""
        if level <= IMAGE_LEVELS:
            self._map.clear(level, block, _BITS * level)
        self._move(changed, body, level + 1)

    def _move(self, changed: _Changed, body: bytes, level: int) -> None:
        """Move the items of one block, or the newest, to the blocks of a level."""
        changed.spread(body, level)
        if level <= IMAGE_LEVELS:
            self._note_keys(level, body)

    def _learn(self, keys: Sequence[int], of: Sequence[int]) -> None:
        """Note the numbers of answers, by their keys."""
        numbers, newly = self._numbers, dict(zip(keys, of, strict=True))
        if len(newly) == len(keys) and numbers.keys().isdisjoint(newly):
            numbers.update(newly)
            return
        for key, number in zip(keys, of, strict=True):  # alike: one in 2^64, or made for it
            numbers[key] = (*self._known(key), number) if key in numbers else number


class _Changed:
    """Blocks that change together, before they are written."""

    def __init__(self, kept: Mapping[tuple[int, int], bytes], blocks: Blocks) -> None:
        self.bodies: dict[tuple[int, int], bytes] = {}
        self._kept = kept
        self._blocks = blocks

    def read(self, level: int, first: int, count: int) -> dict[int, bytes]:
        """Return blocks of a level with the changes made so far."""
        numbers = range(first, first + count)
        if level <= IMAGE_LEVELS:
            found = {number: self._kept.get((level, number), b"") for number in numbers}
        else:
            found = dict(self._blocks.read(level, first, count))
        newly = {number: self.bodies.get((level, number)) for number in numbers}
        return found | {number: body for number, body in newly.items() if body is not None}

    def spread(self, body: bytes, level: int) -> None:
        """Move the items of one block to the blocks of the next level."""
        first = block_of(body, level - 1) * FAN_OUT
        present = self.read(level, first, FAN_OUT)
        for block, part in parted(b"".join((*present.values(), body)), level).items():
            self.bodies[level, block] = part
