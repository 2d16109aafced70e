"""Several releases in one database: numbers of their own, and nothing shared but the secret."""
# ruff: noqa: S608 -- the statements are made of constants

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError, LedgerCorruptError, VerificationError
from app.ledger.entries.entry_kinds import ReleaseClosed, ReleaseReopened
from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.ledger import RELEASE_SECRET, Ledger, open_ledger
from app.ledger.releases import RELEASES_MAX, Promise, composed
from app.ledger.verification import verify
from tests.builders.ledger.releases import (
    SECRET,
    answer,
    answer_many,
    create,
    open_release,
    opened,
    publish,
    record,
    tamper,
    url_of,
)

if TYPE_CHECKING:
    from pathlib import Path

BOTH = {EPSILON_KEY: "2", DELTA_KEY: "1/500000"}
ANSWER_COLUMNS = "query_id, sequence, vector_digest, vector, label, stable, precision, bin_index"


def two_releases(path: Path) -> tuple[Ledger, Ledger]:
    """Open two releases in one database, the second with a composed budget that is exact."""
    first, second = create(path, "first"), create(path, "second")
    open_release(first, name="first")
    open_release(second, name="second", parameters=BOTH)
    return first, second


def open_and_fail(ledger: Ledger) -> None:
    """Append the opening of a second release in a transaction that fails after it."""
    with ledger.transaction() as transaction:
        digest = transaction.put_private(RELEASE_SECRET, SECRET)
        transaction.append(opened(name="second", private_digests={RELEASE_SECRET: digest}))
        assert len(transaction.openings) == 2
        raise ZeroDivisionError


def test_releases_count_their_own_entries_and_answers(tmp_path: Path) -> None:
    """Two releases that answer by turns have numbers without gaps, each from 1."""
    first, second = two_releases(tmp_path / "two.db")
    for _ in range(2):
        answer_many(first, batches=2, batch_size=1)
        answer_many(second, batches=1, batch_size=2)
    publish(second)
    assert (first.release_number, second.release_number) == (1, 2)
    assert (first.read_state().answered, first.read_state().head.sequence) == (4, 9)
    assert (second.read_state().answered, second.read_state().head.sequence) == (4, 9)
    assert first.read_state().classifier is None
    verify(first)
    verify(second)


def test_releases_share_no_key_answer_or_piece(tmp_path: Path) -> None:
    """What one release recorded, another reads nothing of, nor does its transaction."""
    first, second = create(tmp_path / "two.db", "first"), create(tmp_path / "two.db", "second")
    open_release(first, name="first", further={"extra": b"of the first"})
    with first.transaction() as transaction:
        row = answer(first, 1)
        transaction.record_answers([row])
        transaction.record_key(first.digests.of_key("key"), row.vector_digest)
    assert second.read_state().release is None
    open_release(second, name="second")
    assert list(second.answers_after(0)) == []
    assert list(second.keys()) == []
    assert second.private("extra") is None
    with second.transaction() as transaction:
        assert transaction.known_keys([first.digests.of_key("key")]) == []
        transaction.record_answers([answer(second, 1, label=1)])
        transaction.record_key(first.digests.of_key("key"), row.vector_digest)
    assert [found.answer.label for found in first.answers_after(0)] == [0]
    assert [found.answer.label for found in second.answers_after(0)] == [1]
    record(first, [answer(first, 2)])
    assert [entry["sequence"] for entry in second.public_entries(5, 10)] == [6]
    assert [entry["sequence"] for entry in first.public_entries(5, 10)] == [6, 7]


def test_a_release_is_found_by_its_name(tmp_path: Path) -> None:
    """Each name opens the release of that name, to read or to write, whatever the order."""
    path = tmp_path / "two.db"
    for ledger in two_releases(path):
        ledger.close()
    for name, number in (("second", 2), ("first", 1)):
        for create_allowed in (True, False):
            ledger = open_ledger(url_of(path), create=create_allowed, name=name)
            release = ledger.read_state().release
            assert release is not None
            assert (release.name, ledger.release_number) == (name, number)
            assert [opening.name for opening in ledger.openings] == ["first", "second"]
            ledger.close()


