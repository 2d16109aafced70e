"""A ledger on disk: what is written is read, by this process and by the next."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError, LedgerCorruptError
from app.ledger.database.statements import read_head
from app.ledger.entries import newest_entries
from app.ledger.entries.chain import GENESIS, Head
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.entries.fold import EMPTY
from app.ledger.ledger import RELEASE_SECRET, Ledger, open_ledger
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from tests.builders.ledger.releases import (
    SECRET,
    answer,
    answer_many,
    create,
    middle_of_life,
    open_release,
    publish,
    record,
    tamper,
    url_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection

    from app.ledger.entries.fold import LedgerState


def test_new_ledger_is_empty(tmp_path: Path) -> None:
    """A ledger that was just created says nothing."""
    ledger = create(tmp_path / "new.db")
    assert ledger.read_state() == EMPTY
    assert list(ledger.answers_after(0)) == []
    assert list(ledger.keys()) == []
    assert ledger.public_entries(0, 10) == []
    assert ledger.private(RELEASE_SECRET) is None


def test_a_state_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that another server commits while this one reads is in the next state alone."""
    path = tmp_path / "shared.db"
    writer = middle_of_life(path)
    writer.close()
    writer, reader = create(path), create(path)
    assert reader.read_state() == writer.read_state()  # so that what follows goes on from there
    answer_many(writer, batches=1, batch_size=1)
    before = writer.read_state()

    def overtaken(connection: Connection, release_number: int) -> Head:
        head = read_head(connection, release_number)
        monkeypatch.setattr(newest_entries, "read_head", read_head)
        answer_many(writer, batches=1, batch_size=1)
        return head

    monkeypatch.setattr(newest_entries, "read_head", overtaken)
    assert reader.read_state() == before
    assert reader.read_state() == writer.read_state() != before


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """State, answers, keys and private state are the same for the next process."""
    first = middle_of_life(tmp_path / "life.db")
    publish(first)
    state, answers, keys = first.read_state(), list(first.answers_after(0)), list(first.keys())
    first.close()
    second = create(tmp_path / "life.db")
    assert second.read_state() == state
    assert list(second.answers_after(0)) == answers
    assert list(second.keys()) == keys
    assert second.private(RELEASE_SECRET) == SECRET
    assert second.private("ensemble") == b"trees" * 100
    assert (state.answered, state.unstable) == (9, 2)


def test_recorded_answers_read_back_as_given(tmp_path: Path) -> None:
    """A row keeps number, digest, vector, label and flag, an abstention included."""
    ledger = create(tmp_path / "rows.db")
    open_release(ledger)
    rows = [answer(ledger, 1, label=5), answer(ledger, 2, label=None, stable=False)]
    record(ledger, rows)
    assert list(ledger.answers_after(0)) == rows
    assert list(ledger.answers_after(1)) == rows[1:]
    assert list(ledger.answers_after(2)) == []


