"""Blocks of keys: each key is in one place, moved a bounded number at a time, and found there."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerCorruptError
from app.ledger.answer_index import key_blocks
from app.ledger.answer_index.key_blocks import (
    FAN_OUT,
    ITEM_BYTES,
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
        places = [
            (level, block_of(digest, level))
            for level in range(key_blocks.IMAGE_LEVELS + 1, image.depth + 1)
        ]
        deeper = [
            each for place in places for each in numbers_in(blocks.bodies.get(place, b""), digest)
        ]
        assert [*image.candidates(digest), *deeper] == [number]
    assert image.candidates(digest_of(0)) == ()
    in_memory = [number for digest in digests for number in image.candidates(digest)]
    assert sorted(image.candidates_of([digest_of(0), *digests])) == sorted(in_memory)
    assert image.candidates_of([digest_of(0)]) == []
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
            follower.depth = max(follower.depth, 0)
    assert follower._bodies == writer._bodies
    started = KeyImage(
        answered=ANSWERS,
        earlier=0,
        depth=writer.depth,
        newest=writer.newest_items(),
        bodies={at: body for at, body in blocks.bodies.items() if at[0] <= key_blocks.IMAGE_LEVELS},
    )
    assert started._bodies == writer._bodies
    assert started._numbers == writer._numbers == follower._numbers


def test_keys_that_begin_alike_are_both_found() -> None:
    """Two digests whose first bytes are the same are told apart by whoever has the answers."""
    image, blocks = KeyImage(answered=0, earlier=0, depth=0), MemoryBlocks()
    alike = [ALIKE + bytes([number]) * 24 for number in range(1, 9)]
    grown(
        image,
        blocks,
        [each for pair in zip(alike, map(digest_of, range(8)), strict=True) for each in pair],
    )
    stored = [
        number
        for (level, block), body in blocks.bodies.items()
        if level > key_blocks.IMAGE_LEVELS and block == 0
        for number in numbers_in(body, ALIKE)
    ]
    assert sorted([*image.candidates(ALIKE), *stored]) == [1, 3, 5, 7, 9, 11, 13, 15]
    assert set(image.candidates_of([ALIKE, digest_of(-1)])) == set(image.candidates(ALIKE))


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
