"""Answers are found by their keys in whichever place, and no key gets a second answer.

Each place of a key is damaged once: what is lost, moved, out of order or there twice is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from app.errors import (
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
)
from app.ledger.answer_index import key_blocks
from app.ledger.answer_index.key_blocks import ITEM_BYTES, item_of, items_in
from app.ledger.answer_index.recorded_keys import every_block
from app.ledger.ledger import AnswerRow, Ledger, RecordedAnswer, Transaction
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import write_old_ledger
from tests.builders.ledger.releases import answer, create, open_release, record, tamper

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection

NEWEST = 4
ANSWERS = 90


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_blocks, "NEWEST_MAX", NEWEST)
    monkeypatch.setattr(key_blocks, "IMAGE_LEVELS", 1)
    monkeypatch.setattr("app.ledger.answer_index.recorded_keys.IMAGE_LEVELS", 1)


def long_ledger(path: Path) -> Ledger:
    """Create a ledger with keys in blocks of several levels, and some among the newest."""
    ledger = create(path)
    open_release(ledger)
    for first in range(1, ANSWERS, 3):
        record(ledger, [answer(ledger, number) for number in range(first, first + 3)])
    return ledger


def account_of(path: Path) -> str:
    """Return what verification says is wrong."""
    ledger = create(path)
    try:
        with pytest.raises(VerificationError) as refused:
            verify(ledger)
    finally:
        ledger.close()
    return str(refused.value)


def changed_block(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the items of the first block that has two or more, behind the ledger's back."""
    ledger = create(path)
    with ledger.snapshot() as connection:
        level, block, body = next(
            each for each in every_block(connection, 1) if len(each[2]) >= 2 * ITEM_BYTES
        )
    ledger.close()
    put_block(path, level, block, b"".join(change(items_in(body))))


def put_block(path: Path, level: int, block: int, body: bytes) -> None:
    """Put a body into a block that is there."""
    ledger = create(path)
    statement = "UPDATE key_blocks SET body = :body WHERE level = :level AND block = :block"
    engine = ledger._database.writer
    assert engine is not None
    with engine.begin() as connection:
        connection.execute(text(statement), {"body": body, "level": level, "block": block})
    ledger.close()


def test_every_answer_is_found_and_nothing_else(tmp_path: Path) -> None:
    """By the writer, alone or together, and by a reader: in memory, in blocks, among the newest."""
    ledger = long_ledger(tmp_path / "found.db")
    rows = [answer(ledger, number) for number in range(1, ANSWERS + 1)]
    digests = [row.vector_digest for row in rows]
    wanted = {row.vector_digest: row.answer for row in rows}
    new = [answer(ledger, number).vector_digest for number in range(1000, 1010)]
    with ledger.snapshot() as connection:
        levels = {level for level, _, body in every_block(connection, 1) if body}
    assert len(levels) > 1
    assert dict(ledger.known_answers([*digests, *new])) == wanted
    with ledger.transaction() as transaction:
        assert dict(transaction.known_answers([*digests, *new])) == wanted
        for digest, recorded in wanted.items():
            assert transaction.known_answers([digest]) == [(digest, recorded)]
        assert transaction.known_answers(new[:1]) == []
    assert verify(ledger).answered == ANSWERS


def test_keys_that_begin_alike_have_answers_of_their_own(tmp_path: Path) -> None:
    """Whole digests are compared: among the newest, in memory and in stored blocks."""
    ledger = create(tmp_path / "alike.db")
    open_release(ledger)
    alike = [bytes(8) + bytes([number]) * 24 for number in range(5)]
    *recorded, new = alike
    wanted: dict[bytes, RecordedAnswer] = {}
    for first in range(1, ANSWERS, 3):
        rows = [answer(ledger, number) for number in range(first, first + 3)]
        if recorded:
            rows[1] = rows[1]._replace(vector_digest=recorded.pop())
            wanted[rows[1].vector_digest] = rows[1].answer
        record(ledger, rows)
        with ledger.transaction() as transaction:
            alone = [transaction.known_answers([digest]) for digest in alike]
            assert [dict(found) for found in alone] == [
                {digest: wanted[digest]} if digest in wanted else {} for digest in alike
            ]
            assert dict(transaction.known_answers(alike)) == wanted
    assert not recorded
    assert new not in wanted
    ledger.close()


