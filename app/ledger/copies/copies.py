"""Backup, restore and retirement of a ledger, so that no spent budget is forgotten.

A copy becomes outdated with the next answer of its ledger. So every copy that is made here ends
with the entry ``ReleaseClosed``: whatever server opens it, it gives no new answer and makes no
random choice. It can continue only by ``restore``, and only in two cases: the original ledger is
retired, and the operator gives the code that was printed at the retirement; or the operator gives
the hash of the newest entry that was ever noted, and the copy ends with this entry.

A copy is an SQLite file, whichever kind of database its ledger uses, and can be restored to either
kind. Nothing is ever overwritten. A file is written in a hidden folder, verified, and then
linked to its final name (``partial_copy.py``). A PostgreSQL database is filled in one transaction.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError

from app.errors import (
    ConfigurationError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
    invariant,
)
from app.ledger.copies.copy_target import Held, fill, filling, look_at
from app.ledger.copies.partial_copy import partial_copy
from app.ledger.database.database import SqliteDatabase, is_shared, ledger_database
from app.ledger.database.driver import database_errors
from app.ledger.database.open_database import open_database, read_revision, reading, refusal_reason
from app.ledger.database.sqlite import (
    URL_KEY,
    companions,
    copy_into,
    database_path,
    refuse_companions,
)
from app.ledger.database.statements import (
    read_database_secret,
    read_entry_hash,
    read_release_numbers,
)
from app.ledger.database.tables import REVISION
from app.ledger.entries.chain import Head
from app.ledger.entries.digests import Digests, transfer_digest
from app.ledger.entries.entry_kinds import ReleaseClosed, ReleaseReopened
from app.ledger.entries.fold import BACKUP, MOVED, NEWEST, RETIRED
from app.ledger.ledger import RELEASE_SECRET, Ledger
from app.ledger.releases import read_closing
from app.ledger.verification import verify, verify_on
from app.noise.system import SystemNoise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection

    from app.ledger.database.database import LedgerDatabase
    from app.ledger.entries.fold import LedgerState
    from app.noise.source import NoiseSource

CODE_BYTES: Final = 32
"""Length of the code that a retirement tells."""

NOTHING_TO_COPY: Final = "the ledger has no release yet; there is nothing to copy"
NOT_COPIED: Final = "the ledger could not be copied"
WRONG_CODE: Final = "the code is not the one that the retirement of this copy's ledger told"
NO_CODE: Final = (
    "the copy is not one of a ledger that was retired to be moved; retire the ledger with "
    "`conclave ledger retire --move`, and back it up after that"
)
OTHER_HEAD: Final = (
    "the copy ends at entry {sequence} with hash {hash}, not at the expected head; what was "
    "charged since is not in it, so it stays closed: leave --expect-head out"
)
CLOSED_FOR_GOOD: Final = (
    "the copy is one of a retired ledger, which no head reopens; leave --expect-head out"
)


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of a backup or of a restore.

    Attributes:
        head: the newest entry of the copied release before the entry that closed it; of the first
            release, if there are several.
        reopened: whether a release in the copy may give new answers.
        sequences: for each release, by its random id, the number of its newest entry before the
            entry that closed it.

    """

    head: Head
    reopened: bool = False
    sequences: Mapping[str, int] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Retired:
    """The result of retiring a release.

    Attributes:
        head: the number and hash of the entry that closes the release.
        code: the code with which a copy can continue, which is shown only now; None if no copy may
            continue.

    """

    head: Head
    code: str | None


def back_up(url: str, copy: Path) -> Copied:
    """Copy a ledger, which may be in use, to a backup file that gives no new answers.

    Args:
        url: the address of the ledger.
        copy: the path of the new file, which must not exist; only its owner may read it.

    Raises:
        ConfigurationError: there is no ledger, or the file exists.
        VerificationError: the ledger has no release, or its verification fails.
        LedgerUnavailableError: a database refused an operation.

    """
    source = ledger_database(url)
    with reading(source) as connection, _place(copy, "--output") as building:
        if source.is_shared:
            _copy_rows(source, connection, building)
        else:
            _copy(connection, building)
        return _closed(building)


