"""Backup, restoring and retiring: a copy never forgets what its ledger charged."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.errors import (
    ConclaveError,
    ConfigurationError,
    InvariantError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
)
from app.ledger.copies import copies
from app.ledger.copies.copies import Copied, back_up, may_move, restore, retire
from app.ledger.copies.partial_copy import PARTIAL_SUFFIX, partial_copy, remove_abandoned
from app.ledger.database.sqlite import copy_into
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.ledger.releases import (
    answer,
    answer_many,
    create,
    middle_of_life,
    record,
    tamper,
    url_of,
)
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from app.ledger.entries.chain import Head

PAGE_BYTES = 4096


def opened(path: Path) -> Ledger:
    """Open a ledger to be read."""
    return open_ledger(url_of(path), create=False)


def retired(path: Path, *, moves: bool) -> str | None:
    """Retire a ledger and return the code."""
    ledger = create(path)
    code = retire(ledger, moves=moves, noise=ScriptedNoise(seeded_words(5))).code
    ledger.close()
    return code


@pytest.fixture(name="live")
def live_ledger(tmp_path: Path) -> Path:
    """Write a ledger in the middle of its life."""
    path = tmp_path / "live.db"
    middle_of_life(path).close()
    return path


def head_of(path: Path) -> Head:
    """Return the head of a ledger."""
    return opened(path).read_state().head


def test_a_backup_has_every_row_and_is_closed(live: Path) -> None:
    """Entries, answers, keys and private pieces are the ledger's, and one entry more closes it."""
    copy = live.with_name("copy.db")
    copied = back_up(url_of(live), copy)
    whole, backup = opened(live), opened(copy)
    assert copied == Copied(whole.read_state().head)
    assert list(backup.answers_after(0)) == list(whole.answers_after(0))
    assert list(backup.keys()) == list(whole.keys())
    assert backup.public_entries(0, 100)[:-1] == whole.public_entries(0, 100)
    closed = backup.public_entries(copied.head.sequence, 1)[0]
    assert (closed["kind"], closed["body"]) == (
        "ReleaseClosed",
        {"reason": "backup", "transfer": None},
    )
    for name in whole.read_state().private_digests:
        assert backup.private(name) == whole.private(name)
    verify(backup, whole.read_state().head.hash)


def test_a_backup_leaves_its_ledger_as_it_was(live: Path) -> None:
    """The ledger that was copied goes on: nothing was appended to it."""
    before = head_of(live)
    back_up(url_of(live), live.with_name("copy.db"))
    ledger = create(live)
    assert ledger.read_state().head == before
    record(ledger, [answer(ledger, 10)])


def test_a_backup_is_one_file_for_its_owner(live: Path) -> None:
    """Nobody else may read it, nothing lies beside it, and no other name is left of it."""
    copy = live.with_name("copies") / "copy.db"
    copy.parent.mkdir()
    back_up(url_of(live), copy)
    assert list(copy.parent.iterdir()) == [copy]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.stat().st_nlink == 1


