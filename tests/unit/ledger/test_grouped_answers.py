"""Answers in groups: planted faults are refused or told, and every answer is found.

The groups of ``middle_of_life`` have the answers 1 to 3, 4 to 6, 7, and 8 and 9, of entries 6 to 9.
"""
# ruff: noqa: S608 -- the statements are made of numbers and bytes of ours

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerCorruptError, VerificationError
from app.ledger.answer_index import key_blocks
from app.ledger.database.answer_groups import ANSWERS_MAX, pack
from app.ledger.database.answer_tables import (
    GROUPS_READ,
    each_answer,
    read_answer,
    read_answer_count,
    read_numbered,
)
from app.ledger.ledger import AnswerRow, Ledger, RecordedAnswer, Transaction, open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import going_on
from tests.builders.ledger.releases import (
    answer,
    create,
    middle_of_life,
    open_release,
    record,
    tamper,
    url_of,
)

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = 4


def account_of(path: Path) -> str:
    """Return what verification says is wrong."""
    with pytest.raises((VerificationError, LedgerCorruptError)) as refused:
        verify(open_ledger(url_of(path), create=False))
    return str(refused.value)


def body_of(rows: list[AnswerRow]) -> str:
    """Return the body of a group as SQL writes it."""
    return f"x'{pack(*zip(*rows, strict=True)).hex()}'"


def groups_of(ledger: Ledger) -> list[tuple[int, int, int]]:
    """Return the first and the last number of each group, and its entry's number."""
    query = (
        "SELECT first_query_id, last_query_id, sequence FROM answer_groups ORDER BY last_query_id"
    )
    with ledger.snapshot() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_a_group_has_answers_of_one_entry(tmp_path: Path) -> None:
    """Each entry begins a group, and has as many as its answers need."""
    ledger = middle_of_life(tmp_path / "groups.db")
    assert groups_of(ledger) == [(1, 3, 6), (4, 6, 7), (7, 7, 8), (8, 9, 9)]
    with ledger.snapshot() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM answers").scalar() == 0
    many = [answer(ledger, number) for number in range(10, 10 + 3 * ANSWERS_MAX)]
    record(ledger, many)
    counts = [last - first + 1 for first, last, _ in groups_of(ledger)[4:]]
    assert sum(counts) == 3 * ANSWERS_MAX
    assert 1 < max(counts) <= ANSWERS_MAX
    assert list(ledger.answers_after(9)) == many
    verify(ledger)


def test_answers_after_any_number_are_read_on(tmp_path: Path) -> None:
    """Within a group, at its end, and over more groups than are read together."""
    ledger = create(tmp_path / "pages.db")
    open_release(ledger)
    with ledger.transaction() as transaction:
        for first in range(1, 3 * GROUPS_READ, 3):
            transaction.record_answers([answer(ledger, first + more) for more in range(3)])
    count = 3 * GROUPS_READ
    extra = [answer(ledger, count + 1), answer(ledger, count + 2)]
    record(ledger, extra)
    for after in (0, 1, 2, 3, count - 1, count, count + 1, count + 2):
        numbers = [row.answer.query_id for row in ledger.answers_after(after)]
        assert numbers == [*range(after + 1, count + 3)]
        with ledger.snapshot() as connection:
            assert read_answer_count(connection, 1, after) == (count + 2 - after, count + 2)
            placed = [row.answer.query_id for _, row in each_answer(connection, 1, after)]
            assert placed == numbers


@pytest.mark.sqlite_only(reason="it begins with a file of an earlier version")
def test_single_answers_come_before_groups(tmp_path: Path) -> None:
    """Those of an earlier version are read, counted and found as those in groups."""
    ledger = going_on(tmp_path / "both.db")
    rows = list(ledger.answers_after(0))
    count = len(rows)
    assert groups_of(ledger) == [(count - 4, count - 2, 12), (count - 1, count, 13)]
    for after in range(count + 1):
        assert list(ledger.answers_after(after)) == rows[after:]
        with ledger.snapshot() as connection:
            assert read_answer_count(connection, 1, after) == (count - after, count)
    with ledger.snapshot() as connection:
        expected = [(row.vector_digest, row.answer) for row in rows]
        assert read_numbered(connection, 1, range(1, count + 1)) == expected
        assert [read_answer(connection, 1, number) for number in range(1, count + 1)] == expected
    verify(ledger)


def test_a_body_that_names_another_vector_is_named(tmp_path: Path) -> None:
    """The planted fault: its digest is the entry's, and its vector gives another."""
    path = tmp_path / "vector.db"
    ledger = middle_of_life(path)
    rows = list(ledger.answers_after(0))[:3]
    ledger.close()
    rows[1] = rows[1]._replace(vector=b"vector 5")
    tamper(path, f"UPDATE answer_groups SET body = {body_of(rows)} WHERE last_query_id = 3")
    assert account_of(path) == (
        "answer 2 in the answers table has a vector that does not give its digest"
    )


@pytest.mark.parametrize(("first", "number"), [(3, 3), (1, 1)])
def test_groups_that_overlap_are_named(tmp_path: Path, first: int, number: int) -> None:
    """The planted fault: an answer that is in two groups, once with another label."""
    path = tmp_path / "overlap.db"
    ledger = middle_of_life(path)
    rows = list(ledger.answers_after(first - 1))[: 7 - first]
    ledger.close()
    other = rows[0]._replace(answer=RecordedAnswer(first, 1, stable=True))
    body = body_of([other, *rows[1:]])
    tamper(
        path,
        f"UPDATE answer_groups SET first_query_id = {first}, body = {body} WHERE last_query_id = 6",
    )
    assert account_of(path) == f"answer {number} is in two rows of answers"


