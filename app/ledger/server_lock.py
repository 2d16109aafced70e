"""A file lock that lets only one server at a time use an SQLite ledger.

A ledger in PostgreSQL may have any number of servers, and no such lock.

Other commands that write (``conclave learn``, ``conclave statistics``) do not take this lock: the
database's write lock orders all transactions, and a separate lock (``app.ledger.database.locks``)
lets one process at a time draw a result that is published once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.ledger.database.database import is_shared
from app.ledger.database.locks import FileLock, lock_file
from app.ledger.database.sqlite import URL_KEY, database_path

if TYPE_CHECKING:
    from pathlib import Path

LOCK_SUFFIX: Final = ".lock"


def take_server_lock(url: str) -> FileLock:
    """Return the lock that lets one server use a ledger; raise an error if it is taken.

    The lock file is next to the database's file, also if the path leads there through symbolic
    links.

    Raises:
        ConfigurationError: another server has the lock, the file has several hard links, or it
            cannot be locked.

    """
    if is_shared(url):
        return FileLock(None)
    path = _resolved(database_path(url))
    lock_path = path.with_name(path.name + LOCK_SUFFIX)
    try:
        return lock_file(lock_path)
    except BlockingIOError:
        raise ConfigurationError(
            URL_KEY,
            f"another server has {path} open: it has one server at a time, whichever release of "
            "it is served; end that one",
        ) from None
    except OSError as error:
        raise _cannot_lock(lock_path, error) from None


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