def test_a_backup_under_way_holds_one_moment(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that are committed while it is made are in it whole, or not at all."""
    writer = create(live)
    before = writer.read_state().answered

    def overtaken(source: Connection, target: Path) -> None:
        record(writer, [answer(writer, before + 1, label=1)])
        copy_into(source, target)
        record(writer, [answer(writer, before + 2, label=1)])

    monkeypatch.setattr(copies, "copy_into", overtaken)
    copy = live.with_name("copy.db")
    back_up(url_of(live), copy)
    report = verify(opened(copy))
    assert report.answered in {before, before + 1}


def test_a_backup_of_what_only_the_log_holds_is_whole(live: Path) -> None:
    """Answers that are in the write-ahead log alone are copied, where a plain copy lacks them."""
    writer = create(live)
    answer_many(writer, batches=2, batch_size=2)
    copy, plain = live.with_name("copy.db"), live.with_name("plain.db")
    back_up(url_of(live), copy)
    shutil.copy(live, plain)
    answered = writer.read_state().answered
    assert verify(opened(copy)).answered == answered
    assert verify(opened(plain)).answered < answered


def test_a_backup_of_a_backup_is_closed_once(live: Path) -> None:
    """A copy of a copy has no further entry, and tells of the same head; of what is retired too."""
    for name in ("open", "retired"):
        first, second = live.with_name(f"{name}-1.db"), live.with_name(f"{name}-2.db")
        assert back_up(url_of(live), first) == back_up(url_of(first), second)
        assert head_of(first) == head_of(second)
        assert head_of(second).sequence == head_of(live).sequence + 1
        if name == "open":
            retired(live, moves=True)


@pytest.mark.parametrize("expect", [False, True])
def test_a_restored_backup_stays_closed_or_goes_on(live: Path, expect: bool) -> None:  # noqa: FBT001 -- two cases
    """Without a head it is closed; with the head that it was made at it takes answers again."""
    copy, place = live.with_name("copy.db"), live.with_name("restored.db")
    head = back_up(url_of(live), copy).head
    asked = f" {head.hash.upper()}\n" if expect else None
    assert restore(copy, url_of(place), expect_head=asked) == Copied(head, reopened=expect)
    ledger = create(place)
    assert (ledger.read_state().closed is None) == expect
    if expect:
        record(ledger, [answer(ledger, 10)])
        verify(ledger, head.hash)
    else:
        with pytest.raises(InvariantError):
            record(ledger, [answer(ledger, 10)])


def test_a_backup_from_before_the_newest_answer_does_not_go_on(live: Path) -> None:
    """Where the noted head is a later one, or an earlier, the copy is not put there at all."""
    copy, place = live.with_name("copy.db"), live.with_name("restored.db")
    earlier = str(opened(live).public_entries(3, 1)[0]["hash"])
    back_up(url_of(live), copy)
    writer = create(live)
    record(writer, [answer(writer, 10)])
    for head in (writer.read_state().head.hash, earlier, "", "0" * 64):
        with pytest.raises(VerificationError, match="the copy ends at entry 9 with hash"):
            restore(copy, url_of(place), expect_head=head)
    assert not place.exists()
    assert [each.name for each in live.parent.iterdir() if each.name.startswith(".")] == []


def test_a_plain_copy_is_closed_where_it_is_restored(live: Path) -> None:
    """A file that was copied by hand is an open ledger, and is closed on its way."""
    plain, place = live.with_name("plain.db"), live.with_name("restored.db")
    shutil.copy(live, plain)
    assert not restore(plain, url_of(place)).reopened
    assert create(place).read_state().closed is not None
    assert create(plain).read_state().closed is None


def test_a_moved_ledger_goes_on_by_its_code(live: Path) -> None:
    """Retired with a code, copied and restored, a ledger goes on in one chain of entries."""
    noted = head_of(live).hash
    code = retired(live, moves=True)
    copy, place = live.with_name("copy.db"), live.with_name("moved.db")
    back_up(url_of(live), copy)
    assert restore(copy, url_of(place), code=f"{code} ").reopened
    moved = create(place)
    record(moved, [answer(moved, 10)])
    assert moved.read_state().answered == 10
    verify(moved, noted)
    verify(moved, head_of(live).hash)


def test_a_retired_ledger_never_answers_again(live: Path) -> None:
    """Its own file takes no answer any more, with a code as without."""
    for moves in (True, False):
        path = live.with_name(f"{moves}.db")
        shutil.copy(live, path)
        assert (retired(path, moves=moves) is not None) == moves
        ledger = create(path)
        with pytest.raises(InvariantError):
            record(ledger, [answer(ledger, 10)])
        verify(ledger)


def test_the_code_is_told_and_not_kept(live: Path) -> None:
    """No file of the ledger has the code; an entry has its keyed digest."""
    code = retired(live, moves=True)
    assert code is not None
    assert len(code) == 64
    for path in live.parent.iterdir():
        content = path.read_bytes()
        assert code.encode() not in content
        assert bytes.fromhex(code) not in content
    ledger = opened(live)
    assert may_move(ledger, code)
    assert not may_move(ledger, "0" * 64)


def test_a_code_opens_no_other_copy(live: Path) -> None:
    """A copy from before the retirement, one of another ledger and a wrong code are refused."""
    before = live.with_name("before.db")
    back_up(url_of(live), before)
    code = retired(live, moves=True)
    after, place = live.with_name("after.db"), live.with_name("moved.db")
    back_up(url_of(live), after)
    refused = {before: (code, "not one of a ledger that was retired"), after: ("0" * 64, "not the")}
    for copy, (given, problem) in refused.items():
        with pytest.raises(VerificationError, match=problem):
            restore(copy, url_of(place), code=given)
    with pytest.raises(VerificationError, match="which no head reopens"):
        restore(after, url_of(place), expect_head=head_of(after).hash)
    assert not place.exists()


def test_a_ledger_retired_for_good_is_not_reopened(live: Path) -> None:
    """Without a code at its retirement no copy of it goes on, and it serves what it recorded."""
    retired(live, moves=False)
    copy, place = live.with_name("copy.db"), live.with_name("restored.db")
    back_up(url_of(live), copy)
    with pytest.raises(VerificationError, match="not one of a ledger that was retired"):
        restore(copy, url_of(place), code="0" * 64)
    assert not restore(copy, url_of(place)).reopened
    assert len(list(opened(place).answers_after(0))) == 9


def test_what_is_retired_is_not_retired_again(live: Path) -> None:
    """A second retirement, of a ledger or of a backup, is told by the entry that closed it."""
    copy = live.with_name("copy.db")
    back_up(url_of(live), copy)
    retired(live, moves=False)
    for path, reason in ((live, "retired"), (copy, "backup")):
        with pytest.raises(VerificationError) as refused:
            retired(path, moves=True)
        assert str(refused.value) == f"the ledger is closed already, by entry 10 ({reason})"


def test_a_ledger_without_a_release_has_nothing_to_keep(tmp_path: Path) -> None:
    """An empty ledger is neither copied nor retired."""
    empty, copy = tmp_path / "empty.db", tmp_path / "copy.db"
    create(empty).close()
    with pytest.raises(VerificationError, match="has no release yet"):
        back_up(url_of(empty), copy)
    with pytest.raises(VerificationError, match="has no release yet"):
        retired(empty, moves=False)
    assert not copy.exists()


def test_nothing_is_overwritten(live: Path) -> None:
    """Whatever is in the way of a copy or of a restored ledger stays there, and is told."""
    copy, place = live.with_name("copy.db"), live.with_name("place.db")
    back_up(url_of(live), copy)
    place.write_bytes(b"somebody's")
    with pytest.raises(ConfigurationError, match=r"^--output: .* is there already"):
        back_up(url_of(live), place)
    with pytest.raises(ConfigurationError, match=r"^ledger\.url: .* is there already"):
        restore(copy, url_of(place))
    assert place.read_bytes() == b"somebody's"


def test_a_ledger_that_came_to_be_meanwhile_is_not_overwritten(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that made a ledger while one was restored keeps its own."""
    copy, place = live.with_name("copy.db"), live.with_name("place.db")
    back_up(url_of(live), copy)
    sync = copies._sync

    def overtaken(path: Path) -> None:
        place.touch()
        sync(path)

    monkeypatch.setattr(copies, "_sync", overtaken)
    with pytest.raises(ConfigurationError, match="is there already"):
        restore(copy, url_of(place))
    assert place.stat().st_size == 0


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_the_log_of_another_ledger_is_in_the_way(live: Path, suffix: str) -> None:
    """A log that a lost ledger left would be read into the restored one, so it is refused."""
    copy, place = live.with_name("copy.db"), live.with_name("place.db")
    back_up(url_of(live), copy)
    Path(f"{place}{suffix}").touch()
    with pytest.raises(ConfigurationError, match="is left of a ledger that was there"):
        restore(copy, url_of(place))
    assert not place.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE answers SET label = 1 WHERE query_id = 2",
        "DELETE FROM private_state WHERE name = 'ensemble'",
        "DELETE FROM entries WHERE sequence = 7",
    ],
)
def test_a_damaged_ledger_is_neither_copied_nor_restored(live: Path, statement: str) -> None:
    """What does not verify is told, and leaves no file."""
    copy, place = live.with_name("copy.db"), live.with_name("place.db")
    back_up(url_of(live), copy)
    for path in (live, copy):
        tamper(path, statement)
    with pytest.raises((VerificationError, LedgerCorruptError)):
        back_up(url_of(live), place)
    with pytest.raises((VerificationError, LedgerCorruptError)):
        restore(copy, url_of(place))
    assert not place.exists()


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    """Text, another program's database and nothing at all are named in a line."""
    text, other, place = tmp_path / "a.txt", tmp_path / "other.db", tmp_path / "place.db"
    text.write_bytes(b"no database " * 400)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name)")
    for path in (text, other, tmp_path / "nowhere.db"):
        with pytest.raises(ConclaveError) as refused:
            restore(path, url_of(place))
        assert "\n" not in str(refused.value)
    assert not place.exists()


