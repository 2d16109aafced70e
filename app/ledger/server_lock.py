"""One server for each SQLite ledger, by a lock that a crash cannot leave behind.

A ledger in PostgreSQL has as many servers as it likes, and no such lock.

The lock is the kernel's (``flock``), on a file of its own beside the database,
which stays there and holds nothing.  The kernel lets go of it with the process,
however that ends.  The database's own file is never opened for this: closing any
descriptor of it would drop the locks by which SQLite orders its transactions.

What writes beside a server (``conclave learn``, ``conclave statistics``) takes no
such lock: the database's own write lock orders every transaction.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.ledger.database import is_shared
from app.ledger.sqlite import OWNER_ONLY, URL_KEY, database_path

if TYPE_CHECKING:
    from pathlib import Path

LOCK_SUFFIX: Final = ".lock"
_held: Final[set[int]] = set()
"""Descriptors of this process's locks, which no forked child may keep open."""


class ServerLock:
    """The lock of one server; held until it is released or the process ends."""

    def __init__(self, descriptor: int | None) -> None:
        """Take over an open descriptor that holds the lock; None where none is needed."""
        self._descriptor = descriptor
        if descriptor is not None:
            _held.add(descriptor)

    def release(self) -> None:
        """Let another server in; once released, this does nothing."""
        if self._descriptor is not None and self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = None


def take_server_lock(url: str) -> ServerLock:
    """Take the lock of the ledger at an SQLAlchemy address, or refuse at once.

    Whatever a path is called, links on the way to the file included, its lock is
    beside the file itself.

    Raises:
        ConfigurationError: another server has it, the file has several names of
            its own, or it cannot be locked.

    """
    if is_shared(url):
        return ServerLock(None)
    path = _resolved(database_path(url))
    lock_path = path.with_name(path.name + LOCK_SUFFIX)
    try:
        descriptor = os.open(
            lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, OWNER_ONLY
        )
    except OSError as error:
        raise _cannot_lock(lock_path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ConfigurationError(
            URL_KEY,
            f"another server has {path} open: it has one server at a time, whichever release of "
            "it is served; end that one",
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise _cannot_lock(lock_path, error) from None
    return ServerLock(descriptor)


def _resolved(path: Path) -> Path:
    """Return the one path of a database, links followed.

    Raises:
        ConfigurationError: it cannot be followed, or the file has other names.

    """
    try:
        path = path.resolve()
        names = path.stat().st_nlink if path.exists() else 1
    except (OSError, RuntimeError, ValueError):
        raise ConfigurationError(URL_KEY, f"cannot open {path}: its links lead nowhere") from None
    if names > 1:
        raise ConfigurationError(
            URL_KEY,
            f"{path} has {names} names (hard links), and SQLite would keep a log beside each; "
            "leave it one, and back it up as a copy",
        )
    return path


def _cannot_lock(path: Path, error: OSError) -> ConfigurationError:
    reason = error.strerror or "the system refuses"
    return ConfigurationError(
        URL_KEY,
        f"cannot lock {path}: {reason}; a ledger lies on a local disk, in a folder to "
        "which its server may write",
    )


def _close_in_child() -> None:
    """Keep no lock open in a forked child, which could outlive the server."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


os.register_at_fork(after_in_child=_close_in_child)
