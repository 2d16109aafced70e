"""Moving a whole ledger to another database; the two databases never both give new answers.

The old database (the source) is locked. Its rows are written to the new one (the target) in one
transaction. Until this transaction is committed, the target has a mark with which no server opens
it. Directly before this commit the source is retired (closed for good), by an entry with the digest
of a secret that only the target has. So whenever the move is interrupted, either the source is
unchanged, or it is retired and the same command finishes the copy, to this target and no other.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError

from app.errors import (
    ConfigurationError,
    LedgerCorruptError,
    LedgerUnavailableError,
    VerificationError,
)
from app.ledger.asked_vectors import RELEASE_SECRET
from app.ledger.copies.copies import NOTHING_TO_COPY
from app.ledger.copies.copy_target import Held, fill, filling, look_at, reserve
from app.ledger.database.database import SqliteDatabase, ledger_database, turn_to_open
from app.ledger.database.entry_rows import read_entries
from app.ledger.database.open_database import open_database, reading, refusal_reason
from app.ledger.database.postgresql import allow_long_waits
from app.ledger.database.sqlite import URL_KEY, refuse_companions
from app.ledger.database.statements import (
    read_database_secret,
    read_entry_hash,
    read_head,
    read_private,
    read_release_numbers,
)
from app.ledger.entries.checkpoint import newest_checkpoint
from app.ledger.entries.digests import Digests, transfer_digest
from app.ledger.entries.entry_kinds import ReleaseMoved, ReleaseReopened
from app.ledger.entries.fold import MOVED
from app.ledger.entries.newest_entries import folded_on
from app.ledger.releases import read_closing, read_move, read_openings
from app.ledger.server_lock import take_server_lock
from app.ledger.transaction import Transaction
from app.ledger.verification import verify_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from app.ledger.entries.chain import Head
    from app.ledger.entries.entry_kinds import LedgerEvent
    from app.noise.source import NoiseSource

FROM: Final = "--from"
TO: Final = "--to"
SAME: Final = "is the ledger that is to be copied; name another database"
TAKEN: Final = "holds a ledger already; name a database that holds nothing"
MOVED_AWAY: Final = "moved to {place} by entry {sequence}, and goes on there and nowhere else"
CLOSED: Final = (
    "the ledger is closed already, by entry {sequence} ({reason}); `conclave ledger backup` and "
    "`restore` copy it"
)
AGAIN: Final = "the copy was refused: {reason}; give the same command again to go on"


class MoveStep(Enum):
    """The steps of a move, in order; tests end the process before each."""

    VERIFY = "verify"
    RESERVE = "reserve"
    COPY = "copy"
    COMPARE = "compare"
    RETIRE = "retire"
    GO_ON = "go on"
    END = "end"


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of moving a ledger.

    Attributes:
        head: the newest entry of the first release in the new ledger, which continues.
        retired: the newest entry of the first release in the old ledger.
        place: the location of the new ledger, without user and password.
        is_new: whether this command moved the ledger; False if an earlier command had finished the
            move.

    """

    head: Head
    retired: Head
    place: str
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class _Ledger:
    """A database inside a transaction that holds its write lock."""

    connection: Connection
    secret: bytes

    @property
    def digests(self) -> Digests:
        return Digests(self.secret)

    @property
    def numbers(self) -> list[int]:
        return read_release_numbers(self.connection)

    def verify(self) -> None:
        """Verify every release."""
        for number in self.numbers:
            verify_on(self.connection, number, digests=self.digests)

    def append(self, number: int, *events: LedgerEvent) -> None:
        """Append entries to the ledger of a release."""
        known = newest_checkpoint(self.connection, number, self.digests)
        transaction = Transaction(
            self.connection,
            folded_on(self.connection, number, known),
            release_number=number,
            openings=read_openings(self.connection),
            digests=self.digests,
        )
        for event in events:
            transaction.append(event)
        transaction.finish()

    def transfer(self, number: int, code: str) -> str:
        """Return the keyed digest, to be stored, of the code that lets a moved copy continue."""
        secret = read_private(self.connection, number, RELEASE_SECRET)
        if secret is None:
            raise LedgerCorruptError("the private state is missing the release's secret")
        return transfer_digest(secret.body, code)


def move(
    source_url: str,
    target_url: str,
    *,
    noise: NoiseSource,
    observe: Callable[[MoveStep], object] = lambda _: None,
) -> Moved:
    """Move every release of a ledger to an empty database, and retire the old ledger.

    Args:
        source_url: the address of the ledger; an SQLite ledger must not be served meanwhile.
        target_url: the address of a database without a ledger, or of the target of an interrupted
            move of this ledger.
        noise: the source of randomness, for the target's own secret.
        observe: a function that is given each step before it is done.

    Raises:
        ConfigurationError: a ledger cannot be moved from or to this address.
        VerificationError: the verification of the ledger or of its copy fails, or the ledger is
            closed.
        LedgerUnavailableError: a database refused an operation; run the same command again to
            continue.

    """
    _refuse_same(source_url, target_url)
    try:
        with ExitStack() as held:
            _hold(held, source_url, target_url)
            source = held.enter_context(_locked(source_url, noise))
            finished = _finished(source, target_url)
            if finished is not None:
                return finished
            return _move(source, target_url, noise=noise, observe=observe)
    except SQLAlchemyError as error:
        raise LedgerUnavailableError(AGAIN.format(reason=refusal_reason(error))) from None


