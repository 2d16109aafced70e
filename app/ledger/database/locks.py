"""A file lock, which the operating system releases if the process dies.

The lock is an operating system's lock (``flock``) on a separate, empty file, which is never
deleted. The database's own file is never opened for this lock: closing any descriptor of the file
would drop the locks with which SQLite orders its transactions.

The module also lets one process at a time draw a result that a release publishes once (its
classifier, or its statistics table of noisy numbers of rows), if its ledger is a file. A server,
``conclave learn`` and ``conclave statistics`` may want to draw at the same time. Of two draws, the
one that finishes first would be published, and the time of a draw may depend on its result. The
proofs are for a single draw.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from app.errors import LedgerUnavailableError
from app.ledger.database.sqlite import OWNER_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_held: Final[set[int]] = set()
"""Descriptors of this process's locks, which no forked child may keep open."""


class FileLock:
    """A file lock that is held until it is released or the process ends."""

    def __init__(self, descriptor: int | None) -> None:
        """Take over an open, locked file descriptor; None if no lock is needed."""
        self._descriptor = descriptor
        if descriptor is not None:
            _held.add(descriptor)

    def release(self) -> None:
        """Release the file lock; a second call does nothing."""
        if self._descriptor is not None and self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = None


def lock_file(path: Path) -> FileLock:
    """Return a lock on a file, created if missing; raise an error if it is locked already.

    Raises:
        BlockingIOError: another process has the lock.
        OSError: the file cannot be opened or locked.

    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, OWNER_ONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return FileLock(descriptor)


def _close_in_child() -> None:
    """Keep no lock open in a forked child, which could outlive the process."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)

DRAW_SUFFIX: Final = ".draw-"
ANOTHER_DRAWS: Final = "another process draws what is published; try again"
NO_TURN: Final = "the file of the turn to draw cannot be locked; nothing was drawn"


@contextmanager
def turn_to_draw(path: Path, release_number: int) -> Iterator[Callable[[], bool]]:
    """Hold the lock that lets only one process draw the classifier or the statistics table.

    Args:
        path: the path of the database's file.
        release_number: the number of the release in the database.

    Yields:
        A function that returns whether this process still has the lock, which is always true.

    Raises:
        LedgerUnavailableError: another process is drawing.

    """
    path = path.resolve()
    try:
        lock = lock_file(path.with_name(f"{path.name}{DRAW_SUFFIX}{release_number}"))
    except BlockingIOError:
        raise LedgerUnavailableError(ANOTHER_DRAWS) from None
    except OSError:
        raise LedgerUnavailableError(NO_TURN) from None
    try:
        yield lambda: True
    finally:
        lock.release()
