"""Reading and writing of the index of recorded answers, on the caller's connection.

The index finds recorded answers by their digest, the keyed hash of the query's vector. An item of
the index is the first bytes of a digest (the key) with the number of the answer. The newest items
are in a short unsorted list, and all others in several levels of sorted blocks.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from app.ledger.answer_index.key_blocks import (
    FAN_OUT,
    IMAGE_LEVELS,
    MAPPED_LEVELS,
    KeyImage,
    NoBlocks,
    block_of,
    item_of,
    numbers_in,
)
from app.ledger.database.answer_tables import read_answer, read_digests, read_numbered
from app.ledger.database.driver import fetch_all, insert_rows
from app.ledger.database.recorded_answers import RecordedAnswer, checked_answer, checked_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Connection

SEARCHED_MAX: Final = 256
"""Rows that one statement asks for by their keys."""

NUMBERS_READ: Final = 65_536
"""Numbers of blocks that are read together."""

BEHIND_MAX: Final = 10_000
"""Answers of other servers that are added one by one; beyond, the image is read anew."""

_FIELDS: Final = ", ".join(RecordedAnswer.__struct_fields__)
_NEWEST: Final = (
    "SELECT vector_digest, query_id FROM newest_answers WHERE release_number = ? ORDER BY query_id"
)
_ONE_NEWEST: Final = (
    "SELECT query_id FROM newest_answers WHERE release_number = ? AND vector_digest = ?"
)
_PUT_NEWEST: Final = (
    "INSERT INTO newest_answers (release_number, vector_digest, query_id) VALUES (?, ?, ?)"
)
_NEWEST_TYPES: Final = ("smallint", "bytea", "bigint")
_FORGET_NEWEST: Final = "DELETE FROM newest_answers WHERE release_number = ?"
_FIRST_BLOCKS: Final = (
    "SELECT level, block, body FROM key_blocks WHERE release_number = ? AND level <= ?"
)
_EVERY_BLOCK: Final = (
    "SELECT level, block, body FROM key_blocks WHERE release_number = ? "
    "AND (level > ? OR (level = ? AND block > ?)) ORDER BY level, block LIMIT 64"
)
_SOME_BLOCKS: Final = (
    "SELECT block, body FROM key_blocks "
    "WHERE release_number = ? AND level = ? AND block >= ? AND block < ?"
)
_ONE_BLOCK: Final = (
    "SELECT body FROM key_blocks WHERE release_number = ? AND level = ? AND block = ?"
)
_BLOCK_NUMBERS: Final = (
    "SELECT block FROM key_blocks WHERE release_number = ? AND level = ? AND block >= ? "
    "AND block < ? ORDER BY block LIMIT ?"
)
_DEPTH: Final = "SELECT MAX(level) FROM key_blocks WHERE release_number = ?"
_PUT_BLOCK: Final = (
    "INSERT INTO key_blocks (release_number, level, block, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (release_number, level, block) DO UPDATE SET body = excluded.body"
)
_BLOCKS_ASKED: Final = (
    "WITH asked (level, block) AS (VALUES {asked}) "
    "SELECT key_blocks.level, key_blocks.block, body FROM asked CROSS JOIN key_blocks "
    "WHERE key_blocks.level = asked.level AND key_blocks.block = asked.block "
    "AND release_number = ?"
)
_NEWEST_ASKED: Final = (
    "WITH asked (digest) AS (VALUES {asked}) "
    "SELECT query_id FROM asked CROSS JOIN newest_answers "
    "WHERE newest_answers.vector_digest = asked.digest AND release_number = ?"
)
_EARLIER_ASKED: Final = (
    f"WITH asked (digest) AS (VALUES {{asked}}) SELECT vector_digest, {_FIELDS} "  # noqa: S608 -- as above
    "FROM asked CROSS JOIN answers WHERE answers.vector_digest = asked.digest "
    "AND release_number = ? AND qualifier IS NULL"
)
_IS_EARLIER: Final = "SELECT qualifier FROM answers WHERE release_number = ? AND query_id = ?"
_ONE: Final = "(?)"
_TWO: Final = "(?, ?)"


class StoredBlocks:
    """The stored index blocks of one release, inside a transaction."""

    def __init__(self, connection: Connection, release_number: int) -> None:
        """Store the connection with which blocks of the index are read."""
        self._connection = connection
        self._release_number = release_number

    def read(self, level: int, first: int, count: int) -> Mapping[int, bytes]:
        """Return a level's stored blocks with numbers from ``first`` to ``first + count - 1``."""
        at = (self._release_number, level, first, first + count)
        return {
            _number(block): checked_bytes(body)
            for block, body in fetch_all(self._connection, _SOME_BLOCKS, at)
        }


