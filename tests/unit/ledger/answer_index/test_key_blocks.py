"""Blocks of keys: each key is in one place, moved a bounded number at a time, and found there."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError, LedgerCorruptError
from app.ledger.answer_index import key_blocks
from app.ledger.answer_index.key_blocks import (
    FAN_OUT,
    ITEM_BYTES,
    PREFIX_BYTES,
    KeyImage,
    NoBlocks,
    block_of,
    item_of,
    items_in,
    number_of_item,
    numbers_in,
    parted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEWEST = 4
ANSWERS = 3000
MOVED_MAX = 8 * (FAN_OUT + 1)
ALIKE = bytes(8)


class MemoryBlocks:
    """Blocks that a test keeps in place of a database."""

    def __init__(self) -> None:
        """Start empty."""
        self.bodies: dict[tuple[int, int], bytes] = {}

    def read(self, level: int, first: int, count: int) -> Mapping[int, bytes]:
        """Return those of ``count`` blocks that are there."""
        return {
            block: self.bodies[level, block]
            for block in range(first, first + count)
            if (level, block) in self.bodies
        }


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_blocks, "NEWEST_MAX", NEWEST)


def digest_of(number: int) -> bytes:
    """Return a digest that depends on nothing but the number."""
    return hashlib.sha256(str(number).encode()).digest()


def found_by(image: KeyImage, blocks: MemoryBlocks, digest: bytes) -> list[int]:
    """Return the answer numbers that a search for a digest finds, in memory and in blocks."""
    in_memory, deep = image.search_one(digest)
    in_blocks = [blocks.bodies.get(place, b"") for place in deep]
    return [*in_memory, *(number for body in in_blocks for number in numbers_in(body, digest))]


def deep_in(blocks: MemoryBlocks) -> set[tuple[int, int]]:
    """Return the stored blocks that are not in memory, of the levels that are mapped."""
    levels = range(key_blocks.IMAGE_LEVELS + 1, key_blocks.MAPPED_LEVELS + 1)
    return {place for place in blocks.bodies if place[0] in levels}


def noted_starts(image: KeyImage) -> dict[int, set[int]]:
    """Return the starts of keys that an image notes, by level."""
    levels = range(1, key_blocks.IMAGE_LEVELS + 1)
    return {level: set(image._map.starts(level)) for level in levels}


def stored_starts(image: KeyImage) -> dict[int, set[int]]:
    """Return the starts of the keys of every block in memory, by level."""
    starts: dict[int, set[int]] = {n: set() for n in range(1, key_blocks.IMAGE_LEVELS + 1)}
    for (level, _), body in image._bodies.items():
        shift = 8 * PREFIX_BYTES - key_blocks.START_BITS[level]
        keys = [int.from_bytes(item[:PREFIX_BYTES], "big") for item in items_in(body)]
        starts[level].update(key >> shift for key in keys)
    return starts


def grown(image: KeyImage, blocks: MemoryBlocks, digests: Sequence[bytes]) -> int:
    """Add answers, one by one; return the most blocks that changed at once."""
    most = 0
    for digest in digests:
        image.add([digest])
        if image.is_full:
            changed = image.seal(blocks)
            blocks.bodies |= changed
            most = max(most, len(changed))
    return most


def test_each_key_is_in_one_place_and_found() -> None:
    """After any number of answers each is in memory, or in the one block that it belongs to."""
    image, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    digests = [digest_of(number) for number in range(1, ANSWERS + 1)]
    most = grown(image, blocks, digests)
    assert image.depth > key_blocks.IMAGE_LEVELS
    assert most <= MOVED_MAX
    placed = Counter(item for body in blocks.bodies.values() for item in items_in(body))
    assert set(placed.values()) == {1}
    assert sum(placed.values()) > ANSWERS - NEWEST
    for number, digest in enumerate(digests, start=1):
        assert found_by(image, blocks, digest) == [number]
    new = digest_of(0)
    assert found_by(image, blocks, new) == []
    in_memory, deep = image.search([new, *digests])
    alone = [number for digest in digests for number in image.search_one(digest)[0]]
    assert sorted(in_memory) == sorted(alone)
    asked = {
        (place, digest[:PREFIX_BYTES])
        for digest in [new, *digests]
        for place in image.search_one(digest)[1]
    }
    assert {(place, key) for place, keys in deep.items() for key in keys} == asked
    assert {place for place, _ in asked} <= blocks.bodies.keys()
    assert image.noted_blocks() == deep_in(blocks)
    assert noted_starts(image) == stored_starts(image)
    for (level, block), body in blocks.bodies.items():
        assert items_in(body) == sorted(items_in(body))
        assert all(block_of(item, level) == block for item in items_in(body))


def test_who_follows_another_server_has_the_same_in_memory() -> None:
    """An image that only hears of answers holds what the writer has, and what a start reads."""
    writer, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    follower = KeyImage(answered=0, earlier=0, depth=0)
    digests = [digest_of(number) for number in range(1, ANSWERS + 1)]
    grown(writer, blocks, digests)
    for digest in digests:
        follower.add([digest])
        if follower.is_full:
            follower.seal(NoBlocks())
    assert follower._bodies == writer._bodies
    started = KeyImage(
        answered=ANSWERS,
        earlier=0,
        depth=writer.depth,
        newest=writer.newest_items(),
        bodies={at: body for at, body in blocks.bodies.items() if at[0] <= key_blocks.IMAGE_LEVELS},
        deep=[(level, [block]) for level, block in deep_in(blocks)],
    )
    assert started._bodies == writer._bodies
    assert started._numbers == writer._numbers == follower._numbers
    assert noted_starts(started) == noted_starts(writer) == noted_starts(follower)
    assert started.noted_blocks() == writer.noted_blocks() == deep_in(blocks)
    last = key_blocks.IMAGE_LEVELS + 1  # its blocks come from memory: a follower knows them
    assert {each for each in follower.noted_blocks() if each[0] == last} == {
        each for each in deep_in(blocks) if each[0] == last
    }


def test_keys_that_begin_alike_are_both_found() -> None:
    """Two digests whose first bytes are the same are told apart by whoever has the answers."""
    image, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    alike = [ALIKE + bytes([number]) * 24 for number in range(1, 9)]
    grown(
        image,
        blocks,
        [each for pair in zip(alike, map(digest_of, range(8)), strict=True) for each in pair],
    )
    assert sorted(found_by(image, blocks, ALIKE)) == [1, 3, 5, 7, 9, 11, 13, 15]
    in_memory, deep = image.search_one(ALIKE)
    assert set(image.search([ALIKE, digest_of(-1)])[0]) == {*in_memory}
    assert {place for place in deep if place[0] <= key_blocks.MAPPED_LEVELS} <= blocks.bodies.keys()


def test_blocks_of_levels_that_are_not_mapped_are_all_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beyond the last mapped level no block is passed over, whether or not it is stored."""
    monkeypatch.setattr(key_blocks, "MAPPED_LEVELS", key_blocks.IMAGE_LEVELS)
    image, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    digests = [digest_of(number) for number in range(1, ANSWERS + 1)]
    grown(image, blocks, digests)
    assert image.depth > key_blocks.IMAGE_LEVELS
    assert image.noted_blocks() == set()
    for number, digest in enumerate(digests, start=1):
        assert found_by(image, blocks, digest) == [number]
    _, deep = image.search([digest_of(0), *digests])
    assert {place for place in blocks.bodies if place[0] > key_blocks.IMAGE_LEVELS} <= deep.keys()