def restore(
    copy: Path, url: str, *, expect_head: str | None = None, code: str | None = None
) -> Copied:
    """Copy a backup to a new ledger, which gives new answers in two cases only.

    In the first case the original was retired, and the code of the retirement is given. In the
    second case a given hash shows that the backup is the newest state of a lost ledger.

    Args:
        copy: a file that ``back_up`` made, or a plain copy of a ledger's file.
        url: the address of the new ledger, at which there must be none.
        expect_head: the hash of the newest entry of the lost ledger that was ever noted; None
            without one.
        code: the code that was printed when the original was retired; None without one.

    Raises:
        ConfigurationError: there is no such copy, or there is a ledger at ``url``.
        VerificationError: the verification of the copy fails, or it may not continue as requested;
            nothing is written.
        LedgerUnavailableError: a database refused an operation.

    """
    if is_shared(url):
        return _restore_rows(copy, url, expect_head, code)
    target = database_path(url)
    refuse_companions(target)
    with reading(SqliteDatabase(copy)) as connection, _place(target, URL_KEY) as building:
        _copy(connection, building)
        copied = _closed(building)
        return Copied(copied.head, _reopened(building, expect_head, code))


def retire(ledger: Ledger, *, moves: bool, noise: NoiseSource) -> Retired:
    """Close a ledger for good; if wanted, make a code that allows one copy of it to continue.

    Args:
        ledger: the ledger, opened for writing.
        moves: whether to make a code with which a copy can continue.
        noise: the source of randomness, for the code.

    Raises:
        VerificationError: the ledger has no release, or is closed already.
        LedgerUnavailableError: the database refused the write; try again.

    """
    state = ledger.read_state()
    if state.release is None:
        raise VerificationError("the ledger has no release yet; there is nothing to retire")
    if state.closed is not None:
        raise VerificationError(
            f"the ledger is closed already, by entry {state.head.sequence} ({state.closed.reason})"
        )
    code = noise.secret(CODE_BYTES).hex() if moves else None
    transfer = None if code is None else _transfer(ledger, code)
    with ledger.transaction() as transaction:
        head = transaction.append(ReleaseClosed(reason=RETIRED, transfer=transfer))
    return Retired(head, code)


def may_move(ledger: Ledger, code: str) -> bool:
    """Return whether a code is the one that was printed when the ledger was retired."""
    closed = ledger.read_state().closed
    bound = None if closed is None else closed.transfer
    return bound is not None and hmac.compare_digest(_transfer(ledger, code), bound)


def _transfer(ledger: Ledger, code: str) -> str:
    """Return the digest of a code, keyed with the release's secret."""
    secret = ledger.private(RELEASE_SECRET)
    if secret is None:
        raise VerificationError("the private state is missing the release's secret")
    return transfer_digest(secret, code)


def _restore_rows(copy: Path, url: str, expect_head: str | None, code: str | None) -> Copied:
    """Restore a copy as a file of its own, and bring what that holds into another database."""
    database = ledger_database(url)
    if look_at(url).held is Held.LEDGER:
        raise ConfigurationError(URL_KEY, f"{database.place} holds a ledger already")
    with tempfile.TemporaryDirectory(prefix="conclave-restore-") as folder:
        restored = f"sqlite:///{Path(folder) / 'restored.db'}"
        copied = restore(copy, restored, expect_head=expect_head, code=code)
        open_database(url, create=True, noise=SystemNoise()).close()
        with reading(ledger_database(restored)) as connection:
            _bring_over(connection, url)
    return copied


def _copy_rows(source: LedgerDatabase, connection: Connection, building: Path) -> None:
    """Bring what another kind of database holds at one moment into an empty file."""
    revision = read_revision(source, connection)
    if revision != REVISION:
        raise ConfigurationError(
            URL_KEY, f"{source.place} has tables of revision {revision}; `prepare` it first"
        )
    url = f"sqlite:///{building}"
    open_database(url, create=True, noise=SystemNoise()).close()
    _bring_over(connection, url)


def _bring_over(source: Connection, url: str) -> None:
    """Fill a prepared database in one transaction, and verify what came before it is kept."""
    try:
        secret = read_database_secret(source)
        if secret is None:
            raise LedgerCorruptError("the database of the ledger has lost its secret")
        with filling(url) as target:
            fill(source, target, secret)
            for number in read_release_numbers(target):
                verify_on(target, number, digests=Digests(secret))
            target.commit()
    except SQLAlchemyError as error:
        raise LedgerUnavailableError(f"{NOT_COPIED}: {refusal_reason(error)}") from None