def test_a_key_gets_no_second_answer_in_whichever_place_it_is(tmp_path: Path) -> None:
    """One that is among the newest, in memory or in a block: the row is refused."""
    ledger = long_ledger(tmp_path / "second.db")
    for number in range(1, ANSWERS + 1):
        again = answer(ledger, number)._replace(answer=RecordedAnswer(ANSWERS + 1, 0, stable=True))
        with pytest.raises(InvariantError), ledger.transaction() as transaction:
            transaction.record_answers([again])
    twice = [
        answer(ledger, 500)._replace(answer=RecordedAnswer(n, 0, stable=True)) for n in (91, 92)
    ]
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        transaction.record_answers(twice)
    record(ledger, [answer(ledger, ANSWERS + 1)])
    assert verify(ledger).answered == ANSWERS + 1


def test_another_writer_cannot_use_a_key_that_was_sealed_meanwhile(tmp_path: Path) -> None:
    """Two writers with one key: the one that knew of none is refused, before and after sealing."""
    path = tmp_path / "writers.db"
    first = long_ledger(path)
    second = create(path)
    with second.transaction() as transaction:
        assert transaction.known_answers([answer(second, 91).vector_digest]) == []
    for number in range(ANSWERS + 1, ANSWERS + 2 * NEWEST + 1):
        record(first, [answer(first, number)])
        follows = RecordedAnswer(number + 1, 0, stable=True)
        with pytest.raises(InvariantError), second.transaction() as transaction:
            transaction.record_answers([answer(second, 91)._replace(answer=follows)])
    record(second, [answer(second, ANSWERS + 2 * NEWEST + 1)])
    record(first, [answer(first, ANSWERS + 2 * NEWEST + 2)])
    assert verify(first).answered == ANSWERS + 2 * NEWEST + 2


def test_writers_that_take_turns_have_what_the_database_has(tmp_path: Path) -> None:
    """Each adds what the other recorded to what it has in memory, through many sealings."""
    path = tmp_path / "turns.db"
    first = long_ledger(path)
    ledgers = [first, create(path), create(path)]
    for number in range(ANSWERS + 1, ANSWERS + 61):
        ledger = ledgers[number * number % 3]
        record(ledger, [answer(ledger, number)])
    for ledger in ledgers:
        with ledger.transaction() as transaction:
            digests = [answer(first, n).vector_digest for n in range(1, ANSWERS + 61)]
            assert len(transaction.known_answers(digests)) == ANSWERS + 60
    assert verify(first).answered == ANSWERS + 60


@given(
    commits=st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 9), st.booleans()), min_size=20, max_size=60
    )
)
@settings(max_examples=15, deadline=None)
def test_two_servers_know_which_deep_blocks_are_stored(
    tmp_path_factory: pytest.TempPathFactory, commits: list[tuple[int, int, bool]]
) -> None:
    """After any commits of either, and failures between them, each notes what the table has."""
    path = tmp_path_factory.mktemp("deep") / "deep.db"
    first = long_ledger(path)
    servers = [first, create(path)]
    answered = ANSWERS
    for server, count, fails in commits:
        ledger = servers[server]
        rows = [answer(ledger, number) for number in range(answered + 1, answered + count + 1)]
        if fails:
            with pytest.raises(LedgerUnavailableError):
                fail_after(ledger, rows)
            continue
        answered += count
        with ledger.transaction() as transaction:
            assert transaction.known_answers([row.vector_digest for row in rows]) == []
            assert deep_in_memory(transaction) == deep_in_table(ledger)
            transaction.record_answers(rows)
        with ledger.transaction() as transaction:
            assert len(transaction.known_answers([row.vector_digest for row in rows])) == count
            assert deep_in_memory(transaction) == deep_in_table(ledger)
    for ledger in servers:
        digests = [answer(first, number).vector_digest for number in range(1, answered + 1)]
        with ledger.transaction() as transaction:
            assert len(transaction.known_answers(digests)) == answered
            for digest in digests[::7]:
                assert len(transaction.known_answers([digest])) == 1
    assert verify(first).answered == answered
    for ledger in servers:
        ledger.close()