def test_the_likeliest_answer_has_the_key() -> None:
    """Of a key in the last level in memory it is found; of others, perhaps nothing."""
    image, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    assert image.likeliest(digest_of(1)) is None
    digests = [digest_of(number) for number in range(1, ANSWERS + 1)]
    for count in (NEWEST, 10 * NEWEST, ANSWERS):
        grown(image, blocks, digests[image.answered : count])
        placed = {
            number_of_item(item)
            for (level, _), body in image._bodies.items()
            for item in items_in(body)
            if level == key_blocks.IMAGE_LEVELS
        }
        assert placed or image.depth < key_blocks.IMAGE_LEVELS
        for number, digest in enumerate(digests, start=1):
            assert image.likeliest(digest) == (number if number in placed else None)


def test_the_likeliest_answer_is_found_in_a_long_block() -> None:
    """Most keys are sought near where they are, whatever the rest is; none is taken for another."""
    count = 400
    level = key_blocks.IMAGE_LEVELS
    place = level, 1 << 4 * (level - 1)  # its keys begin with the byte 16
    digests = sorted(b"\x10\x00" + digest_of(number) for number in range(count))
    body = b"".join(item_of(digest, number) for number, digest in enumerate(digests, start=1))
    image = KeyImage(answered=count, earlier=0, depth=level, bodies={place: body})
    found = [image.likeliest(digest) for digest in digests]
    assert all(each in (number, None) for number, each in enumerate(found, start=1))
    last = PREFIX_BYTES - 1
    others = [digest[:last] + bytes([digest[last] ^ 1]) + digest[last + 1 :] for digest in digests]
    assert [image.likeliest(digest) for digest in others] == [None] * count
    assert [image.search_one(digest)[0] for digest in digests] == [[n] for n in range(1, count + 1)]
    evenly = [(16 << 56) + (number << 64 - 4 * level) // count for number in range(count)]
    digests = [key.to_bytes(8, "big") + bytes(24) for key in evenly]
    body = b"".join(item_of(digest, number) for number, digest in enumerate(digests, start=1))
    image = KeyImage(answered=count, earlier=0, depth=level, bodies={place: body})
    assert [image.likeliest(digest) for digest in digests] == [*range(1, count + 1)]


@pytest.mark.parametrize("mapped", [key_blocks.IMAGE_LEVELS, 5, key_blocks.MAPPED_LEVELS])
def test_one_key_is_sought_where_most_keys_are_first(
    monkeypatch: pytest.MonkeyPatch, mapped: int
) -> None:
    """In memory the last level is first and the newest part last; of stored ones the deepest."""
    monkeypatch.setattr(key_blocks, "MAPPED_LEVELS", mapped)
    first_key = item_of(ALIKE, 0)[:PREFIX_BYTES]
    levels = range(1, key_blocks.IMAGE_LEVELS + 1)
    image = KeyImage(
        answered=10,
        earlier=0,
        depth=7,
        newest=item_of(ALIKE, 9),
        bodies={(level, 0): item_of(ALIKE, level) for level in levels},
        deep=[(level, [0]) for level in range(key_blocks.IMAGE_LEVELS + 1, mapped + 1)],
    )
    in_memory, deep = image.search_one(first_key)
    assert in_memory == [*reversed(levels), 9]
    assert deep == [(level, 0) for level in range(7, key_blocks.IMAGE_LEVELS, -1)]


def test_a_key_is_found_wherever_its_bytes_stand_too() -> None:
    """Bytes equal to a key, across two items, are not taken for it."""
    key = bytes(range(1, 9))
    across = item_of(bytes(7) + key[:1], int.from_bytes(key[1:7], "big")) + item_of(
        key[7:] + bytes(7), 5
    )
    assert across.find(key) > 0
    assert numbers_in(across, key) == []
    body = b"".join([across, item_of(key[7:] + bytes(7), 6), item_of(key, 7), item_of(key, 8)])
    assert numbers_in(body, key) == [7, 8]
    assert numbers_in(body, key[7:] + bytes(7)) == [5, 6]


def test_deep_levels_need_their_blocks_told() -> None:
    """An image that is not told which deep blocks are stored would pass over all of them."""
    with pytest.raises(InvariantError):
        KeyImage(answered=1, earlier=0, depth=key_blocks.IMAGE_LEVELS + 1)


def test_an_earlier_ledger_counts_its_blocks_from_its_first_new_answer() -> None:
    """Answers of before have no key in a block, and the turns begin with the first that has."""
    image, blocks = KeyImage(answered=1000, earlier=1000, depth=0), MemoryBlocks()
    grown(image, blocks, [digest_of(number) for number in range(1001, 1001 + NEWEST)])
    numbers = [number_of_item(item) for body in blocks.bodies.values() for item in items_in(body)]
    assert sorted(numbers) == [1001, 1002, 1003, 1004]


@pytest.mark.parametrize("level", range(1, 9))
def test_a_block_of_each_level_covers_those_of_the_next(level: int) -> None:
    """A digest's block is its first four bits a level, and so is where items are put."""
    digest = digest_of(5)
    assert block_of(digest, level) == int(digest.hex()[:level], 16)
    assert parted(item_of(digest, 5), level) == {block_of(digest, level): item_of(digest, 5)}


def test_half_an_item_is_refused() -> None:
    """A block that does not hold whole items is damaged."""
    body = item_of(digest_of(1), 1)[: ITEM_BYTES - 1]
    for read in (items_in, lambda each: numbers_in(each, digest_of(1))):
        with pytest.raises(LedgerCorruptError, match="whole keys"):
            read(body)
    with pytest.raises(LedgerCorruptError, match="whole keys"):
        KeyImage(answered=1, earlier=0, depth=1, bodies={(1, 0): body})
