"""Verification names the first thing that is not what was written."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from app.errors import ConclaveError, InvariantError, LedgerCorruptError, VerificationError
from app.ledger.entries.chain import Head, entry_hash, next_entry
from app.ledger.entries.entry_kinds import ReleaseHalted
from app.ledger.ledger import Transaction, open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import (
    create,
    middle_of_life,
    publish,
    refreshed_epochs,
    tamper,
    url_of,
)
from tests.builders.ledger.whole_bodies import store_whole

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import AnswerRow
    from app.ledger.verification import VerificationReport


def account_of(path: Path, expect_head: str | None = None) -> str:
    """Return what verification says is wrong."""
    with pytest.raises((VerificationError, LedgerCorruptError)) as raised:
        verify(open_ledger(url_of(path), create=False), expect_head)
    return str(raised.value)


def test_sound_ledger_is_reported(tmp_path: Path) -> None:
    """The report has the head, the counters and the exact charges."""
    ledger = middle_of_life(tmp_path / "sound.db")
    report = verify(ledger)
    assert report.head == ledger.read_state().head
    assert (report.answered, report.unstable) == (9, 2)
    assert report.epsilon_charged == Fraction(7, 10)
    assert report.delta_charged == Fraction(1, 10**6)
    publish(ledger)
    assert verify(ledger).epsilon_charged == 1


def test_empty_ledger_verifies(tmp_path: Path) -> None:
    """A ledger without a release has nothing wrong with it."""
    report = verify(create(tmp_path / "empty.db"))
    assert (report.head.sequence, report.answered, report.epsilon_charged) == (0, 0, Fraction(0))


def test_every_earlier_head_occurs_in_the_chain(tmp_path: Path) -> None:
    """A hash noted at any time is found, in either case of letters."""
    ledger = middle_of_life(tmp_path / "heads.db")
    for entry in ledger.public_entries(0, 100):
        verify(ledger, str(entry["hash"]))
        verify(ledger, f" {str(entry['hash']).upper()}\n")


def test_refreshed_thresholds_are_reported(tmp_path: Path) -> None:
    """A ledger whose hits drew noise verifies, each piece of it included."""
    ledger = refreshed_epochs(tmp_path / "refreshed.db")
    assert (verify(ledger).answered, verify(ledger).unstable) == (4, 3)


@pytest.mark.parametrize("name", ["threshold-noise-0", "threshold-noise-1", "threshold-noise-3"])
def test_the_noise_of_any_epoch_is_missed(tmp_path: Path, name: str) -> None:
    """A threshold's noise that is gone is named, that of an epoch that has ended too."""
    path = tmp_path / "noise.db"
    refreshed_epochs(path).close()
    tamper(path, f"DELETE FROM private_state WHERE name = '{name}'")  # noqa: S608 -- a name of ours
    assert account_of(path) == f"the private state is missing a piece: {name}"


@pytest.mark.parametrize("expected", ["0" * 64, "", "not a hash"])
def test_foreign_head_is_named(tmp_path: Path, expected: str) -> None:
    """A hash that no entry has is told, the one before the first entry included."""
    path = tmp_path / "foreign.db"
    middle_of_life(path)
    assert account_of(path, expected) == f"no entry has the expected hash {expected}"


HASH = "entry {} does not have the hash that its contents and the entry before it give"