def fail_after(ledger: Ledger, rows: list[AnswerRow]) -> None:
    """Record answers in a transaction that is not committed, as with a full disk."""
    with ledger.transaction() as transaction:
        transaction.record_answers(rows)
        raise LedgerUnavailableError("stopped")


def deep_in_memory(transaction: Transaction) -> set[tuple[int, int]]:
    """Return the blocks beyond those in memory that a transaction takes as stored."""
    image = transaction.image
    assert image is not None
    return image.noted_blocks()


def deep_in_table(ledger: Ledger) -> set[tuple[int, int]]:
    """Return the blocks beyond those in memory that the table has."""
    with ledger.snapshot() as connection:
        return {
            (level, block)
            for level, block, _ in every_block(connection, 1)
            if level > key_blocks.IMAGE_LEVELS
        }


def test_the_newest_refuse_a_second_answer_whatever_the_code_believes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a writer that looks nothing up is refused by the table's own key."""
    ledger = long_ledger(tmp_path / "believes.db")
    record(ledger, [answer(ledger, ANSWERS + 1)])
    monkeypatch.setattr(Transaction, "_refuse_recorded", lambda *_: None)
    again = answer(ledger, ANSWERS + 1)._replace(answer=RecordedAnswer(ANSWERS + 2, 0, stable=True))
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        transaction.record_answers([again])


def test_a_transaction_that_fails_leaves_the_keys_as_they_are_stored(tmp_path: Path) -> None:
    """What was sealed in memory and not committed is read again, and found as it is."""
    ledger = long_ledger(tmp_path / "fails.db")
    rows = [answer(ledger, number) for number in range(ANSWERS + 1, ANSWERS + 2 * NEWEST + 1)]

    with pytest.raises(LedgerUnavailableError):
        fail_after(ledger, rows)
    with ledger.transaction() as transaction:
        assert transaction.known_answers([row.vector_digest for row in rows]) == []
        transaction.record_answers(rows)
    assert verify(ledger).answered == ANSWERS + 2 * NEWEST


def test_a_key_with_a_qualifier_is_another_key(tmp_path: Path) -> None:
    """One vector with another active set has a digest of its own, which verification checks."""
    path = tmp_path / "qualified.db"
    ledger = long_ledger(path)
    plain = answer(ledger, 1)
    follows = RecordedAnswer(ANSWERS + 1, 1, stable=True)
    digest = ledger.digests.of_qualified(plain.vector_digest, b"active")
    record(ledger, [AnswerRow(digest, plain.vector, follows, b"active")])
    found = dict(ledger.known_answers([plain.vector_digest, digest]))
    assert found == {plain.vector_digest: plain.answer, digest: follows}
    assert verify(ledger).answered == ANSWERS + 1
    ledger.close()
    tamper(path, f"UPDATE answers SET qualifier = vector WHERE query_id = {ANSWERS + 1}")  # noqa: S608 -- a number
    assert "has a vector that does not give its digest" in account_of(path)


def test_a_block_that_lost_a_key_is_named(tmp_path: Path) -> None:
    """A vector whose key is lost would be answered afresh."""
    path = tmp_path / "lost.db"
    long_ledger(path).close()
    changed_block(path, lambda items: items[1:])
    assert account_of(path).endswith("has lost its key")


def test_a_block_out_of_order_is_named(tmp_path: Path) -> None:
    """A search in it would pass over what is there."""
    path = tmp_path / "order.db"
    long_ledger(path).close()
    changed_block(path, lambda items: items[::-1])
    assert account_of(path).endswith("is not in the order of its keys")


