"""A small file that one process at a time replaces as a whole, so that readers see no half of it.

The new content is written to a temporary file in the same folder, which then takes the file's name.
The temporary file of a process that was killed meanwhile is removed by the next one that replaces
the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK_TRIES_MAX: Final = 300
LOCK_WAIT_SECONDS: Final = 0.01
TEMPORARY_SUFFIX: Final = ".tmp"


class ReplacedFile:
    """A file that is replaced as a whole, under a lock on its folder.

    Attributes:
        path: the path of the file, which need not exist; its folder must.

    """

    def __init__(self, path: Path) -> None:
        """Store the path of the file."""
        self.path: Final = path
        self._is_cleared = False

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Lock the file's folder against other writers, and yield the folder's descriptor.

        On a file system that cannot lock folders there is no lock.

        Raises:
            OSError: the folder cannot be opened, or another process holds its lock for long.

        """
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _lock(folder) and not self._is_cleared:
                self._clear()
            yield folder
        finally:
            os.close(folder)

    def replace(
        self,
        body: bytes,
        folder: int,
        *,
        prepare: Callable[[int], None] | None = None,
        confirm: Callable[[], None] | None = None,
    ) -> None:
        """Write a whole new file beside the old one, and let it take its place.

        Only the owner may read it, from the start.

        Args:
            body: the content of the new file.
            folder: the descriptor of the locked folder.
            prepare: a function that is called with the new file's descriptor before it is written.
            confirm: a function that is called when the new file is whole and the old one is still
                in its place, where it stays if the function raises an error.

        Raises:
            OSError: the file cannot be written; the old one stays.

        """
        descriptor, name = tempfile.mkstemp(
            prefix=f".{self.path.name}.", suffix=TEMPORARY_SUFFIX, dir=self.path.parent
        )
        try:
            with os.fdopen(descriptor, "wb") as file:
                if prepare is not None:
                    prepare(file.fileno())
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            if confirm is not None:
                confirm()
            Path(name).replace(self.path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        _sync(folder)

    def _clear(self) -> None:
        """Remove the temporary files of killed processes; the folder is locked.

        Whoever writes one holds the lock, so that one found under it has no writer.
        """
        ours = re.compile(re.escape(f".{self.path.name}.") + "[a-z0-9_]{8}" + TEMPORARY_SUFFIX)
        with suppress(OSError), os.scandir(self.path.parent) as entries:
            for entry in entries:
                if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    with suppress(OSError):
                        Path(entry.path).unlink()
        self._is_cleared = True


def _lock(folder: int) -> bool:
    """Wait a little for another process's note; return False where there are no locks.

    Raises:
        OSError: another process holds it for long.

    """
    for _ in range(LOCK_TRIES_MAX):
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(LOCK_WAIT_SECONDS)
        except OSError:
            return False  # some network file systems lock no folder
        else:
            return True
    raise OSError(errno.EAGAIN, "another process holds the folder")


def _sync(folder: int) -> None:
    """Make the new name durable, where the file system can."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
