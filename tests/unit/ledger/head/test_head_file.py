"""The head file: whole at every moment, nobody else's, and never set back."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from app.errors import ConfigurationError, HeadFileError
from app.ledger.head import replaced_file
from app.ledger.head.head_file import HeadFile, NotedHead, head_file_of, noted_head
from app.ledger.server_lock import take_server_lock
from tests.builders.ledger.releases import create, open_release, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST, SECOND = "0f" * 16, "1e" * 16


def head(sequence: int, *, release_id: str = FIRST, digit: str = "a") -> NotedHead:
    """Return a head of a release, whose hash is one digit over and over."""
    return NotedHead(
        release_id=release_id,
        name="test",
        sequence=sequence,
        hash=digit * 64,
        answered=10 * sequence,
    )


@pytest.fixture
def file(tmp_path: Path) -> HeadFile:
    """Return a head file that is yet to be written."""
    return HeadFile(tmp_path / "ledger.db.head")


def test_document_is_small_and_readable(file: HeadFile) -> None:
    """It is one JSON object with a format, a version and a line of facts a release."""
    file.note(head(7))
    assert json.loads(file.path.read_text(encoding="utf-8")) == {
        "format": "conclave-head-file",
        "version": 1,
        "releases": [
            {
                "release_id": FIRST,
                "name": "test",
                "sequence": 7,
                "hash": "a" * 64,
                "answered": 70,
            }
        ],
    }
    assert file.path.read_text(encoding="utf-8").endswith("}\n")
    assert file.path.read_text(encoding="utf-8").count("\n") > 10


def test_what_is_noted_is_what_the_ledger_holds(tmp_path: Path) -> None:
    """Number, hash and answers are those of the fold; a ledger without a release has no head."""
    ledger = create(tmp_path / "ledger.db")
    assert noted_head(ledger.read_state()) is None
    open_release(ledger)
    state = ledger.read_state()
    assert noted_head(state) == NotedHead(FIRST, "test", 5, state.head.hash, 0)


def test_only_the_owner_may_read_it(file: HeadFile) -> None:
    """It has the database's mode, whatever the process would give others."""
    before = os.umask(0)
    try:
        file.note(head(1))
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]


def test_newest_head_of_each_release_is_kept(file: HeadFile) -> None:
    """A release replaces its own head and leaves another's; an older head changes nothing."""
    assert file.read() == {}
    file.note(head(1))
    file.note(head(4, release_id=SECOND, digit="b"))
    assert file.note(head(3)) == head(3)
    assert file.note(head(2, digit="c")) == head(3)
    file.note(head(3))
    assert file.read() == {FIRST: head(3), SECOND: head(4, release_id=SECOND, digit="b")}


def test_another_history_is_not_written_over(file: HeadFile) -> None:
    """Two copies of one ledger that note here do not hide each other."""
    file.note(head(3))
    with pytest.raises(HeadFileError, match="notes another history of this release"):
        file.note(head(3, digit="b"))
    assert file.read() == {FIRST: head(3)}


def _failing(call: str) -> Callable[..., Any]:
    def fail(*arguments: object, **options: object) -> None:
        del arguments, options
        raise OSError(errno.ENOSPC, call)

    return fail


