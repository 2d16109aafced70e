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

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from app.errors import LedgerCorruptError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

NEWEST_MAX: Final = 512
"""Keys of the newest part, from which on they go to the blocks of level 1."""

FAN_OUT: Final = 16
"""Blocks of the next level for each block of a level."""

LEVELS_MAX: Final = 8
"""Levels: as many as the first four bytes of a digest tell apart."""

IMAGE_LEVELS: Final = 3
"""Levels that the writer keeps in memory too, some million keys of 14 bytes."""

PREFIX_BYTES: Final = 8
NUMBER_BYTES: Final = 6
ITEM_BYTES: Final = PREFIX_BYTES + NUMBER_BYTES
_PLACE_BYTES: Final = LEVELS_MAX // 2
_BITS: Final = 4


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
    prefix, count = digest[:PREFIX_BYTES], len(body) // ITEM_BYTES
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        at = middle * ITEM_BYTES
        if body[at : at + PREFIX_BYTES] < prefix:
            low = middle + 1
        else:
            high = middle
    found = []
    at = low * ITEM_BYTES
    while body[at : at + PREFIX_BYTES] == prefix:
        found.append(number_of_item(body[at : at + ITEM_BYTES]))
        at += ITEM_BYTES
    return found


def parted(body: bytes, level: int) -> dict[int, bytes]:
    """Divide index items among the blocks of a level; return each block's body, by number."""
    items = np.frombuffer(body, np.uint8).reshape(-1, ITEM_BYTES)
    keys = _keys_of(items)
    order = np.argsort(keys, kind="stable")
    blocks = (keys[order] >> np.uint64(8 * PREFIX_BYTES - _BITS * level)).astype(np.int64)
    starts = np.flatnonzero(np.diff(blocks, prepend=-1)).tolist()
    ends = [*starts[1:], len(order)]
    moved = items[order]
    return {
        int(blocks[start]): moved[start:end].tobytes()
        for start, end in zip(starts, ends, strict=True)
    }


