"""A ledger that is older than what was noted of it is refused, by what is missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from app.errors import ConfigurationError, HeadFileError, LedgerCorruptError
from app.ledger.entries.entry_kinds import ReleaseClosed, ReleaseReopened
from app.ledger.entries.fold import BACKUP, DELTA_KEY, EPSILON_KEY, NEWEST
from app.ledger.head.head_file import HeadFile, noted_head
from app.ledger.head.rollback import (
    check_expected_head,
    check_head_file,
    check_no_ledger,
    keep_newest,
)
from app.ledger.ledger import open_ledger
from tests.builders.ledger.releases import answer, create, open_release, tamper, url_of

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger

# What the second of two releases states.
BOTH = {EPSILON_KEY: "2", DELTA_KEY: "1/500000"}


def give(ledger: Ledger, *query_ids: int, label: int = 0) -> None:
    """Commit answers, an entry each."""
    for query_id in query_ids:
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, query_id, label=label)])


def noted(ledger: Ledger, file: HeadFile) -> None:
    """Note the head of a ledger."""
    head = noted_head(ledger.read_state())
    assert head is not None
    file.note(head)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a ledger with an open release and two answers, closed."""
    path = tmp_path / "ledger.db"
    ledger = create(path)
    open_release(ledger)
    give(ledger, 1, 2)
    ledger.close()
    return path


@pytest.fixture
def file(tmp_path: Path) -> HeadFile:
    """Return a head file."""
    return HeadFile(tmp_path / "ledger.db.head")


def reopened(path: Path) -> Ledger:
    """Open a ledger that is there."""
    return open_ledger(url_of(path), create=True)


def refusal(ledger: Ledger, file: HeadFile) -> str:
    """Return the one line by which a ledger is refused."""
    with pytest.raises(HeadFileError) as refused:
        check_head_file(ledger, file)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_newest_ledger_is_taken_without_a_word(path: Path, file: HeadFile) -> None:
    """A file that notes the head, or an entry before it, agrees."""
    ledger = reopened(path)
    noted(ledger, file)
    assert check_head_file(ledger, file) == ([], [])
    give(ledger, 3)
    assert check_head_file(ledger, file) == ([], [])


@pytest.mark.parametrize("missing", [1, 4])
def test_older_copy_is_refused_by_what_is_missing(
    path: Path, file: HeadFile, tmp_path: Path, missing: int
) -> None:
    """The line names the file, both entries, the entries and answers missing, and what to do."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    ledger = reopened(path)
    give(ledger, *range(3, 3 + missing))
    noted(ledger, file)
    counted = {1: "1 entry with 1 answer", 4: "4 entries with 4 answers"}[missing]
    assert refusal(reopened(copy), file) == (
        f"ledger.head_file: {file.path} notes entry {7 + missing} of 'test', and the ledger ends "
        f"at entry 7: {counted} are missing, and what they charged with them; never serve an "
        "older copy: restore the newest database"
    )


def test_older_copy_that_went_on_is_another_history(
    path: Path, file: HeadFile, tmp_path: Path
) -> None:
    """Longer than what was noted, it is told by the hash at that place."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    ledger = reopened(path)
    give(ledger, 3)
    noted(ledger, file)
    other = reopened(copy)
    give(other, 3, 4, 5, label=1)
    assert "has another entry of that number: it went on from an older copy" in refusal(other, file)


def close(ledger: Ledger) -> None:
    """End a ledger's release by the entry that ends a backup."""
    with ledger.transaction() as transaction:
        transaction.append(ReleaseClosed(reason=BACKUP))


def test_closed_copy_is_served_and_leaves_the_file_alone(
    path: Path, file: HeadFile, tmp_path: Path
) -> None:
    """What answers nothing afresh may be behind: that is told, and nothing is noted of it."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    ledger = reopened(path)
    give(ledger, 3, 4)
    noted(ledger, file)
    before = file.path.read_bytes()
    closed = reopened(copy)
    close(closed)
    (line,) = keep_newest(closed, file)
    assert "1 entry with 2 answers are missing" in line
    assert line.endswith("it is closed, and is served so")
    closed.close()
    assert file.path.read_bytes() == before
    assert keep_newest(ledger, file) == []


def test_release_that_goes_on_beside_a_closed_one_is_noted(
    path: Path, file: HeadFile, tmp_path: Path
) -> None:
    """A backup of two that one goes on in is behind in the other, and forgets nothing later."""
    second = create(path, "second")
    open_release(second, name="second", release_id="1e" * 16, parameters=BOTH)
    copy = tmp_path / "copy.db"
    second.close()
    shutil.copy(path, copy)
    first = reopened(path)
    give(first, 3)
    for ledger in (first, create(path, "second")):
        noted(ledger, file)
    restored = create(copy, "second")
    for each in (reopened(copy), restored):
        close(each)
    with restored.transaction() as transaction:
        transaction.append(ReleaseReopened(reason=NEWEST))
    assert len(keep_newest(restored, file)) == 1
    newest = noted_head(restored.read_state())
    restored.close()
    assert newest is not None
    assert file.read()[newest.release_id] == newest


def test_reopened_copy_must_have_everything_that_was_noted(
    path: Path, file: HeadFile, tmp_path: Path
) -> None:
    """A copy that goes on is another history, unless it was the newest when it was made."""
    for missing in (False, True):
        copy = tmp_path / f"{missing}.db"
        shutil.copy(path, copy)
        ledger = reopened(path)
        if missing:
            give(ledger, 3)
        noted(ledger, file)
        restored = reopened(copy)
        close(restored)
        with restored.transaction() as transaction:
            transaction.append(ReleaseReopened(reason=NEWEST))
        if missing:
            assert "another entry of that number" in refusal(restored, file)
        else:
            assert check_head_file(restored, file) == ([], [])


def test_end_of_a_ledger_is_noted(path: Path, file: HeadFile) -> None:
    """A copy from before the retirement is behind the file, although nothing was answered."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    ledger = reopened(path)
    assert len(keep_newest(ledger, file)) == 1
    close(ledger)
    ledger.close()
    assert "1 entry with 0 answers are missing" in refusal(reopened(copy), file)