TAMPERED = {
    "an entry is removed": (
        ["DELETE FROM entries WHERE sequence = 7"],
        "entry 7 is missing: entry 8 is where it should be",
    ),
    "the newest entry is removed": (
        ["DELETE FROM entries WHERE sequence = 9"],
        "answer 8 is in the answers table, and the chain ends with answer 7",
    ),
    "the first entry is removed": (
        ["DELETE FROM entries WHERE sequence = 1"],
        "entry 1 is missing: entry 2 is where it should be",
    ),
    "the oldest table is renamed": (
        ["ALTER TABLE alembic_version RENAME TO alembic_versions"],
        "the file of the ledger is damaged",
    ),
    "every entry is removed": (
        ["DELETE FROM entries"],
        "answer 1 is in the answers table, and the chain ends with answer 0",
    ),
    "two entries are swapped": (
        [
            "UPDATE entries SET sequence = 99 WHERE sequence = 6",
            "UPDATE entries SET sequence = 6 WHERE sequence = 7",
            "UPDATE entries SET sequence = 7 WHERE sequence = 99",
        ],
        "answer 4 in the answers table belongs to entry 7 there, and to entry 6 in the chain",
    ),
    "an entry is renumbered": (
        ["UPDATE entries SET sequence = 19 WHERE sequence = 9"],
        "answer 8 in the answers table belongs to entry 9 there, and to entry 19 in the chain",
    ),
    "an entry of no answers is renumbered": (
        ["UPDATE entries SET sequence = 19 WHERE sequence = 5"],
        "entry 5 is missing: entry 6 is where it should be",
    ),
    "an entry is duplicated": (
        [
            (
                "INSERT INTO entries "
                "SELECT 1, 10, kind, version, body, hash FROM entries WHERE sequence = 9"
            )
        ],
        "answer 8 of entry 10 is missing from the answers table",
    ),
    "a body of no answers is changed": (
        ["UPDATE entries SET body = replace(body, '3/5', '2/5') WHERE sequence = 3"],
        HASH.format(3),
    ),
    "a number of answers is less": (
        ["UPDATE entries SET body = replace(body, ':3', ':2') WHERE sequence = 6"],
        "answer 3 in the answers table belongs to entry 6 there, which ends with answer 2",
    ),
    "a number of answers is more": (
        ["UPDATE entries SET body = replace(body, ':3', ':4') WHERE sequence = 6"],
        "answer 4 in the answers table belongs to entry 7 there, and to entry 6 in the chain",
    ),
    "the newest number of answers is more": (
        ["UPDATE entries SET body = replace(body, ':2', ':3') WHERE sequence = 9"],
        "answer 10 of entry 9 is missing from the answers table",
    ),
    "a first number is less": (
        [
            "UPDATE entries SET body = replace(body, ':4', ':3') WHERE sequence = 7",
        ],
        "answer 3 of entry 7 is missing from the answers table",
    ),
    "a short body has a further key": (
        ["UPDATE entries SET body = replace(body, '{', '{\"active\":1,') WHERE sequence = 6"],
        HASH.format(6),
    ),
    "a short body is not in canonical form": (
        ["UPDATE entries SET body = replace(body, ',', ', ') WHERE sequence = 6"],
        HASH.format(6),
    ),
    "an entry of another kind has a short body": (
        [('UPDATE entries SET body = \'{"answers":3,"first_query_id":1}\' WHERE sequence = 4')],
        HASH.format(4),
    ),
    "a kind is changed": (
        ["UPDATE entries SET kind = 'Answers' WHERE sequence = 6"],
        HASH.format(6),
    ),
    "a version is changed": (
        ["UPDATE entries SET version = 2 WHERE sequence = 6"],
        HASH.format(6),
    ),
    "a hash is changed": (
        ["UPDATE entries SET hash = replace(hash, '0', '1') WHERE sequence = 6"],
        HASH.format(6),
    ),
    "an answer is removed": (
        ["DELETE FROM answers WHERE query_id = 4"],
        "answer 4 of entry 7 is missing from the answers table",
    ),
    "the newest answer is removed": (
        ["DELETE FROM answers WHERE query_id = 9"],
        "answer 9 of entry 9 is missing from the answers table",
    ),
    "an answer is added": (
        [
            (
                "INSERT INTO answers "
                "SELECT 1, 10, 9, zeroblob(32), x'00', 0, true, NULL, NULL, NULL, NULL, NULL"
            )
        ],
        "answer 10 in the answers table belongs to entry 9 there, which ends with answer 9",
    ),
    "a label is changed": (
        ["UPDATE answers SET label = 1 WHERE query_id = 2"],
        HASH.format(6),
    ),
    "an abstention gets a label": (
        ["UPDATE answers SET label = 0 WHERE query_id = 7"],
        HASH.format(8),
    ),
    "a stable flag is changed": (
        ["UPDATE answers SET stable = false WHERE query_id = 2"],
        HASH.format(6),
    ),
    "an answer gets the number of another": (
        ["UPDATE answers SET query_id = 2 WHERE query_id = 1"],
        "answer 1 of entry 6 is missing from the answers table",
    ),
    "an answer moves to another entry": (
        ["UPDATE answers SET sequence = 7 WHERE query_id = 2"],
        "answer 2 in the answers table belongs to entry 7 there, and to entry 6 in the chain",
    ),
    "a vector is changed": (
        ["UPDATE answers SET vector = x'00' WHERE query_id = 2"],
        "answer 2 in the answers table has a vector that does not give its digest",
    ),
    "a digest is changed": (
        ["UPDATE answers SET vector_digest = zeroblob(32) WHERE query_id = 2"],
        HASH.format(6),
    ),
    "the hidden half of a digest is changed": (
        [
            (
                "UPDATE answers SET vector_digest = "
                "CAST(substr(vector_digest, 1, 31) || x'00' AS BLOB) WHERE query_id = 2"
            )
        ],
        "answer 2 in the answers table has a vector that does not give its digest",
    ),
    "a key belongs to no answer": (
        ["UPDATE idempotency_keys SET vector_digest = x'00'"],
        "an idempotency key is kept for a vector that has no answer",
    ),
    "private state is changed": (
        ["UPDATE private_state SET body = x'00' WHERE name = 'ensemble'"],
        "the private state has a piece that is altered or of another release: ensemble",
    ),
    "a digest of private state is changed": (
        ["UPDATE private_state SET digest = 'x' WHERE name = 'ensemble'"],
        "the private state has a piece that is altered or of another release: ensemble",
    ),
    "private state is removed": (
        ["DELETE FROM private_state WHERE name = 'permutation'"],
        "the private state is missing a piece: permutation",
    ),
    "all private state is removed": (
        ["DELETE FROM private_state"],
        "the private state is missing a piece: release-secret",
    ),
    "private state is added": (
        ["INSERT INTO private_state VALUES (1, 'classifier-draw', 'x', x'00')"],
        "the private state has a piece that no entry binds: classifier-draw",
    ),
    "the release's secret is another": (
        ["UPDATE private_state SET body = x'00' WHERE name = 'release-secret'"],
        "the private state has a piece that is altered or of another release: release-secret",
    ),
    "the database's secret is another": (
        ["UPDATE database_secret SET secret = CAST(zeroblob(32) AS BLOB)"],
        "answer 1 in the answers table has a vector that does not give its digest",
    ),
    "the database's secret is gone": (
        ["DELETE FROM database_secret"],
        "the database of the ledger has lost its secret",
    ),
}