def test_a_block_with_a_key_twice_or_of_another_is_named(tmp_path: Path) -> None:
    """A key that is no answer's, one that is there twice, and one that belongs elsewhere."""
    path = tmp_path / "twice.db"
    ledger = long_ledger(path)
    stranger = answer(ledger, 700).vector_digest
    ledger.close()
    changed_block(path, lambda items: [items[0], *items])
    assert account_of(path).endswith("is no answer's, or that is elsewhere already")
    changed_block(path, lambda items: sorted([*items[1:], item_of(items[0][:1] + stranger[1:], 5)]))
    assert account_of(path).endswith("is no answer's, or that is elsewhere already")
    changed_block(path, lambda items: sorted([*items[1:], item_of(stranger, 5)]))
    assert "has a key" in account_of(path)


def test_a_block_cut_in_an_item_is_damage(tmp_path: Path) -> None:
    """Whoever reads it says so, the writer before anything is answered."""
    path = tmp_path / "cut.db"
    ledger = long_ledger(path)
    ledger.close()
    changed_block(path, lambda items: [*items[:-1], items[-1][:-1]])
    assert account_of(path) == "a block of keys does not hold whole keys"
    ledger = create(path)
    with pytest.raises(LedgerCorruptError), ledger.transaction() as transaction:
        transaction.known_answers([answer(ledger, 1).vector_digest])


def test_the_newest_without_a_key_are_named(tmp_path: Path) -> None:
    """One of the newest answers that is gone from there, and one too many."""
    path = tmp_path / "newest.db"
    ledger = long_ledger(path)
    record(ledger, [answer(ledger, ANSWERS + 1)])
    with ledger.snapshot() as connection:
        assert newest_count(connection) > 0
    ledger.close()
    tamper(path, f"UPDATE newest_answers SET query_id = 5 WHERE query_id = {ANSWERS + 1}")  # noqa: S608 -- a number
    assert account_of(path).startswith("the newest answers have a key that is no answer's")
    tamper(path, "DELETE FROM newest_answers")
    assert account_of(path).endswith("has lost its key")


def newest_count(connection: Connection) -> int:
    """Return how many answers are among the newest."""
    return int(connection.execute(text("SELECT COUNT(*) FROM newest_answers")).scalar_one())


def test_an_answer_out_of_order_is_refused(tmp_path: Path) -> None:
    """The planted fault: a row that skips a number, or takes one again, is no row."""
    ledger = long_ledger(tmp_path / "number.db")
    for number in (ANSWERS, ANSWERS + 2):
        with pytest.raises(InvariantError):
            record(ledger, [answer(ledger, number)])


@pytest.mark.sqlite_only(reason="it begins with a file of an earlier version")
def test_answers_of_before_are_found_beside_new_ones(tmp_path: Path) -> None:
    """Those of an earlier version stay where they are, and no key of theirs is answered again."""
    path = tmp_path / "old.db"
    write_old_ledger(path, "0007")
    ledger = create(path)
    before = list(ledger.answers_after(0))
    first = len(before) + 1
    for number in range(first, first + 3 * NEWEST):
        record(ledger, [answer(ledger, number)])
    rows = list(ledger.answers_after(0))
    with ledger.transaction() as transaction:
        assert len(transaction.known_answers([row.vector_digest for row in rows])) == len(rows)
        for row in rows:
            assert transaction.known_answers([row.vector_digest]) == [
                (row.vector_digest, row.answer)
            ]
    assert len(ledger.known_answers([row.vector_digest for row in rows])) == len(rows)
    for row in (before[0], rows[-1], rows[first]):
        again = row._replace(answer=RecordedAnswer(len(rows) + 1, 0, stable=True))
        with pytest.raises(InvariantError), ledger.transaction() as transaction:
            transaction.record_answers([again])
    assert verify(ledger).answered == len(rows)