def test_a_copy_needs_a_folder(live: Path) -> None:
    """A folder that is not there is named."""
    with pytest.raises(ConfigurationError, match="there is no folder"):
        back_up(url_of(live), live.parent / "nowhere" / "copy.db")


def test_a_copy_that_fails_leaves_nothing(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the database refuses on the way is one line, and no file is left of the copy."""

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(copies, "copy_into", fail)
    before = {each.name for each in live.parent.iterdir()}
    with pytest.raises(LedgerUnavailableError, match="could not be copied"):
        back_up(url_of(live), live.with_name("copy.db"))
    assert {each.name for each in live.parent.iterdir()} - before <= {"live.db-wal", "live.db-shm"}


KILLED = """\
import os
from pathlib import Path
from app.ledger.copies import copies
copies._settle = lambda *_: os.kill(os.getpid(), 9)
copies.back_up({url!r}, Path({copy!r}))
"""


def hidden(folder: Path) -> list[Path]:
    """Return the hidden entries of a folder."""
    return [each for each in folder.iterdir() if each.name.startswith(".")]


def test_the_next_copy_removes_what_a_killed_one_left(live: Path) -> None:
    """The partial copy is another's by its name, and no living process writes it."""
    copy = live.with_name("monday.db")
    program = KILLED.format(url=url_of(live), copy=str(copy))
    killed = subprocess.run([sys.executable, "-c", program], check=False, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert len(hidden(live.parent)) == 1
    back_up(url_of(live), live.with_name("tuesday.db"))
    assert hidden(live.parent) == []
    assert not copy.exists()


def test_a_partial_copy_that_is_written_stays(live: Path) -> None:
    """A backup beside another one removes nothing of it, and neither touches foreign files."""
    foreign = live.with_name(f".notes-abcdefgh{PARTIAL_SUFFIX}")
    foreign.mkdir()
    (foreign / "notes.txt").write_text("somebody's")
    with partial_copy(live.with_name("monday.db")) as building:
        back_up(url_of(live), live.with_name("tuesday.db"))
        assert building.exists()
    assert hidden(live.parent) == [foreign]
    assert [each.name for each in foreign.iterdir()] == ["notes.txt"]


def test_a_new_folder_that_is_taken_for_abandoned_is_made_anew(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its locking, another process may remove it."""
    made = []
    mkdtemp = tempfile.mkdtemp

    def overtaken(**arguments: str) -> str:
        made.append(mkdtemp(**arguments))
        if len(made) == 1:
            remove_abandoned(live.parent)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", overtaken)
    back_up(url_of(live), live.with_name("copy.db"))
    assert len(made) == 2
    assert verify(opened(live.with_name("copy.db"))).answered == 9
    assert hidden(live.parent) == []


@pytest.mark.parametrize("pages_missing", [1, 10])
def test_a_full_disk_ends_a_backup_in_a_line(live: Path, pages_missing: int) -> None:
    """A real limit of the system on a file's size stands for a disk that is full."""
    bytes_max = live.stat().st_size - pages_missing * PAGE_BYTES
    copy = live.with_name("copy.db")
    limited = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from app.errors import ConclaveError\n"
        "from app.ledger.copies.copies import back_up\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_max}, {bytes_max}))\n"
        "try:\n"
        f"    back_up({url_of(live)!r}, Path({str(copy)!r}))\n"
        "except ConclaveError as error:\n"
        "    sys.exit(str(error))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert not copy.exists()
    assert [each.name for each in live.parent.iterdir() if each.name.startswith(".")] == []
    assert verify(opened(live)).answered == 9