@pytest.mark.parametrize(("statements", "account"), TAMPERED.values(), ids=TAMPERED.keys())
def test_first_thing_wrong_is_named(tmp_path: Path, statements: list[str], account: str) -> None:
    """Each way of tampering gets a plain sentence of its own."""
    path = tmp_path / "tampered.db"
    middle_of_life(path).close()
    tamper(path, *statements)
    assert account_of(path) == account


TAMPERED_WHOLE = {
    "two entries are swapped": (TAMPERED["two entries are swapped"][0], HASH.format(6)),
    "an entry is renumbered": (
        TAMPERED["an entry is renumbered"][0],
        "entry 9 is missing: entry 19 is where it should be",
    ),
    "an entry is duplicated": (TAMPERED["an entry is duplicated"][0], HASH.format(10)),
    "a body is changed": (
        ["UPDATE entries SET body = replace(body, 'true', 'false') WHERE sequence = 6"],
        HASH.format(6),
    ),
    "an answer is added": (
        TAMPERED["an answer is added"][0],
        "answer 10 is in the answers table, and the chain ends with answer 9",
    ),
    "a label is changed": (
        TAMPERED["a label is changed"][0],
        "answer 2 in the answers table has label 1 and stable True, and entry 6 says 0 and True",
    ),
    "an abstention gets a label": (
        TAMPERED["an abstention gets a label"][0],
        (
            "answer 7 in the answers table has label 0 and stable False, "
            "and entry 8 says None and False"
        ),
    ),
    "a stable flag is changed": (
        TAMPERED["a stable flag is changed"][0],
        "answer 2 in the answers table has label 0 and stable False, and entry 6 says 0 and True",
    ),
    "a digest is changed": (
        TAMPERED["a digest is changed"][0],
        "answer 2 in the answers table has another digest than entry 6 says",
    ),
    "an answer moves to another entry": TAMPERED["an answer moves to another entry"],
    "an answer is removed": TAMPERED["an answer is removed"],
}


@pytest.mark.parametrize(
    ("statements", "account"), TAMPERED_WHOLE.values(), ids=TAMPERED_WHOLE.keys()
)
def test_whole_bodies_are_compared_with_the_answers(
    tmp_path: Path, statements: list[str], account: str
) -> None:
    """An entry that an earlier version stored whole says what its answers were."""
    path = tmp_path / "tampered.db"
    ledger = middle_of_life(path)
    expected = verify(ledger)
    ledger.close()
    store_whole(path)
    assert verify(open_ledger(url_of(path), create=False)) == expected
    tamper(path, *statements)
    assert account_of(path) == account


@pytest.mark.sqlite_only(
    reason="its tampering is a statement over two files; verify reads both alike"
)
def test_private_state_of_another_release_is_named(tmp_path: Path) -> None:
    """A piece of a release with other private state does not pass for this one's."""
    path, other = tmp_path / "this.db", tmp_path / "other.db"
    for each in (path, other):
        middle_of_life(each).close()
    tamper(other, "UPDATE private_state SET body = x'0102' WHERE name = 'ensemble'")
    tamper(
        path,
        f"ATTACH '{other}' AS other",
        "DELETE FROM main.private_state WHERE name = 'ensemble'",
        "INSERT INTO main.private_state SELECT * FROM other.private_state WHERE name = 'ensemble'",
    )
    assert "altered or of another release: ensemble" in account_of(path)