def _copy(connection: Connection, building: Path) -> None:
    try:
        copy_into(connection, building)
    except sqlite3.Error:
        raise LedgerUnavailableError(f"{NOT_COPIED}; try again") from None


def _closed(building: Path) -> Copied:
    """Close every release in a copy, and verify each; return the first's head before that.

    A retired one is closed as a copy too: what is opened beside it later cannot be seen.
    """
    heads, sequences = [], {}
    with _releases(building) as ledgers:
        for ledger in ledgers:
            state = ledger.read_state()
            if state.release is not None:
                sequences[state.release.release_id] = state.head.sequence
            if _is_copy(ledger):
                heads.append(_head_before(ledger, state))
            else:
                heads.append(state.head)
                with ledger.transaction() as transaction:
                    transaction.append(ReleaseClosed(reason=BACKUP))
            verify(ledger)
    if not heads:
        raise VerificationError(NOTHING_TO_COPY)
    return Copied(heads[0], sequences=sequences)


def _reopened(building: Path, expect_head: str | None, code: str | None) -> bool:
    """Reopen the release that a head or a code names; return whether there was one to reopen."""
    if expect_head is None and code is None:
        return False
    refusals = []
    with _releases(building) as ledgers:
        for ledger in ledgers:
            refusal = _refusal(ledger, expect_head, code)
            if refusal is None:
                event = ReleaseReopened(reason=NEWEST if code is None else MOVED)
                with ledger.transaction() as transaction:
                    transaction.append(event)
                verify(ledger)
                return True
            refusals.append(refusal)
    raise VerificationError(refusals[0])


def _refusal(ledger: Ledger, expect_head: str | None, code: str | None) -> str | None:
    """Return why a closed release may not go on, None where it may."""
    state = ledger.read_state()
    closed = state.closed
    if code is not None:
        if closed is None or closed.transfer is None:
            return NO_CODE
        return None if may_move(ledger, code) else WRONG_CODE
    if closed is None or closed.reason != BACKUP:
        return CLOSED_FOR_GOOD
    before = _head_before(ledger, state)
    if before.hash == (expect_head or "").strip().lower():
        return None
    return OTHER_HEAD.format(sequence=before.sequence, hash=before.hash)


def _is_copy(ledger: Ledger) -> bool:
    """Return whether a release ends with the entry that closes a copy."""
    with ledger.snapshot() as connection, database_errors():
        closed = read_closing(connection, ledger.release_number)
    return closed is not None and closed.reason == BACKUP


def _head_before(ledger: Ledger, state: LedgerState) -> Head:
    """Return the head that a closed release had before the entry that closed it."""
    sequence = state.head.sequence - 1
    with ledger.snapshot() as connection, database_errors():
        found = read_entry_hash(connection, ledger.release_number, sequence)
    return Head(sequence, found or "")


@contextmanager
def _releases(path: Path) -> Iterator[list[Ledger]]:
    """Open a copy to be written, and yield a ledger for each release in it."""
    database = open_database(f"sqlite:///{path}", create=True, noise=SystemNoise())
    try:
        with database_errors(), database.readers.connect() as connection:
            numbers = read_release_numbers(connection)
        yield [Ledger(database, number) for number in numbers]
    finally:
        database.close()


@contextmanager
def _place(path: Path, key: str) -> Iterator[Path]:
    """Yield a file to build in, and link it to its place where the block ends well."""
    if path.exists():
        raise ConfigurationError(key, f"{path} is there already, and is not overwritten")
    if not path.parent.is_dir():
        raise ConfigurationError(key, f"there is no folder {path.parent}")
    with ExitStack() as kept:
        try:
            building = kept.enter_context(partial_copy(path))
        except OSError as error:
            raise ConfigurationError(key, f"{path.parent}: {error.strerror}") from None
        yield building
        _settle(building, path, key)


def _settle(building: Path, path: Path, key: str) -> None:
    """Make a file durable in its place, where nothing has come to be meanwhile."""
    log = companions(building)[0]
    invariant(not log.exists() or log.stat().st_size == 0, "a copy is whole in its own file")
    _sync(building)
    try:
        os.link(building, path)
    except OSError as error:
        reason = "is there already" if isinstance(error, FileExistsError) else error.strerror
        raise ConfigurationError(key, f"{path}: {reason}") from None
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