def read_image(connection: Connection, release_number: int, answered: int) -> KeyImage:
    """Return an in-memory copy of the index's newest items and first levels of blocks.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        answered: the number of the release's newest answer.

    Raises:
        LedgerCorruptError: a block does not consist of whole items.

    """
    blocks = fetch_all(connection, _FIRST_BLOCKS, (release_number, IMAGE_LEVELS))
    depth = _depth(connection, release_number)
    return KeyImage(
        answered=answered,
        earlier=earlier_count(connection, release_number, answered),
        depth=depth,
        newest=b"".join(item_of(*each) for each in newest_digests(connection, release_number)),
        bodies={
            (_number(level), _number(block)): checked_bytes(body) for level, block, body in blocks
        },
        deep=_deep_blocks(connection, release_number, depth),
    )


def caught_up(
    image: KeyImage | None, connection: Connection, release_number: int, answered: int
) -> KeyImage:
    """Return the in-memory index of answers, brought up to date with other servers' answers.

    Args:
        image: an earlier copy of the index; None to read it from the database.
        connection: a connection inside a transaction with the write lock.
        release_number: the number of the release in the database.
        answered: the number of the release's newest answer.

    """
    if image is None or not 0 <= answered - image.answered <= BEHIND_MAX:
        return read_image(connection, release_number, answered)
    if answered > image.answered:
        first_turn = image.turn
        for digests in _following(connection, release_number, image.answered):
            image.add(digests)
            if image.is_full:
                image.seal(NoBlocks())
        image.depth = _depth(connection, release_number)
        for turn in range(first_turn, image.turn):
            _note_turn(image, connection, release_number, turn)
    return image


def _deep_blocks(
    connection: Connection, release_number: int, depth: int
) -> Iterator[tuple[int, list[int]]]:
    """Yield the numbers of the stored blocks not in memory, some at a time, with their level."""
    for level in range(IMAGE_LEVELS + 1, min(depth, MAPPED_LEVELS) + 1):
        first, end = 0, FAN_OUT**level
        while numbers := _block_numbers(connection, release_number, level, first, end):
            yield level, numbers
            first = numbers[-1] + 1


def _note_turn(image: KeyImage, connection: Connection, release_number: int, turn: int) -> None:
    """Note the deep blocks to which a turn of another server may have passed the first items."""
    for level in range(IMAGE_LEVELS + 1, min(image.depth, MAPPED_LEVELS) + 1):
        first = turn % FAN_OUT ** (level - 1) * FAN_OUT
        numbers = _block_numbers(connection, release_number, level, first, first + FAN_OUT)
        image.note_blocks(level, numbers)


def _block_numbers(
    connection: Connection, release_number: int, level: int, first: int, end: int
) -> list[int]:
    """Return the numbers of a level's stored blocks, from ``first`` to before ``end``, in order."""
    at = (release_number, level, first, end, NUMBERS_READ)
    return [_number(block) for (block,) in fetch_all(connection, _BLOCK_NUMBERS, at)]


def keep(
    image: KeyImage, connection: Connection, release_number: int, digests: Sequence[bytes]
) -> None:
    """Add the answers of an entry to the index, and move items to blocks if that is due.

    Keys that move at once are never among the stored newest.

    Raises:
        SQLAlchemyError: the database refused the write.

    """
    first = image.answered + 1
    image.add(digests)
    if not image.is_full:
        # Python's sqlite3 looks for an adapter of every bytes, and of no bytearray.
        newest: list[tuple[int | bytearray, ...]] = [
            (release_number, bytearray(digest), number)
            for number, digest in enumerate(digests, first)
        ]
        insert_rows(connection, _PUT_NEWEST, newest, types=_NEWEST_TYPES)
        return
    changed = image.seal(StoredBlocks(connection, release_number))
    fetch_all(connection, _FORGET_NEWEST, (release_number,))
    rows = [(release_number, level, block, body) for (level, block), body in changed.items()]
    insert_rows(connection, _PUT_BLOCK, rows)


def find_recorded(
    connection: Connection,
    release_number: int,
    vector_digests: Sequence[bytes],
    image: KeyImage | None = None,
) -> list[tuple[bytes, RecordedAnswer]]:
    """Return the recorded answers to some vectors, by the vectors' keyed hashes.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release that answered.
        vector_digests: the keyed digests of the vectors, 32 bytes each.
        image: an in-memory copy of the index, up to date in this transaction; None to read the
            database.

    Raises:
        SQLAlchemyError: the database cannot be read.
        TypeError: a row has a value of a wrong type.
        LedgerCorruptError: an answer that is in the index is missing from the answers table.

    """
    if image is not None and len(vector_digests) == 1:
        return _find_one(connection, release_number, vector_digests[0], image)
    numbers: list[int] = []
    if image is None:
        found = _asked(connection, _NEWEST_ASKED, _ONE, release_number, vector_digests)
        numbers += [_number(number) for (number,) in found]
        blocks: dict[tuple[int, int], list[bytes]] = {}
        for level in range(1, _depth(connection, release_number) + 1):
            for digest in vector_digests:
                blocks.setdefault((level, block_of(digest, level)), []).append(digest)
    else:
        numbers, blocks = image.search(vector_digests)
    numbers += _in_blocks(connection, release_number, blocks)
    wanted = set(vector_digests)
    answers = read_numbered(connection, release_number, numbers) if numbers else []
    if image is None or image.earlier:
        rows = _asked(connection, _EARLIER_ASKED, _ONE, release_number, vector_digests)
        answers += [(checked_bytes(digest), checked_answer(values)) for digest, *values in rows]
    return [each for each in answers if each[0] in wanted]