@pytest.mark.sqlite_only(reason="it begins with a file of an earlier version")
def test_a_group_that_overlaps_single_answers_is_named(tmp_path: Path) -> None:
    """The planted fault: the last answer with a row of its own is in the first group too."""
    path = tmp_path / "overlap.db"
    ledger = going_on(path)
    first, last, _ = groups_of(ledger)[0]
    rows = list(ledger.answers_after(first - 2))[: last - first + 2]
    ledger.close()
    tamper(
        path,
        f"UPDATE answer_groups SET first_query_id = {first - 1}, body = {body_of(rows)} "
        f"WHERE last_query_id = {last}",
    )
    assert account_of(path) == f"answer {first - 1} is in two rows of answers"


def test_a_group_of_another_entry_is_named(tmp_path: Path) -> None:
    """The planted fault: its answers are right, and its entry has others."""
    path = tmp_path / "entry.db"
    middle_of_life(path).close()
    tamper(path, "UPDATE answer_groups SET sequence = 7 WHERE last_query_id = 3")
    assert account_of(path) == (
        "answer 1 in the answers table belongs to entry 7 there, and to entry 6 in the chain"
    )


@pytest.mark.parametrize(
    "change",
    [
        "first_query_id = 2",
        "last_query_id = 64, first_query_id = 1",
        "body = x''",
        "body = x'010001'",
        "body = x'02'",
    ],
)
def test_a_malformed_group_is_refused_by_all_who_read_it(tmp_path: Path, change: str) -> None:
    """By verify, by whoever repeats an answer, and by whoever reads on."""
    path = tmp_path / "malformed.db"
    middle_of_life(path).close()
    tamper(path, f"UPDATE answer_groups SET {change} WHERE last_query_id = 3")
    assert account_of(path)
    ledger = create(path)
    with pytest.raises(LedgerCorruptError):
        list(ledger.answers_after(0))
    digests = [answer(ledger, number).vector_digest for number in (1, 2)]
    for some in (digests, digests[:1]):
        with pytest.raises(LedgerCorruptError):
            ledger.known_answers(some)
        with pytest.raises(LedgerCorruptError), ledger.transaction() as transaction:
            transaction.known_answers(some)


def test_an_answer_between_groups_is_missing(tmp_path: Path) -> None:
    """A number that no group has is told, though a later group is there."""
    path = tmp_path / "missing.db"
    middle_of_life(path).close()
    tamper(path, "DELETE FROM answer_groups WHERE last_query_id = 6")
    ledger = open_ledger(url_of(path), create=False)
    digests = [answer(ledger, number).vector_digest for number in (5, 1)]
    for some in (digests, digests[:1]):
        with pytest.raises(LedgerCorruptError, match="answer 5 is missing"):
            ledger.known_answers(some)
    with ledger.snapshot() as connection, pytest.raises(LedgerCorruptError, match="answer 5 is"):
        read_answer(connection, 1, 5)


@pytest.mark.parametrize("number", [-1, 1 << 48])
def test_a_newest_key_with_a_number_that_no_answer_has_is_refused(
    tmp_path: Path, number: int
) -> None:
    """The planted fault: verification names it, and who reads the index to record an answer."""
    path = tmp_path / "number.db"
    middle_of_life(path).close()
    tamper(path, f"UPDATE newest_answers SET query_id = {number} WHERE query_id = 9")
    assert "newest answers" in account_of(path)
    ledger = open_ledger(url_of(path), create=True)
    with pytest.raises(LedgerCorruptError, match="no answer's number"):
        record(ledger, [answer(ledger, 10)])


@pytest.mark.parametrize("before", [1, NEWEST])
def test_a_digest_that_occurs_twice_with_the_newest_part_full_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """The planted fault: no table refuses what a writer that looks nothing up sends to blocks."""
    monkeypatch.setattr(key_blocks, "NEWEST_MAX", NEWEST)
    path = tmp_path / "twice.db"
    ledger = create(path)
    open_release(ledger)
    record(ledger, [answer(ledger, number) for number in range(1, before + 1)])
    monkeypatch.setattr(Transaction, "_refuse_recorded", lambda *_: None)
    again = answer(ledger, 1)._replace(answer=RecordedAnswer(before + 1, 0, stable=True))
    more = [answer(ledger, number) for number in range(before + 2, before + NEWEST + 1)]
    record(ledger, [again, *more])
    assert account_of(path) == (
        f"answer {before + 1} in the answers table repeats the vector of answer 1"
    )


@pytest.mark.sqlite_only(reason="of its trace; the statements are those of PostgreSQL")
def test_keys_that_fill_the_newest_part_are_never_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go to blocks at once; fewer are rows until the part is full."""
    monkeypatch.setattr(key_blocks, "NEWEST_MAX", NEWEST)
    ledger = create(tmp_path / "full.db")
    open_release(ledger)
    statements: list[str] = []
    with ledger.transaction() as transaction:
        driver = transaction._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(statements.append)
        transaction.record_answers([answer(ledger, number) for number in range(1, NEWEST + 1)])
        assert not [each for each in statements if each.startswith("INSERT INTO newest_answers")]
        transaction.record_answers([answer(ledger, NEWEST + 1)])
        driver.set_trace_callback(None)
    newest = {each for each in statements if each.startswith("INSERT INTO newest_answers")}
    assert len(newest) == 1
    assert verify(ledger).answered == NEWEST + 1