def test_body_that_is_not_canonical_is_named(tmp_path: Path) -> None:
    """An entry whose hash is right and whose text is not canonical is refused."""
    path = tmp_path / "canonical.db"
    ledger = middle_of_life(path)
    forge(path, ledger.read_state().head, body='{"reason": "spaced"}')
    assert account_of(path) == "entry 10 has a body that is not in canonical form"


def test_same_vector_answered_twice_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two answers for one vector are told, even where every hash is right."""
    path = tmp_path / "twice.db"
    ledger = middle_of_life(path)
    second = next(ledger.answers_after(1))
    again = second._replace(answer=replace(second.answer, query_id=10))
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        transaction.record_answers([again])  # the tables refuse it
    monkeypatch.setattr(Transaction, "_refuse_recorded", lambda *_: None)
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        transaction.record_answers([again])  # and so does the key of the newest, alone
    tamper(path, "DELETE FROM newest_answers WHERE query_id = 2")
    with ledger.transaction() as transaction:
        transaction.record_answers([again])
    assert account_of(path) == "answer 10 in the answers table repeats the vector of answer 2"


def test_dropped_index_is_named(tmp_path: Path) -> None:
    """Without its index the answers table would take a second answer to a vector."""
    path = tmp_path / "index.db"
    middle_of_life(path).close()
    tamper(path, "DROP INDEX answers_by_vector")
    assert account_of(path) == (
        "the table answers has lost the index answers_by_vector, or it was altered"
    )


@pytest.mark.sqlite_only(
    reason="of one of its triggers; those of PostgreSQL are tried in test_postgresql"
)
def test_dropped_triggers_are_named(tmp_path: Path) -> None:
    """A table without its protection is told."""
    path = tmp_path / "triggers.db"
    middle_of_life(path).close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER answers_refuse_delete")
    connection.close()
    assert account_of(path) == (
        "the table answers has lost the trigger answers_refuse_delete, or it was altered"
    )


@pytest.mark.sqlite_only(reason="about the file")
def test_truncated_file_is_named(tmp_path: Path) -> None:
    """A file that lost its end is told as damaged."""
    path = tmp_path / "short.db"
    middle_of_life(path).close()
    content = path.read_bytes()
    for length in range(4096, len(content), 4096):
        path.write_bytes(content[:length])
        assert account_of(path)


# Primes that divide no page, so that every part of a page has its turn.
@pytest.mark.parametrize(
    "apart",
    [pytest.param(389, id="some"), pytest.param(97, id="many", marks=pytest.mark.long)],
)
@pytest.mark.sqlite_only(reason="about the file")
def test_no_flipped_bit_changes_what_the_ledger_says(tmp_path: Path, apart: int) -> None:
    """A flipped bit anywhere in the file is told, or changes nothing of what is read."""
    path = tmp_path / "bits.db"
    ledger = middle_of_life(path)
    expected = verify(ledger)
    rows, keys = list(ledger.answers_after(0)), list(ledger.keys())
    ledger.close()
    content = path.read_bytes()
    flipped = tmp_path / "flipped.db"
    told = 0
    for position in range(0, len(content), apart):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        flipped.write_bytes(changed)
        found = reading_of(flipped)
        told += found is None
        assert found in (None, (expected, rows, len(keys))), position
    assert told > 1_500 / apart


def reading_of(path: Path) -> tuple[VerificationReport, list[AnswerRow], int] | None:
    """Return everything that a ledger says, or None where it is refused in our own words."""
    try:
        reader = open_ledger(url_of(path), create=False)
    except ConclaveError:
        return None
    try:
        return verify(reader), list(reader.answers_after(0)), len(list(reader.keys()))
    except ConclaveError:
        return None
    finally:
        reader.close()


def forge(path: Path, head: Head, *, body: str) -> None:
    """Append an entry with a right hash and a body of one's own making."""
    entry = next_entry(head, ReleaseHalted(reason="x"))
    hash_ = entry_hash(
        previous_hash=head.hash,
        sequence=entry.sequence,
        kind=entry.kind,
        version=entry.version,
        body=body,
    )
    tamper(
        path,
        f"INSERT INTO entries VALUES (1, {entry.sequence}, '{entry.kind}', {entry.version}, "  # noqa: S608 -- ours
        f"'{body}', '{hash_}')",
    )