def test_another_ledgers_file_is_refused_by_name(
    path: Path, file: HeadFile, tmp_path: Path
) -> None:
    """A note of a release that the database does not hold names that release."""
    ledger = reopened(path)
    head = noted_head(ledger.read_state())
    assert head is not None
    file.note(structs.replace(head, release_id="1e" * 16, name="elsewhere"))
    for other in (ledger, create(tmp_path / "empty.db")):
        line = refusal(other, file)
        assert f"notes 2 answers of 'elsewhere' (release {'1e' * 16}), which the ledger" in line
    noted(ledger, file)
    assert "which the ledger does not hold" in refusal(ledger, file)


def test_one_file_serves_every_release_of_a_database(tmp_path: Path, file: HeadFile) -> None:
    """Each has a head of its own there; a copy that lacks either's newest is refused by both."""
    path = tmp_path / "two.db"
    older = tmp_path / "older.db"
    first = create(path, "first")
    open_release(first, name="first")
    first.close()  # the log goes into the file
    shutil.copy(path, older)
    first = create(path, "first")
    second = create(path, "second")
    assert keep_newest(second, file) == []
    open_release(second, name="second", release_id="1e" * 16, parameters=BOTH)
    second.close()
    (unnoted,) = keep_newest(first, file)  # nothing of the first is noted yet
    assert unnoted.startswith("there is no note of this release")
    give(first, 1)
    first.close()
    assert {head.name: head.sequence for head in file.read().values()} == {"first": 6, "second": 5}
    for name in ("first", "second"):
        assert check_head_file(create(path, name), file) == ([], [])
        line = refusal(create(older, name), file)
        assert "'second' (release 1e1e" in line or "notes entry 6 of 'first'" in line
    restored = create(older, "first")
    give(restored, 1)
    assert "of 'second' (release 1e1e" in refusal(restored, file)


def test_missing_file_is_one_line_and_no_refusal(path: Path, file: HeadFile) -> None:
    """A ledger of an older version, or one that was moved without its file, is served."""
    behind, (line,) = check_head_file(reopened(path), file)
    assert behind == []
    assert line.startswith(f"there is no note of this release in {file.path}: ")
    assert "--expect-head" in line


def test_ledger_yet_to_be_opened_needs_no_file(tmp_path: Path, file: HeadFile) -> None:
    """Nothing can be missing from a release that is not open."""
    assert check_head_file(create(tmp_path / "new.db"), file) == ([], [])


@pytest.mark.parametrize("body", ["{", "[]", "{}"])
def test_damaged_opening_is_told_as_damage(path: Path, file: HeadFile, body: str) -> None:
    """A first entry that cannot be read is no unforeseen failure."""
    ledger = reopened(path)
    noted(ledger, file)
    ledger.close()
    tamper(path, f"UPDATE entries SET body = '{body}' WHERE sequence = 1")  # noqa: S608 -- a case
    with pytest.raises(LedgerCorruptError, match="entry 1"):
        check_head_file(reopened(path), file)


def test_lost_database_is_not_created_anew(path: Path, file: HeadFile) -> None:
    """Where a file says that there was a release, no empty ledger takes its place."""
    noted(reopened(path), file)
    check_no_ledger(url_of(path), file)
    for lost in ("empty", "deleted"):
        path.write_bytes(b"")
        if lost == "deleted":
            path.unlink()
        with pytest.raises(HeadFileError, match="notes 2 answers of 'test'"):
            check_no_ledger(url_of(path), file)
    file.path.unlink()
    check_no_ledger(url_of(path), file)


def test_a_folder_that_is_missing_is_left_to_the_ledger(tmp_path: Path) -> None:
    """The line about a missing folder is the database's own, which names the address."""
    path = tmp_path / "missing" / "ledger.db"
    check_no_ledger(url_of(path), HeadFile(path.with_name("ledger.db.head")))


def test_expected_head_must_be_in_the_chain(path: Path, tmp_path: Path) -> None:
    """Any entry's hash will do, in either case; one that an older copy has not is refused."""
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    ledger = reopened(path)
    before = ledger.read_state().head.hash
    give(ledger, 3)
    newest = ledger.read_state().head.hash
    for expected in (before, newest, f" {newest.upper()}\n"):
        check_expected_head(ledger, expected)
    older = reopened(copy)
    check_expected_head(older, before)
    with pytest.raises(ConfigurationError, match=r"^--expect-head: no entry has this hash") as said:
        check_expected_head(older, newest)
    assert "ends at entry 7: it is older than that head, or another one" in str(said.value)


@pytest.mark.parametrize("text", ["", "ab", "g" * 64, "a" * 65, "0" * 63])
def test_what_is_no_hash_is_refused_as_such(path: Path, text: str) -> None:
    """A hash that was cut off while it was copied says nothing about a ledger."""
    with pytest.raises(ConfigurationError, match="a hash has 64 hexadecimal digits"):
        check_expected_head(reopened(path), text)


def test_no_release_has_the_hash_of_nothing(tmp_path: Path) -> None:
    """The zeros that the first entry follows are no head: an empty ledger is refused."""
    with pytest.raises(ConfigurationError, match="no entry has this hash"):
        check_expected_head(create(tmp_path / "new.db"), "0" * 64)