def test_a_name_that_is_not_there_is_not_read(tmp_path: Path) -> None:
    """Whoever only reads is told which releases there are; a database without one is empty."""
    path = tmp_path / "two.db"
    create(path).close()
    assert open_ledger(url_of(path), create=False, name="any").read_state().release is None
    two_releases(path)
    with pytest.raises(ConfigurationError) as refused:
        open_ledger(url_of(path), create=False, name="frist")
    assert str(refused.value) == (
        'release.name: no release "frist" in the ledger: "first", "second"'
    )


def test_a_release_takes_the_number_that_is_free_under_the_lock(tmp_path: Path) -> None:
    """One that was to be second and finds another opened meanwhile becomes the third."""
    path = tmp_path / "race.db"
    first, late = create(path, "first"), create(path, "late")
    open_release(first, name="first")
    assert late.read_state().release is None
    assert late.release_number == 2
    open_release(create(path, "quick"), name="quick")
    open_release(late, name="late")
    assert late.release_number == 3
    assert [opening.name for opening in late.openings] == ["first", "quick", "late"]


def test_a_ledger_learns_of_a_release_opened_beside_it(tmp_path: Path) -> None:
    """A release that was alone knows of another from its next transaction on."""
    path = tmp_path / "beside.db"
    first = create(path, "first")
    open_release(first, name="first")
    assert composed(first.openings) is None
    open_release(create(path, "second"), name="second", parameters=BOTH)
    answer_many(first, batches=1, batch_size=1)
    assert composed(first.openings) == Promise(Fraction(2), Fraction(1, 500_000))


def test_a_release_undone_leaves_its_number_free(tmp_path: Path) -> None:
    """An opening that is rolled back is no release, and the next one takes its number."""
    first = create(tmp_path / "undone.db", "first")
    open_release(first, name="first")
    second = create(tmp_path / "undone.db", "second")
    with pytest.raises(ZeroDivisionError):
        open_and_fail(second)
    assert len(second.openings) == 1
    third = create(tmp_path / "undone.db", "third")
    open_release(third, name="third")
    assert third.release_number == 2


@pytest.mark.parametrize(
    ("statement", "holds"),
    [
        (BOTH, True),
        ({EPSILON_KEY: "3", DELTA_KEY: "1/100"}, True),
        ({}, False),
        ({EPSILON_KEY: "2"}, False),
        (BOTH | {EPSILON_KEY: "1999999999999/1000000000000"}, False),
        (BOTH | {DELTA_KEY: "1/500001"}, False),
    ],
)
def test_verify_names_a_release_that_states_too_little(
    tmp_path: Path, statement: dict[str, str], *, holds: bool
) -> None:
    """A later release states at least the exact sum; the first, which was alone, nothing."""
    first, second = create(tmp_path / "l.db", "first"), create(tmp_path / "l.db", "second")
    open_release(first, name="first")
    open_release(second, name="second", parameters=statement)
    verify(first)
    if holds:
        verify(second)
        return
    with pytest.raises(VerificationError) as failed:
        verify(second)
    assert str(failed.value) == (
        "release 2 of the database was opened beside others, "
        "and states no composed budget that covers them"
    )


