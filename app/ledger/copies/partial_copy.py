"""The hidden folder in which a copy of a ledger is built, next to the place of the copy.

The folder is named ``.NAME-XXXXXXXX.conclave-partial`` and has the file ``copy.db``. The process
that builds the copy holds an operating system's lock (``flock``) on the folder until it has removed
it. If the process is killed, the system releases the lock. So a folder whose lock is free has no
builder, and the next process that builds a copy in the same place, of whatever name, removes it. On
a file system that cannot lock folders nothing is removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.ledger.database.sqlite import OWNER_ONLY, companions

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_NAME: Final = "copy.db"
PARTIAL_SUFFIX: Final = ".conclave-partial"
FOLDER_TRIES_MAX: Final = 10
_PARTIAL: Final = re.compile(r"\..+-[a-z0-9_]{8}" + re.escape(PARTIAL_SUFFIX))


@contextmanager
def partial_copy(path: Path) -> Iterator[Path]:
    """Yield an empty file in which a copy is built, and remove it at the end.

    Partial copies that killed processes left in the same folder are removed first.

    Args:
        path: the place that the copy will have, in a folder that exists.

    Raises:
        OSError: the folder takes no file.

    """
    remove_abandoned(path.parent)
    folder, lock = _locked_folder(path)
    try:
        building = folder / COPY_NAME
        os.close(os.open(building, os.O_RDWR | os.O_CREAT | os.O_EXCL, OWNER_ONLY))
        yield building
    finally:
        _remove(folder)
        os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the partial copies in a folder that no living process builds.

    A folder that holds anything besides a partial copy, or cannot be removed, stays.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        found = [Path(each.path) for each in entries if _PARTIAL.fullmatch(each.name)]
        for folder in found:
            with suppress(OSError):
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    """Remove a partial copy under its lock.

    Raises:
        OSError: another process holds the lock, the folder cannot be locked, or it is no folder.

    """
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(descriptor)


def _locked_folder(path: Path) -> tuple[Path, int]:
    """Return a new folder next to a path, and the descriptor that holds its lock.

    Another process may remove the folder before it is locked; then a further one is made.

    Raises:
        OSError: the folder cannot be made.

    """
    for _ in range(FOLDER_TRIES_MAX):
        folder = Path(
            tempfile.mkdtemp(prefix=f".{path.name}-", suffix=PARTIAL_SUFFIX, dir=path.parent)
        )
        with suppress(FileNotFoundError):
            descriptor = _opened(folder)
            if _lock(descriptor) and folder.exists():
                return folder, descriptor
            os.close(descriptor)
    raise FileNotFoundError(0, "other processes remove new folders there")


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _lock(descriptor: int) -> bool:
    """Lock a folder, where the file system can; return False if another process has the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # nobody can lock it, so that nobody removes it
    return True


def _remove(folder: Path) -> None:
    """Remove a partial copy and its folder; a folder with other files in it stays."""
    building = folder / COPY_NAME
    for each in (building, *companions(building)):
        each.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