@pytest.mark.parametrize(
    "call", ["os.fsync", "os.fdopen", "tempfile.mkstemp", "Path.replace", "os.open"]
)
def test_failed_note_leaves_the_file_and_nothing_beside_it(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whatever the disk refuses, what was noted before stays, whole."""
    file.note(head(1))
    with monkeypatch.context() as patch:
        patch.setattr(f"app.ledger.head.replaced_file.{call}", _failing(call))
        with pytest.raises(OSError, match=call):
            file.note(head(2))
    assert file.read() == {FIRST: head(1)}
    assert [each.name for each in file.path.parent.iterdir()] == [file.path.name]
    file.note(head(2))
    assert file.read() == {FIRST: head(2)}


def test_new_file_is_durable_before_it_takes_the_place(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are on disk before the rename, and the folder is after it."""
    calls: list[str] = []
    synced, replaced = os.fsync, Path.replace

    def sync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        calls.append("folder" if is_folder else f"file {os.fstat(descriptor).st_size > 100}")
        synced(descriptor)

    def replace(self: Path, target: Path) -> Path:
        calls.append("rename")
        return replaced(self, target)

    monkeypatch.setattr("app.ledger.head.replaced_file.os.fsync", sync)
    monkeypatch.setattr("app.ledger.head.replaced_file.Path.replace", replace)
    file.note(head(1))
    assert calls == ["file True", "rename", "folder"]


def test_a_folder_that_cannot_be_synced_is_no_failure(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems refuse that of folders; any other refusal is a failure."""
    synced = os.fsync

    def refuse(number: int) -> Callable[[int], None]:
        def sync(descriptor: int) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(number, "no")
            synced(descriptor)

        return sync

    monkeypatch.setattr("app.ledger.head.replaced_file.os.fsync", refuse(errno.EINVAL))
    file.note(head(1))
    monkeypatch.setattr("app.ledger.head.replaced_file.os.fsync", refuse(errno.EIO))
    with pytest.raises(OSError, match="no"):
        file.note(head(2))


BAD_FILES = {
    "empty": "",
    "cut off": '{"format": "conclave-head-file", "version": 1, "rel',
    "something else": "root:x:0:0:root:/root:/bin/bash\n",
    "other JSON": '{"sequence": 7}',
    "newer version": '{"format": "conclave-head-file", "version": 2, "releases": []}',
    "no hash": json.dumps(
        {
            "format": "conclave-head-file",
            "version": 1,
            "releases": [
                {"release_id": FIRST, "name": "", "sequence": 1, "hash": "a", "answered": 0}
            ],
        }
    ),
    "not text": "\udcff",
    "not text in a string": '{"format": "\udcff", "version": 1, "releases": []}',
    "endless": " " * (2**20 + 1),
}


@pytest.mark.parametrize("text", BAD_FILES.values(), ids=BAD_FILES)
def test_file_that_is_none_is_refused_and_left_alone(file: HeadFile, text: str) -> None:
    """Nothing is read from it, and nothing is written over it."""
    body = text.encode("utf-8", "surrogateescape")
    file.path.write_bytes(body)
    for use in (file.read, lambda: file.note(head(1))):
        with pytest.raises(HeadFileError, match="is no head file of this version, or is damaged"):
            use()
    assert file.path.read_bytes() == body


def test_place_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A folder that is not there, perhaps not mounted, and one in the file's place are named."""
    with pytest.raises(HeadFileError, match=r"there is no folder .*missing; mount or create it"):
        HeadFile(tmp_path / "missing" / "head").read()
    with pytest.raises(HeadFileError, match="cannot be read: Is a directory"):
        HeadFile(tmp_path).read()


def read_of(url: str, setting: Path) -> None:
    """Read the head file of a ledger."""
    file = head_file_of(url, setting)
    assert file is not None
    file.read()


def test_path_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    """Links in a circle, or a zero byte in either path, are one line that names the setting."""
    circle, zero = tmp_path / "circle", tmp_path / "zero\0byte"
    circle.symlink_to(circle)
    beside = url_of(tmp_path / "ledger.db")
    for path in (circle, zero):  # later Pythons find a circle when it is read
        with pytest.raises(HeadFileError):
            read_of(beside, path)
    for use in (lambda: head_file_of(url_of(zero), None), lambda: take_server_lock(url_of(zero))):
        with pytest.raises(ConfigurationError, match=r"^ledger\.url: "):
            use()


def test_processes_that_note_at_once_lose_nothing(file: HeadFile) -> None:
    """Each of two releases has its newest head in the end, and no reader ever sees less."""
    newest = 40

    def note_all(release_id: str) -> None:
        mine = HeadFile(file.path)
        for sequence in range(1, newest + 1):
            mine.note(head(sequence, release_id=release_id))
            assert mine.read()[release_id].sequence == sequence

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(note_all, release_id) for release_id in (FIRST, SECOND)]:
            each.result()
    assert {each.sequence for each in file.read().values()} == {newest}
    assert len(file.read()) == 2


def test_folder_held_by_another_process_is_not_waited_for_long(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is never let go is a failure to be tried again; a short one is waited for."""
    monkeypatch.setattr(replaced_file, "LOCK_TRIES_MAX", 3)
    folder = os.open(file.path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(OSError, match="another process holds the folder"):
        file.note(head(1))
    monkeypatch.setattr(replaced_file, "LOCK_TRIES_MAX", 10_000)
    threading.Timer(0.05, os.close, [folder]).start()
    file.note(head(1))
    assert file.read() == {FIRST: head(1)}


def test_file_system_without_locks_is_written_all_the_same(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network file systems lock no folder; a note is whole without."""

    def refuse(descriptor: int, operation: int) -> None:
        del descriptor, operation
        raise OSError(errno.EBADF, "no locks here")

    monkeypatch.setattr("app.ledger.head.replaced_file.fcntl.flock", refuse)
    file.note(head(1))
    assert file.read() == {FIRST: head(1)}


KILLED: Final = """
import os
from pathlib import Path
from app.ledger.head import head_file
def die(path, target):
    os.kill(os.getpid(), 9)
Path.replace = die
head = head_file.NotedHead(release_id="0f" * 16, name="t", sequence=1, hash="a" * 64, answered=0)
head_file.HeadFile(Path({path!r})).note(head)
"""


def test_the_next_process_removes_the_temporary_files_of_a_killed_one(file: HeadFile) -> None:
    """Nobody writes them under its lock; files of other names are not its own, and stay."""
    folder = file.path.parent
    text = KILLED.format(path=str(file.path))
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", text], check=False)
        assert killed.returncode == -signal.SIGKILL
    left = {each.name for each in folder.iterdir()}
    assert len(left) == 1, "the second removed the first's"
    others = {
        ".other.head.abcdefgh.tmp", ".ledger.db.head.settings", ".ledger.db.head.new.abcdefgh.tmp",
    }  # fmt: skip
    for name in others:
        (folder / name).touch()
    (folder / ".ledger.db.head.a_folder.tmp").mkdir()
    (folder / ".ledger.db.head.a_link_0.tmp").symlink_to("nowhere")
    kept = {*others, ".ledger.db.head.a_folder.tmp", ".ledger.db.head.a_link_0.tmp"}
    file.note(head(1))
    assert {each.name for each in folder.iterdir()} == {file.path.name, *kept}


def test_temporary_files_stay_where_no_lock_says_that_nobody_writes_them(
    file: HeadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may be writing one; under a lock of the next note it goes."""

    def refuse(descriptor: int, operation: int) -> None:
        del descriptor, operation
        raise OSError(errno.EBADF, "no locks here")

    left = file.path.with_name(f".{file.path.name}.abcdefgh.tmp")
    left.touch()
    with monkeypatch.context() as patch:
        patch.setattr("app.ledger.head.replaced_file.fcntl.flock", refuse)
        file.note(head(1))
    assert left.exists()
    file.note(head(2))
    assert not left.exists()


def test_default_is_beside_the_database_itself(tmp_path: Path) -> None:
    """A link to the database leads to the same head file; False keeps none."""
    (tmp_path / "link.db").symlink_to(tmp_path / "ledger.db")
    for name in ("ledger.db", "link.db"):
        found = head_file_of(url_of(tmp_path / name), None)
        assert found is not None
        assert found.path == tmp_path / "ledger.db.head"
    assert head_file_of(url_of(tmp_path / "ledger.db"), setting=False) is None


def test_link_is_kept_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    """An operator's link to another disk survives the replacement of the file."""
    (tmp_path / "other disk").mkdir()
    link, target = tmp_path / "link.head", tmp_path / "other disk" / "ledger.head"
    link.symlink_to(target)
    found = head_file_of(url_of(tmp_path / "ledger.db"), link)
    assert found is not None
    found.note(head(1))
    assert link.is_symlink()
    assert HeadFile(target).read() == {FIRST: head(1)}


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal", ".lock", ".backup", ".draw-1"])
def test_file_of_the_ledger_itself_is_refused(tmp_path: Path, suffix: str) -> None:
    """The database and what lies beside it are never written over."""
    path = tmp_path / f"ledger.db{suffix}"
    with pytest.raises(HeadFileError, match="is a file of the ledger itself"):
        head_file_of(url_of(tmp_path / "ledger.db"), path)