def _find_one(
    connection: Connection, release_number: int, digest: bytes, image: KeyImage
) -> list[tuple[bytes, RecordedAnswer]]:
    """Find one vector: in memory, then in the deepest level, which has most keys, and so on."""
    likeliest = image.likeliest(digest)
    if likeliest is not None:
        stored, answer = read_answer(connection, release_number, likeliest)
        if stored == digest:
            return [(digest, answer)]
    in_memory, deep = image.search_one(digest)
    if found := _matching(connection, release_number, digest, in_memory):
        return found
    for level, block in deep:
        for (body,) in fetch_all(connection, _ONE_BLOCK, (release_number, level, block)):
            numbers = numbers_in(checked_bytes(body), digest)
            if found := _matching(connection, release_number, digest, numbers):
                return found
    if image.earlier:
        rows = _asked(connection, _EARLIER_ASKED, _ONE, release_number, [digest])
        return [(digest, checked_answer(values)) for _, *values in rows]
    return []


def _matching(
    connection: Connection, release_number: int, digest: bytes, numbers: Iterable[int]
) -> list[tuple[bytes, RecordedAnswer]]:
    """Return the answer with that very digest, of those whose key begins alike."""
    for number in numbers:
        stored, answer = read_answer(connection, release_number, number)
        if stored == digest:
            return [(digest, answer)]
    return []


def _in_blocks(
    connection: Connection,
    release_number: int,
    asked: Mapping[tuple[int, int], Sequence[bytes]],
) -> list[int]:
    """Return the answer numbers of the items in stored blocks that have one of some keys.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release in the database.
        asked: digests, or the keys of digests, for each block, by level and number.

    """
    places = list(asked)
    found: list[int] = []
    for begin in range(0, len(places), SEARCHED_MAX):
        some = places[begin : begin + SEARCHED_MAX]
        values = [each for place in some for each in place]
        rows = _one_statement(connection, _BLOCKS_ASKED, _TWO, release_number, values)
        for in_level, block, body in rows:
            items = checked_bytes(body)
            for digest in asked[_number(in_level), _number(block)]:
                found += numbers_in(items, digest)
    return found


def _asked(
    connection: Connection,
    statement: str,
    mark: str,
    release_number: int,
    values: Sequence[bytes] | Sequence[int],
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of every value that has one, ``SEARCHED_MAX`` values at a time."""
    for begin in range(0, len(values), SEARCHED_MAX):
        some = values[begin : begin + SEARCHED_MAX]
        yield from _one_statement(connection, statement, mark, release_number, some)


def _one_statement(
    connection: Connection,
    statement: str,
    mark: str,
    release_number: int,
    values: Sequence[bytes] | Sequence[int],
) -> Sequence[tuple[object, ...]]:
    # Few sizes, and so few statements to prepare; NULL fills one up and finds nothing.
    width = mark.count("?")
    count = len(values) // width
    size = 1 << (count - 1).bit_length()
    filled = (*values, *[None] * (width * (size - count)), release_number)
    return fetch_all(connection, _text(statement, mark, size), filled)


@lru_cache(maxsize=64)
def _text(statement: str, mark: str, count: int) -> str:
    return statement.format(asked=", ".join([mark] * count))


def earlier_count(connection: Connection, release_number: int, answered: int) -> int:
    """Return the number of answers that are older than the index of answers.

    Early versions recorded answers without this index.
    """
    low, high = 0, answered
    while low < high:
        middle = (low + high + 1) // 2
        rows = fetch_all(connection, _IS_EARLIER, (release_number, middle))
        if rows and rows[0][0] is None:
            low = middle
        else:
            high = middle - 1
    return low


def newest_digests(connection: Connection, release_number: int) -> list[tuple[bytes, int]]:
    """Return the digests and numbers of the answers that are in no block yet, in order."""
    rows = fetch_all(connection, _NEWEST, (release_number,))
    return [(checked_bytes(digest), _number(number)) for digest, number in rows]


def every_block(connection: Connection, release_number: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield every block of the index: its level, its number, and its items as bytes."""
    level = block = -1
    while page := fetch_all(connection, _EVERY_BLOCK, (release_number, level, level, block)):
        for row in page:
            level, block = _number(row[0]), _number(row[1])
            yield level, block, checked_bytes(row[2])


def _following(connection: Connection, release_number: int, after: int) -> Iterator[list[bytes]]:
    """Yield the digests of the answers after a number, an entry's together."""
    groups = read_digests(connection, release_number, after)
    for _, of_entry in groupby(groups, key=itemgetter(0)):
        yield [digest for _, digests in of_entry for digest in digests]


def _depth(connection: Connection, release_number: int) -> int:
    ((deepest,),) = fetch_all(connection, _DEPTH, (release_number,))
    return 0 if deepest is None else _number(deepest)


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("a number of a key's place is a whole number")
    return value
