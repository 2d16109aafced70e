"""What an operator is told of the ledger's machine, and what is unknown."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from app.ledger.copies.copies import back_up
from app.ledger.disk_and_backups import GRAIN_BYTES, Storage, note_backup, read_storage
from tests.builders.ledger.releases import middle_of_life, url_of

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger

POSTGRESQL = "postgresql+psycopg://conclave@db.internal/conclave"
RELEASE = "ab" * 16
KILLED = """\
import os
from pathlib import Path
from app.ledger.disk_and_backups import note_backup
Path.replace = lambda path, target: os.kill(os.getpid(), 9)
note_backup({url!r}, {{"ab" * 16: 3}})
"""


@pytest.fixture(name="ledger")
def live_ledger(tmp_path: Path) -> Ledger:
    """Write a ledger in the middle of its life."""
    return middle_of_life(tmp_path / "live.db")


def test_a_backup_is_known_by_its_time_and_its_newest_entry(ledger: Ledger, tmp_path: Path) -> None:
    """The note has the second at which it was made, and how far the copy goes."""
    state = ledger.read_state()
    assert state.release is not None
    before = int(time.time())
    url = url_of(tmp_path / "live.db")
    note_backup(url, back_up(url, tmp_path / "copy.db").sequences)
    found = read_storage(ledger.file, state.release.release_id).backup
    assert found is not None
    assert found.sequence == state.head.sequence
    assert before <= found.made_at <= int(time.time())


def test_the_newest_backup_is_told_of(tmp_path: Path) -> None:
    """A further one takes the place of the one before, and leaves no other file."""
    url = url_of(tmp_path / "ledger.db")
    for sequence in (3, 8):
        note_backup(url, {RELEASE: sequence})
    found = read_storage(tmp_path / "ledger.db", RELEASE).backup
    assert found is not None
    assert found.sequence == 8
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db.backup"]


def test_a_backup_of_another_ledger_is_not_this_ones(tmp_path: Path) -> None:
    """A note that a ledger left which is gone says nothing of the one in its place."""
    note_backup(url_of(tmp_path / "ledger.db"), {RELEASE: 3})
    assert read_storage(tmp_path / "ledger.db", "cd" * 16).backup is None


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b'{"format": "conclave-head-file"}'])
def test_a_damaged_note_is_unknown(tmp_path: Path, body: bytes) -> None:
    """Nothing fails over it: the next backup writes another."""
    (tmp_path / "ledger.db.backup").write_bytes(body)
    assert read_storage(tmp_path / "ledger.db", RELEASE).backup is None


def test_a_note_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Where a folder is in its place the error is the caller's, and no half of a note stays."""
    (tmp_path / "ledger.db.backup").mkdir()
    with pytest.raises(OSError, match="director"):
        note_backup(url_of(tmp_path / "ledger.db"), {RELEASE: 3})
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db.backup"]


def test_the_next_note_removes_the_temporary_file_of_a_killed_process(tmp_path: Path) -> None:
    """As the next note in a head file does."""
    url = url_of(tmp_path / "ledger.db")
    killed = subprocess.run([sys.executable, "-c", KILLED.format(url=url)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    note_backup(url, {RELEASE: 3})
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db.backup"]


def test_room_is_told_in_whole_mebibytes(ledger: Ledger, tmp_path: Path) -> None:
    """What is told is a multiple of a mebibyte, and no more than there is on the disk."""
    bytes_free = read_storage(ledger.file, RELEASE).bytes_free
    assert bytes_free is not None
    assert bytes_free % GRAIN_BYTES == 0
    assert bytes_free <= shutil.disk_usage(tmp_path).total


def test_a_folder_that_is_gone_is_unknown(tmp_path: Path) -> None:
    """Neither figure is known, and neither look fails."""
    assert read_storage(tmp_path / "gone" / "ledger.db", RELEASE) == Storage(None, None)


def test_of_a_database_on_a_server_nothing_is_known() -> None:
    """Its backups and its disk are the server's: nothing is noted, and nothing read."""
    note_backup(POSTGRESQL, {RELEASE: 3})
    assert read_storage(None, RELEASE) == Storage(None, None)