def test_answers_are_read_across_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a page at a time passes over no row, answers, keys and entries alike."""
    ledger = create(tmp_path / "pages.db")
    open_release(ledger, queries=None)
    answer_many(ledger, batches=2, batch_size=3000)
    with ledger.transaction() as transaction:
        for number in range(1, 6001):
            transaction.record_key(
                ledger.digests.of_key(str(number)), answer(ledger, number).vector_digest
            )
    monkeypatch.setattr("app.ledger.database.statements.PAGE_ROWS", 2)
    assert [row.answer.query_id for row in ledger.answers_after(0)] == list(range(1, 6001))
    assert len(dict(ledger.keys())) == 6000
    assert open_ledger(url_of(tmp_path / "pages.db"), create=False).read_state().answered == 6000


def test_key_is_kept_without_an_entry(tmp_path: Path) -> None:
    """A new key on a recorded vector changes no head."""
    ledger = middle_of_life(tmp_path / "key.db")
    head = ledger.read_state().head
    vector_digest = answer(ledger, 2).vector_digest
    with ledger.transaction() as transaction:
        transaction.record_key(ledger.digests.of_key("later"), vector_digest)
    assert ledger.read_state().head == head
    assert dict(ledger.keys())[ledger.digests.of_key("later")] == vector_digest


def test_public_entries_come_in_pages_that_chain(tmp_path: Path) -> None:
    """Pages of entries join: each begins with the hash that the one before ended with."""
    ledger = middle_of_life(tmp_path / "entries.db")
    length = ledger.read_state().head.sequence
    whole = ledger.public_entries(0, 1000)
    assert [entry["sequence"] for entry in whole] == list(range(1, length + 1))
    assert whole[0]["previous_hash"] == GENESIS.hash
    assert whole == [ledger.public_entries(after, 1)[0] for after in range(length)]
    assert ledger.public_entries(length, 10) == []
    assert ledger.public_entries(length + 5, 10) == []
    assert ledger.public_entries(0, 0) == []


def test_secret_of_the_database_is_drawn_once(tmp_path: Path) -> None:
    """A database keeps the secret of its first opening, whatever the noise says later."""
    words = [int.from_bytes(bytes([number] * 8)) for number in range(1, 9)]
    first = open_ledger(url_of(tmp_path / "s.db"), create=True, noise=ScriptedNoise(words))
    secret = first.database_secret()
    first.close()
    assert len(secret) == 32
    assert create(tmp_path / "s.db").database_secret() == secret
    assert open_ledger(url_of(tmp_path / "s.db"), create=False).database_secret() == secret
    other = open_ledger(url_of(tmp_path / "other.db"), create=True)
    assert other.database_secret() != secret


@pytest.mark.sqlite_only(reason="about the file")
def test_files_are_closed_to_everyone_but_their_owner(tmp_path: Path) -> None:
    """The database and the files beside it have mode 0600, even one that was open wider."""
    (tmp_path / "mode.db").touch(mode=0o644)
    ledger = middle_of_life(tmp_path / "mode.db")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"mode.db": 0o600, "mode.db-wal": 0o600, "mode.db-shm": 0o600}
    ledger.close()


@pytest.mark.sqlite_only(reason="about the file")
def test_commits_are_durable_by_setting(tmp_path: Path) -> None:
    """The writer's connection has a write-ahead log and flushes it at every commit."""
    ledger = create(tmp_path / "pragma.db")
    writer = ledger._database.writer
    assert writer is not None
    with writer.connect() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers")
        ]
    assert found == ["wal", 2, 1, 1]


def test_large_private_state_is_kept(tmp_path: Path) -> None:
    """A piece of fifty megabytes is kept and checked."""
    ledger = create(tmp_path / "large.db")
    body = bytes(50 * 2**20)
    open_release(ledger)
    with ledger.transaction() as transaction:
        digest = transaction.put_private("large", body)
        transaction._unbound.clear()
    assert len(digest) == 64
    with ledger.snapshot() as connection:
        found = connection.exec_driver_sql(
            "SELECT length(body) FROM private_state WHERE name = 'large'"
        ).scalar()
    assert found == len(body)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE private_state SET body = x'00' WHERE name = 'ensemble'", "an altered piece: ens"),
        ("DELETE FROM private_state WHERE name = 'ensemble'", "is missing a piece: ensemble"),
        ("DELETE FROM private_state WHERE name = 'release-secret'", "is missing a piece"),
        pytest.param(
            "UPDATE private_state SET body = 'text' WHERE name = 'ensemble'",
            "of a wrong type",
            marks=pytest.mark.sqlite_only(reason="PostgreSQL keeps to the types of its columns"),
        ),
        (
            "UPDATE private_state SET body = x'00' WHERE name = 'release-secret'",
            "an altered piece: ensemble",
        ),
    ],
)
def test_altered_private_state_is_not_handed_out(
    tmp_path: Path, statement: str, problem: str
) -> None:
    """A piece that is not what its entry bound is refused by name."""
    middle_of_life(tmp_path / "altered.db").close()
    tamper(tmp_path / "altered.db", statement)
    ledger = create(tmp_path / "altered.db")
    with pytest.raises(LedgerCorruptError, match=problem):
        ledger.private("ensemble")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answer_groups SET body = 'text' WHERE last_query_id = 3",
        "UPDATE answer_groups SET first_query_id = 'text' WHERE last_query_id = 3",
        "UPDATE answer_groups SET sequence = 'text' WHERE last_query_id = 3",
    ],
)
@pytest.mark.sqlite_only(reason="PostgreSQL keeps to the types of its columns")
def test_value_of_a_wrong_type_is_not_handed_out(tmp_path: Path, statement: str) -> None:
    """An answer that holds a type it was not written with stops the reader."""
    middle_of_life(tmp_path / "type.db").close()
    tamper(tmp_path / "type.db", statement)
    with pytest.raises(LedgerCorruptError, match="a value of a wrong type"):
        list(create(tmp_path / "type.db").answers_after(0))


