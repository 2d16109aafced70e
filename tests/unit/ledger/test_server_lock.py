"""The lock of the one server: no other name of the file gets around it, nothing keeps it."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.ledger.database.locks import FileLock
from app.ledger.server_lock import take_server_lock
from tests.builders.ledger.releases import create, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_MAX = 60
# What a child that was forked, or one that was started with every descriptor, holds open.
LEAVE_A_CHILD = """\
import os, signal, subprocess, sys, time
from app.ledger.server_lock import take_server_lock

lock = take_server_lock(sys.argv[1])
reading, writing = os.pipe()
if sys.argv[2] == "forked":
    child = os.fork()
    if child == 0:
        os.write(writing, b"x")
        time.sleep(300)
        os._exit(0)
    os.read(reading, 1)  # its own copy of the lock is closed by now
else:
    child = subprocess.Popen(["sleep", "300"], close_fds=False).pid
print(child, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
# Whether another process may write just now, as SQLite's own locks say.
TRY_TO_WRITE = """\
import sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqlite3.OperationalError as error:
    print(error)
"""


def refuse_second(url: str) -> None:
    """Check that a second server is refused, by a line that says what to do."""
    with pytest.raises(ConfigurationError, match=r"another server has .* open") as refused:
        take_server_lock(url)
    assert str(refused.value).startswith("ledger.url: ")
    assert "\n" not in str(refused.value)


def test_second_server_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    """One of two has the lock, before the database exists as well as after."""
    url = url_of(tmp_path / "ledger.db")
    first = take_server_lock(url)
    refuse_second(url)
    create(tmp_path / "ledger.db").close()
    refuse_second(url)
    first.release()
    first.release()
    second = take_server_lock(url)
    first.release()
    refuse_second(url)
    second.release()


def test_lock_is_beside_the_database_and_the_owners(tmp_path: Path) -> None:
    """The file is empty, stays, and only its owner may open it; the database is not created."""
    take_server_lock(url_of(tmp_path / "ledger.db")).release()
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.db.lock"]
    found = (tmp_path / "ledger.db.lock").stat()
    assert (found.st_size, stat.S_IMODE(found.st_mode)) == (0, 0o600)


def _by_linked_file(folder: Path) -> Path:
    (folder / "other.db").symlink_to(folder / "data" / "ledger.db")
    return folder / "other.db"


def _by_link_to_link(folder: Path) -> Path:
    _by_linked_file(folder)
    (folder / "third.db").symlink_to("other.db")
    return folder / "third.db"


def _by_linked_folder(folder: Path) -> Path:
    (folder / "elsewhere").symlink_to("data")
    return folder / "elsewhere" / "ledger.db"


def _by_dots(folder: Path) -> Path:
    return folder / "data" / ".." / "data" / "." / "ledger.db"


def _by_relative_path(folder: Path) -> Path:
    return (folder / "data" / "ledger.db").relative_to(folder)


SPELLINGS: dict[str, Callable[[Path], Path]] = {
    "linked file": _by_linked_file,
    "link to a link": _by_link_to_link,
    "linked folder": _by_linked_folder,
    "dots": _by_dots,
    "relative": _by_relative_path,
}


@pytest.mark.parametrize("exists", [True, False], ids=["there", "yet to come"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_other_path_gets_around_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spelling: str,
    exists: bool,  # noqa: FBT001 -- two cases
) -> None:
    """Whatever leads to the file leads to its lock, be the file there or not."""
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data" / "ledger.db"
    if exists:
        create(path).close()
    first = take_server_lock(url_of(path))
    spelt = url_of(SPELLINGS[spelling](tmp_path))
    refuse_second(spelt)
    first.release()
    second = take_server_lock(spelt)
    refuse_second(url_of(path))
    second.release()


def test_file_of_several_names_is_refused(tmp_path: Path) -> None:
    """Hard links are refused by either name: each would have a lock and a log of its own."""
    path, other = tmp_path / "ledger.db", tmp_path / "other.db"
    create(path).close()
    other.hardlink_to(path)
    for each in (path, other):
        with pytest.raises(ConfigurationError, match=r"has 2 names \(hard links\)"):
            take_server_lock(url_of(each))
    other.unlink()
    take_server_lock(url_of(path)).release()


@pytest.mark.parametrize("child", ["forked", "started"])
def test_no_child_keeps_it(tmp_path: Path, repository: Path, child: str) -> None:
    """A child that outlives a killed server does not keep the next one out."""
    url = url_of(tmp_path / "ledger.db")
    with (tmp_path / "child").open("w") as said:  # a pipe would stay open with the child
        run = subprocess.run(
            [sys.executable, "-c", LEAVE_A_CHILD, url, child],
            cwd=repository,
            stdout=said,
            check=False,
            timeout=SECONDS_MAX,
        )
    left = int((tmp_path / "child").read_text(encoding="utf-8"))
    try:
        assert run.returncode < 0
        os.kill(left, 0)  # it is alive
        take_server_lock(url).release()
    finally:
        os.kill(left, 9)


def test_locks_of_the_database_are_left_alone(tmp_path: Path) -> None:
    """Taking and releasing it does not let another process into a transaction under way."""
    path = tmp_path / "ledger.db"
    create(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    # In a rollback journal the locks are on the database's file itself.
    holder.execute("PRAGMA journal_mode=DELETE")
    holder.execute("BEGIN IMMEDIATE")
    take_server_lock(url_of(path)).release()
    run = subprocess.run(
        [sys.executable, "-c", TRY_TO_WRITE, path], capture_output=True, text=True, check=True
    )
    holder.execute("ROLLBACK")
    holder.close()
    assert run.stdout == "database is locked\n"


def _no_folder(folder: Path) -> Path:
    return folder / "missing" / "ledger.db"


def _link_as_lock(folder: Path) -> Path:
    (folder / "ledger.db.lock").symlink_to(folder / "target")
    return folder / "ledger.db"


def _folder_as_lock(folder: Path) -> Path:
    (folder / "ledger.db.lock").mkdir()
    return folder / "ledger.db"


@pytest.mark.parametrize("place", [_no_folder, _link_as_lock, _folder_as_lock])
def test_place_where_nothing_can_be_locked_is_refused(
    tmp_path: Path, place: Callable[[Path], Path]
) -> None:
    """What the system refuses is one line that names the file; no link is followed."""
    with pytest.raises(ConfigurationError, match=r"ledger\.url: cannot lock .*ledger\.db\.lock: "):
        take_server_lock(url_of(place(tmp_path)))
    assert not (tmp_path / "target").exists()


def test_a_file_system_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel gives no lock there, no server starts, and nothing stays open."""

    def refuse(descriptor: int, operation: int) -> None:
        del descriptor, operation
        raise OSError(37, "No locks available")

    monkeypatch.setattr("app.ledger.database.locks.fcntl.flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ConfigurationError, match="No locks available; a ledger lies on a local"):
        take_server_lock(url_of(tmp_path / "ledger.db"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_released_lock_frees_its_descriptor_once(tmp_path: Path) -> None:
    """A descriptor of the same number, opened by somebody else since, is not closed."""
    lock = take_server_lock(url_of(tmp_path / "ledger.db"))
    assert isinstance(lock, FileLock)
    lock.release()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    lock.release()
    os.fstat(descriptor)
    os.close(descriptor)