def _keys_of(items: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the key of each item, shape (n, ITEM_BYTES), as a whole number, shape (n,)."""
    prefixes = np.ascontiguousarray(items[:, :PREFIX_BYTES])
    return prefixes.view(">u8").ravel().astype(np.uint64)


def _pairs_of(body: bytes) -> tuple[list[int], list[int]]:
    """Return the keys and the numbers of every item, as whole numbers."""
    items = np.frombuffer(body, np.uint8).reshape(-1, ITEM_BYTES)
    numbers = np.zeros((len(items), 8), np.uint8)
    numbers[:, 8 - NUMBER_BYTES :] = items[:, PREFIX_BYTES:]
    return _keys_of(items).tolist(), numbers.view(">u8").ravel().tolist()


def _keys_in(digests: Sequence[bytes]) -> list[int]:
    """Return the keys of digests, as whole numbers."""
    return [int.from_bytes(digest[:PREFIX_BYTES], "big") for digest in digests]


def _items_of(digests: Sequence[bytes], first: int) -> bytes:
    """Return the items of digests whose answers are numbered from ``first`` on."""
    items = np.empty((len(digests), ITEM_BYTES), np.uint8)
    prefixes = b"".join([digest[:PREFIX_BYTES] for digest in digests])
    numbers = np.arange(first, first + len(digests), dtype=">u8").view(np.uint8).reshape(-1, 8)
    items[:, :PREFIX_BYTES] = np.frombuffer(prefixes, np.uint8).reshape(-1, PREFIX_BYTES)
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
    ) -> None:
        """Take over the stored newest items and first levels of the index."""
        self.answered = answered
        self.earlier = earlier
        self.depth = depth
        self._newest = newest
        self._added: list[bytes] = []  # digests of the answers after the newest items
        self._bodies = dict(bodies or {})
        self._numbers: dict[int, tuple[int, ...] | int] = {}
        for (level, _), body in self._bodies.items():
            _check_whole(body)
            if level < IMAGE_LEVELS:
                self._learn(*_pairs_of(body))
        self._learn(*_pairs_of(newest))

    @property
    def is_full(self) -> bool:
        """Whether the newest items are so many that they must be moved to blocks."""
        return len(self._newest) // ITEM_BYTES + len(self._added) >= NEWEST_MAX

    def candidates(self, digest: bytes) -> tuple[int, ...]:
        """Return the answer numbers of items in memory whose key is the start of ``digest``."""
        known = self._known(int.from_bytes(digest[:PREFIX_BYTES], "big"))
        return (*known, *self._in_last_level(digest))

    def candidates_of(self, digests: Sequence[bytes]) -> list[int]:
        """Return the answer numbers of items in memory whose key is the start of a given digest."""
        found: list[int] = []
        keys = _keys_in(digests)
        if not self._numbers.keys().isdisjoint(keys):
            for key in keys:
                found += self._known(key)
        if self.depth >= IMAGE_LEVELS:
            for digest in digests:
                found += self._in_last_level(digest)
        return found

    def _known(self, key: int) -> tuple[int, ...]:
        known = self._numbers.get(key, ())
        return (known,) if isinstance(known, int) else known

    def _in_last_level(self, digest: bytes) -> list[int]:
        """Search the level in memory whose keys are in blocks alone."""
        place = IMAGE_LEVELS, block_of(digest, IMAGE_LEVELS)
        return numbers_in(self._bodies.get(place, b""), digest)

    def add(self, digests: Sequence[bytes]) -> None:
        """Add new answers to the newest items of the index."""
        first = self.answered + 1
        self._learn(_keys_in(digests), range(first, first + len(digests)))
        self._added += digests
        self.answered += len(digests)

    def newest_items(self) -> bytes:
        """Return the items that are in no block yet, in the order of their answers."""
        if self._added:
            self._newest += _items_of(self._added, self.answered + 1 - len(self._added))
            self._added = []
        return self._newest

    def seal(self, blocks: Blocks) -> dict[tuple[int, int], bytes]:
        """Move the newest items to blocks, and return every changed block by level and number.

        Args:
            blocks: the stored blocks of the levels that are not in memory.

        """
        changed = _Changed(self._bodies, blocks)
        newest = self.newest_items()
        after = self.answered - self.earlier
        before = after - len(newest) // ITEM_BYTES
        changed.spread(newest, 1)
        self._newest = b""
        for turn in range(before // NEWEST_MAX, after // NEWEST_MAX):
            for level in range(1, min(self.depth, LEVELS_MAX - 1) + 1):
                self._pass_on(changed, level, turn % FAN_OUT**level)
        kept = {place: body for place, body in changed.bodies.items() if place[0] <= IMAGE_LEVELS}
        self._bodies.update(kept)
        self.depth = max(self.depth, *(level for level, _ in changed.bodies))
        return changed.bodies

    def _pass_on(self, changed: _Changed, level: int, block: int) -> None:
        """Move the keys of a block to the next level, if it is at least half full."""
        body = changed.read(level, block, 1).get(block, b"")
        if len(body) < NEWEST_MAX // 2 * ITEM_BYTES:
            return
        changed.bodies[level, block] = b""
        changed.spread(body, level + 1)
        if level == IMAGE_LEVELS - 1:
            self._forget(*_pairs_of(body))

    def _learn(self, keys: Sequence[int], of: Sequence[int]) -> None:
        """Note the numbers of answers, by their keys."""
        numbers, newly = self._numbers, dict(zip(keys, of, strict=True))
        if len(newly) == len(keys) and numbers.keys().isdisjoint(newly):
            numbers.update(newly)
            return
        for key, number in zip(keys, of, strict=True):  # alike: one in 2^64, or made for it
            numbers[key] = (*self._known(key), number) if key in numbers else number

    def _forget(self, keys: Sequence[int], of: Sequence[int]) -> None:
        for key, number in zip(keys, of, strict=True):
            known = self._numbers.pop(key)
            if not isinstance(known, int):
                self._numbers[key] = tuple(each for each in known if each != number)


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