def test_second_writer_is_caught_up_with(tmp_path: Path) -> None:
    """A transaction starts from what the database holds, whoever wrote it."""
    first = middle_of_life(tmp_path / "two.db")
    second = create(tmp_path / "two.db")
    record(second, [answer(second, 10)])
    with first.transaction() as transaction:
        assert transaction.state.answered == 10
        assert transaction.head() == second.read_state().head
        transaction.record_answers([answer(first, 11)])
    assert second.read_state().answered == 11
    verify(second)


@pytest.mark.sqlite_only(reason="of its number for what others committed")
def test_entries_are_read_only_where_somebody_else_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a commit of its own a transaction reads no entry; after another's it folds that."""
    ledger, other = create(tmp_path / "both.db"), create(tmp_path / "both.db")
    open_release(ledger)
    reads: list[int] = []
    catch_up = Ledger._catch_up

    def counted(self: Ledger, connection: Connection, known: LedgerState) -> LedgerState:
        reads.append(1)
        return catch_up(self, connection, known)

    monkeypatch.setattr(Ledger, "_catch_up", counted)
    for query_id in (1, 2):
        record(ledger, [answer(ledger, query_id)])
    assert not reads
    record(other, [answer(other, 3)])
    reads.clear()
    record(ledger, [answer(ledger, 4)])
    assert len(reads) == 1
    assert ledger.read_state().answered == 4
    for each in (ledger, other):
        each.close()


def test_older_copy_of_the_database_is_noticed(tmp_path: Path) -> None:
    """A ledger that is shorter than this process knows it is refused."""
    ledger = middle_of_life(tmp_path / "short.db")
    tamper(
        tmp_path / "short.db",
        "DELETE FROM answers WHERE sequence = 9",
        "DELETE FROM entries WHERE sequence = 9",
    )
    with pytest.raises(LedgerCorruptError, match="ends at entry 8 and had entry 9 before"):
        ledger.read_state()


def test_exchanged_entry_is_noticed(tmp_path: Path) -> None:
    """A newest entry that is not the one this process wrote is refused."""
    ledger = middle_of_life(tmp_path / "exchanged.db")
    tamper(tmp_path / "exchanged.db", "UPDATE entries SET hash = '1' WHERE sequence = 9")
    with pytest.raises(LedgerCorruptError, match="entry 9 was exchanged"), ledger.transaction():
        pass


def test_ledger_opened_for_reading_is_not_written(tmp_path: Path) -> None:
    """A reader has no transaction, and its connections refuse to write."""
    middle_of_life(tmp_path / "reader.db").close()
    reader = open_ledger(url_of(tmp_path / "reader.db"), create=False)
    with pytest.raises(InvariantError, match="is not written"), reader.transaction():
        pass
    with reader.snapshot() as connection, pytest.raises(Exception, match=r"read-?only"):
        connection.exec_driver_sql("DELETE FROM answers")


@pytest.mark.sqlite_only(reason="about the file")
def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    """Opening for reading changes neither the file nor its folder."""
    path = tmp_path / "trace.db"
    middle_of_life(path).close()
    before = path.read_bytes()
    reader = open_ledger(url_of(path), create=False)
    verify(reader)
    reader.close()
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["trace.db"]


def test_halt_outlives_the_process(tmp_path: Path) -> None:
    """A halted release gives no answer after a restart either."""
    first = middle_of_life(tmp_path / "halt.db")
    with first.transaction() as transaction:
        transaction.append(ReleaseHalted(reason="stopped"))
    first.close()
    second = create(tmp_path / "halt.db")
    with pytest.raises(InvariantError, match="comes after ReleaseHalted"):
        record(second, [answer(second, 10)])