TAMPERED = [
    ("UPDATE entries SET body = '{}' WHERE release_number = {n} AND sequence = 3", "entry 3"),
    ("DELETE FROM entries WHERE release_number = {n} AND sequence > 5", "answer 1 is in"),
    ("UPDATE answers SET label = 1 WHERE release_number = {n} AND query_id = 2", "entry 6"),
    ("DELETE FROM answers WHERE release_number = {n} AND query_id = 3", "answer 3"),
    (
        "UPDATE private_state SET body = x'00' WHERE release_number = {n} AND name = 'ensemble'",
        "of another release: ensemble",
    ),
    (
        (
            "UPDATE private_state SET body = (SELECT body FROM private_state WHERE "
            "release_number = 3 - {n} AND name = 'permutation') "
            "WHERE release_number = {n} AND name = 'ensemble'"
        ),
        "of another release: ensemble",
    ),
    (
        "INSERT INTO idempotency_keys VALUES ({n}, zeroblob(32), zeroblob(32), NULL)",
        "an idempotency key is kept",
    ),
]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("statement", "problem"), TAMPERED)
def test_what_is_altered_in_one_release_does_not_touch_the_other(
    tmp_path: Path, statement: str, problem: str, number: int
) -> None:
    """Verify names what is wrong with the one and passes for the other."""
    path = tmp_path / "tampered.db"
    both = two_releases(path)
    for ledger in both:
        answer_many(ledger, batches=2, batch_size=2)
        ledger.close()
    tamper(path, statement.replace("{n}", str(number)))
    for name in ("first", "second"):
        reader = open_ledger(url_of(path), create=False, name=name)
        if reader.release_number != number:
            assert verify(reader).answered == 4
            continue
        with pytest.raises(VerificationError, match=problem):
            verify(reader)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            (
                "INSERT INTO private_state SELECT 7, name, digest, body FROM private_state "
                "WHERE release_number = 1 AND name = 'ensemble'"
            ),
            "the private state has a piece of release 7, which is not there: ensemble",
        ),
        (
            "INSERT INTO idempotency_keys VALUES (0, zeroblob(32), zeroblob(32), NULL)",
            "the table idempotency_keys has a row of release 0, which is not there",
        ),
        (
            (
                f"INSERT INTO answers (release_number, {ANSWER_COLUMNS}) "
                f"SELECT 5, {ANSWER_COLUMNS} FROM answers WHERE release_number = 1"
            ),
            "the table answer_groups has a row of release 5, which is not there",
        ),
    ],
)
def test_a_row_of_a_release_that_is_not_there_is_named(
    tmp_path: Path, statement: str, problem: str
) -> None:
    """Rows that belong to no release of the database are told, with the piece's name."""
    path = tmp_path / "stray.db"
    first, _ = two_releases(path)
    answer_many(first, batches=1, batch_size=1)
    tamper(path, statement)
    with pytest.raises(VerificationError) as failed:
        verify(open_ledger(url_of(path), create=False, name="first"))
    assert str(failed.value) == problem


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            "DELETE FROM entries WHERE release_number = 1",
            "release 1 of the database: its entries are missing",
        ),
        (
            "UPDATE entries SET body = replace(body, 'first', 'other') WHERE release_number = 1",
            "release 1 of the database: entry 1 does not have the hash",
        ),
        (
            "DELETE FROM entries WHERE release_number = 2 AND sequence = 1",
            "release 2 of the database: entry 1 is missing: entry 2 is where it should be",
        ),
        (
            f"UPDATE entries SET release_number = {RELEASES_MAX + 1} WHERE release_number = 2",
            f"the database counts {RELEASES_MAX + 1} releases, more than it can hold",
        ),
    ],
)
def test_a_first_entry_that_is_lost_stops_every_release(
    tmp_path: Path, statement: str, problem: str
) -> None:
    """Names are in first entries, so that no release opens where one of them does not hold."""
    path = tmp_path / "lost.db"
    two_releases(path)
    tamper(path, statement)
    for name in ("first", "second", "third"):
        with pytest.raises(LedgerCorruptError, match=problem):
            create(path, name).read_state()


def test_a_backup_is_known_by_the_newest_entry_of_any_release(tmp_path: Path) -> None:
    """A release closed in a copy, or retired to be moved, makes the database one; retired not."""
    first, second = two_releases(tmp_path / "copy.db")
    with first.transaction() as transaction:
        transaction.append(ReleaseClosed(reason="retired"))
    assert not first.is_backup()
    with second.transaction() as transaction:
        transaction.append(ReleaseClosed(reason="backup"))
    assert first.is_backup()
    assert second.is_backup()
    moved, _ = two_releases(tmp_path / "moved.db")
    with moved.transaction() as transaction:
        transaction.append(ReleaseClosed(reason="retired", transfer="cd" * 32))
    assert moved.is_backup()
    with moved.transaction() as transaction:
        transaction.append(ReleaseReopened(reason="moved"))
    assert not moved.is_backup()
    tamper(tmp_path / "copy.db", "UPDATE entries SET body = '{}' WHERE kind = 'ReleaseClosed'")
    with pytest.raises(LedgerCorruptError, match="release 1 ends with no sound entry"):
        first.is_backup()


def test_a_database_that_forgets_a_release_is_refused(tmp_path: Path) -> None:
    """A release that a process knew and that is gone stops the next transaction."""
    path = tmp_path / "forgotten.db"
    first, second = two_releases(path)
    second.close()
    answer_many(first, batches=1, batch_size=1)
    tamper(path, "DELETE FROM entries WHERE release_number = 2")
    with pytest.raises(LedgerCorruptError, match="counts 1 releases and had 2 before"):
        answer_many(first, batches=1, batch_size=1)