def _move(
    source: _Ledger, target_url: str, *, noise: NoiseSource, observe: Callable[[MoveStep], object]
) -> Moved:
    place = ledger_database(target_url).place
    observe(MoveStep.VERIFY)
    source.verify()
    observe(MoveStep.RESERVE)
    with told_as(TO):
        reserve(target_url, noise=noise)
    observe(MoveStep.COPY)
    with told_as(TO), filling(target_url) as connection:
        code = (read_database_secret(connection) or b"").hex()
        fill(source.connection, connection, source.secret)
        target, numbers = _Ledger(connection, source.secret), source.numbers
        leaving = {
            number: ReleaseMoved(place=place, transfer=source.transfer(number, code))
            for number in numbers
            if read_closing(source.connection, number) is None
        }
        going_on = [*leaving, *(n for n in numbers if read_move(source.connection, n) is not None)]
        observe(MoveStep.COMPARE)
        for number, moved in leaving.items():
            target.append(number, moved)
        for number in going_on:
            target.append(number, ReleaseReopened(reason=MOVED))
        target.verify()
        observe(MoveStep.RETIRE)
        for number, moved in leaving.items():
            source.append(number, moved)
        ends = [read_head(each.connection, going_on[0]) for each in (target, source)]
        source.connection.commit()
        observe(MoveStep.GO_ON)
        connection.commit()
    observe(MoveStep.END)
    return Moved(ends[0], ends[1], place)


def _finished(source: _Ledger, target_url: str) -> Moved | None:
    """Return what an earlier command finished; None where there is something to do.

    Raises:
        ConfigurationError: the target cannot be the one.
        VerificationError: the ledger is closed, and not for this target to go on.

    """
    numbers, place = source.numbers, ledger_database(target_url).place
    if not numbers:
        raise VerificationError(NOTHING_TO_COPY)
    with told_as(TO):
        found = look_at(target_url)
    went = next((n for n in numbers if read_move(source.connection, n) is not None), None)
    if went is None:
        if all(read_closing(source.connection, number) is not None for number in numbers):
            raise VerificationError(_closed(source, numbers[0]))
        if found.held is Held.LEDGER:
            raise ConfigurationError(TO, f"{place} {TAKEN}")
        return None
    moved = read_move(source.connection, went)
    retired = read_head(source.connection, went)
    code = "" if found.secret is None else found.secret.hex()
    if moved is not None and found.held is Held.RESERVED:
        if source.transfer(went, code) == moved.transfer:
            return None
    elif found.held is Held.LEDGER and found.secret == source.secret:
        with reading(ledger_database(target_url)) as connection:
            if _goes_on_from(connection, went, retired):
                return Moved(read_head(connection, went), retired, place, is_new=False)
    told = "" if moved is None else moved.place
    raise ConfigurationError(FROM, MOVED_AWAY.format(place=told, sequence=retired.sequence))


def _goes_on_from(connection: Connection, number: int, retired: Head) -> bool:
    """Return whether a release has a retirement of another ledger, and went on after it."""
    if read_entry_hash(connection, number, retired.sequence) != retired.hash:
        return False
    following = read_entries(connection, number, retired, 1)
    return bool(following) and following[0].kind == ReleaseReopened.KIND


def _closed(source: _Ledger, number: int) -> str:
    closed = read_closing(source.connection, number)
    reason = "" if closed is None else closed.reason
    sequence = read_head(source.connection, number).sequence
    return CLOSED.format(sequence=sequence, reason=reason)


@contextmanager
def _locked(url: str, noise: NoiseSource) -> Iterator[_Ledger]:
    """Yield a ledger under its write lock, which keeps every server from answering afresh."""
    with told_as(FROM):
        database = open_database(url, create=True, noise=noise)
    try:
        if database.writer is None:
            raise LedgerUnavailableError("the ledger was opened to be read alone")
        with database.writer.connect() as connection:
            connection.begin()
            allow_long_waits(connection)
            yield _Ledger(connection, database.secret)
    finally:
        database.close()


def _hold(held: ExitStack, source_url: str, target_url: str) -> None:
    """Keep servers away from both databases, as far as each kind has a way to."""
    with told_as(FROM), reading(ledger_database(source_url)) as connection:
        names = [opened.name for opened in read_openings(connection)]
        held.callback(take_server_lock(source_url).release)
    with told_as(TO):
        target = ledger_database(target_url)
        if isinstance(target, SqliteDatabase) and not target.is_there:
            refuse_companions(target.path)
        held.callback(take_server_lock(target_url).release)
        for name in names:
            held.enter_context(turn_to_open(target_url, name))


def _refuse_same(source_url: str, target_url: str) -> None:
    with told_as(FROM):
        source = ledger_database(source_url)
    with told_as(TO):
        target = ledger_database(target_url)
    if isinstance(source, SqliteDatabase) and isinstance(target, SqliteDatabase):
        is_same = source.path.resolve() == target.path.resolve()
    else:
        is_same = source == target
    if is_same:
        raise ConfigurationError(TO, SAME)


@contextmanager
def told_as(option: str) -> Iterator[None]:
    """In errors about a database's address, name the command's option that gave the address."""
    try:
        yield
    except ConfigurationError as error:
        if error.key != URL_KEY:
            raise
        raise ConfigurationError(option, error.problem) from None
