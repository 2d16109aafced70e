"""Opening, reading and writing of a ledger; docs/ledger-format.md has the format.

Write transactions are serialised by the database's write lock. Each begins by reading the entries
that this process does not know yet. So it does not matter if the result of an earlier commit is
unknown. A checkpoint is a stored summary of all entries so far, with which a start has to read only
the later entries.

The newest entry is noted in the head file, which is outside the database and reveals whether an
older copy of the database was restored.

A client may send an idempotency key with a query, so that a repeated request is recognised.
"""

from __future__ import annotations

import hmac
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

from app.errors import ConclaveError, ConfigurationError, InvariantError, LedgerCorruptError
from app.ledger.answer_index.recorded_keys import find_recorded
from app.ledger.api_key_counts import KeyCount, read_key_counts
from app.ledger.asked_vectors import RELEASE_SECRET, AskedVector, read_asked
from app.ledger.database.answer_tables import read_answers
from app.ledger.database.driver import database_errors, give_back
from app.ledger.database.entry_rows import read_entries
from app.ledger.database.hour_counts import read_hours
from app.ledger.database.key_lookups import find_keys
from app.ledger.database.notifications import NAME_BYTES, Messages
from app.ledger.database.open_database import OpenDatabase, open_database, refuse_replaced
from app.ledger.database.recorded_answers import AnswerRow, RecordedAnswer
from app.ledger.database.sqlite import version_of
from app.ledger.database.statements import (
    every,
    read_entry_hash,
    read_keys,
    read_private,
)
from app.ledger.entries.chain import FIRST_RELEASE, Head, public_entry
from app.ledger.entries.checkpoint import is_due, newest_checkpoint, write_checkpoint
from app.ledger.entries.digests import Digests, private_digest
from app.ledger.entries.fold import EMPTY, LedgerState
from app.ledger.entries.newest_entries import check_answers, folded_on
from app.ledger.erasure_state import read_beside
from app.ledger.kept_turn import KeptTurn
from app.ledger.releases import holds_backup, number_of, read_openings, read_release_count
from app.ledger.transaction import Transaction
from app.noise.system import SystemNoise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlalchemy import Connection

    from app.ledger.answer_index.key_blocks import KeyImage
    from app.ledger.database.hour_counts import HourCounts
    from app.ledger.database.sqlite import Version
    from app.ledger.entries.entry_kinds import ReleaseOpened
    from app.ledger.head.head_file import HeadKeeper
    from app.noise.source import NoiseSource

__all__ = [
    "RELEASE_SECRET",
    "AnswerRow",
    "AskedVector",
    "KeyCount",
    "Ledger",
    "RecordedAnswer",
    "Transaction",
    "open_ledger",
]

NAME_KEY: Final = "release.name"
PUBLIC_ENTRIES_MAX: Final = 1000
"""Entries of one page of ``GET /ledger``."""


def open_ledger(
    url: str,
    *,
    create: bool,
    name: str | None = None,
    noise: NoiseSource | None = None,
    secret: bytes | None = None,
) -> Ledger:
    """Return the open ledger at an SQLAlchemy address.

    Args:
        url: the address, for example ``sqlite:///FILE``.
        create: whether the ledger is opened for writing, and created or migrated if necessary;
            False opens it for reading.
        name: the name of the release; if ``create`` is true, it may also be the name of a release
            that is to be opened. None for the database's first release.
        noise: the source of randomness, for a new database's secret.
        secret: the secret of a new database, 32 bytes, if it was drawn already; otherwise None.

    Raises:
        ConfigurationError: the database cannot be opened, is not a ledger, or is opened for reading
            and has no release of this name.
        LedgerCorruptError: the ledger is damaged.

    """
    database = open_database(url, create=create, noise=noise or SystemNoise(), secret=secret)
    ledger = Ledger(database, FIRST_RELEASE if name is None else name)
    if not create:
        try:
            ledger.require_named()
        except ConclaveError:
            ledger.close()
            raise
    return ledger


class Ledger:
    """The ledger of one release in an open database.

    Reads are safe from any thread; only one transaction is open at a time.
    """

    def __init__(self, database: OpenDatabase, release: str | int = FIRST_RELEASE) -> None:
        """Take over an open database, for the release with a name or number."""
        self._database = database
        self._name = release if isinstance(release, str) else None
        self._release_number = release if isinstance(release, int) else FIRST_RELEASE
        self._openings: tuple[ReleaseOpened, ...] = ()
        self._writing = Lock()
        self._known = EMPTY
        self._keeper: HeadKeeper | None = None
        self._checkpoint_at = 0  # entry of a checkpoint that is committed
        self._committed: tuple[Version | None, LedgerState] | None = None  # known to have happened
        self._image: KeyImage | None = None  # of the keys as of a commit that has happened
        self.digests: Final = Digests(database.secret)
        self.is_shared: Final = database.is_shared  # whether other servers may write beside
        self.turn_to_draw: Final = database.turn_to_draw
        self.drawing: Final = KeptTurn(lambda: self.turn_to_draw(self._release_number))
        self.file: Final = database.file  # of SQLite's

    @property
    def release_number(self) -> int:
        """The release's number in its database, counted from 1.

        For a release that is not open yet, it is the number that the release would get.
        """
        return self._release_number

    def keep_head(self, keeper: HeadKeeper) -> None:
        """Note every later commit in the head file, until the ledger closes."""
        self._keeper = keeper
        keeper.committed(self.read_state())

    @property
    def noted_sequence(self) -> int | None:
        """The number of the newest entry noted in the head file; None without a head file."""
        return None if self._keeper is None else self._keeper.noted_sequence

    @property
    def openings(self) -> tuple[ReleaseOpened, ...]:
        """The first entry of every release in the database, in order, as last read."""
        return self._openings

    def require_named(self) -> None:
        """Raise an error if the database has releases, but not one with this ledger's release name.

        Raises:
            ConfigurationError: there is no such release; the message names the releases in the
                database.
            LedgerCorruptError: a first entry is not as it was written.
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot():
            held = ", ".join(f'"{opened.name}"' for opened in self._openings)
        if held and not self._is_found:
            raise ConfigurationError(NAME_KEY, f'no release "{self._name}" in the ledger: {held}')

    def close(self) -> None:
        """Note the newest entry in the head file, if there is one, and close all connections.

        The lock to draw what is published once ends too.
        """
        self.drawing.end()
        if self._keeper is not None:
            self._keeper.close()
        self._database.close()

    # -- reading ---------------------------------------------------------------

    def read_state(self) -> LedgerState:
        """Return the release's state, computed from all ledger entries.

        Only entries that this process has not read yet are read, and of these only those after the
        newest checkpoint.

        Raises:
            LedgerCorruptError: an entry may not follow the earlier ones, an answer of an entry is
                missing, or the checkpoint is altered.
            LedgerUnavailableError: the database cannot be read.

        """
        known = self._known  # before the snapshot, which may otherwise be of an earlier moment
        with self.snapshot() as connection, database_errors():
            state = self._catch_up(connection, known)
        if state.head.sequence >= self._known.head.sequence:
            self._known = state
        return state

    def answers_after(self, query_id: int) -> Iterator[AnswerRow]:
        """Yield every answer after number ``query_id``, in order."""
        return every(self._read_answers, query_id, lambda row: row.answer.query_id)

    def asked_after(self, number: int) -> list[AskedVector]:
        """Return the vectors with numbers above ``number``, if each cell is answered only once.

        Raises:
            LedgerCorruptError: stored vectors are missing or altered.
            LedgerUnavailableError: the database cannot be read.

        """
        until = self.read_state().asked
        with self.snapshot() as connection, database_errors():
            return read_asked(connection, self._release_number, after=number, until=until)

    def asked_vectors(self) -> Iterator[AnswerRow]:
        """Yield the keyed hash of each queried vector, with the answer that it got.

        The order is that of the answers, or that of the queries if each cell is decided once.

        Raises:
            LedgerCorruptError: stored vectors, or an answer, are missing.
            LedgerUnavailableError: the database cannot be read.

        """
        if not self.read_state().decides_cells:
            yield from self.answers_after(0)
            return
        answers = {row.answer.query_id: row.answer for row in self.answers_after(0)}
        for asked in self.asked_after(0):
            answer = answers.get(asked.query_id)
            if answer is None:
                raise LedgerCorruptError(f"answer {asked.query_id} is missing")
            yield AnswerRow(self.digests.of_vector(asked.vector), asked.vector, answer)

    def keys(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield a pair of hashes, (key, vector), for every recorded idempotency key."""
        return every(self._read_keys, b"", lambda key: key[0])

    def known_answers(self, vector_digests: Sequence[bytes]) -> list[tuple[bytes, RecordedAnswer]]:
        """Return the recorded answers to the given vectors, each with the vector's hash.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return find_recorded(connection, self._release_number, vector_digests)

    def known_keys(self, key_digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return a pair of hashes, (key, vector), for each given idempotency key that is recorded.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return find_keys(connection, self._release_number, key_digests, digests=self.digests)

    def key_counts(self) -> dict[str, KeyCount]:
        """Return the answer counts of every API key, by its name.

        Raises:
            LedgerCorruptError: a count was altered.
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return read_key_counts(connection, self._release_number, None, digests=self.digests)

    def hour_counts(self) -> dict[int, HourCounts]:
        """Return the number of requests in each stored hour, by hours since 1970.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return read_hours(connection, self._release_number)

    def add_hours(self, counts: Mapping[int, HourCounts]) -> None:
        """Add request counts to the stored counts of their hours, in a separate transaction.

        Raises:
            LedgerCorruptError: the database has entries that may not follow each other.
            LedgerUnavailableError: the database refused the write.

        """
        with self.transaction() as transaction:
            transaction.count_hours(counts)

    def public_entries(self, after: int, limit: int) -> list[dict[str, object]]:
        """Return ledger entries after number ``after``, in the form of ``GET /ledger``.

        Args:
            after: the number of an entry, 0 for the beginning.
            limit: the largest number of entries to return; never more than ``PUBLIC_ENTRIES_MAX``
                are returned.

        """
        with self.snapshot() as connection, database_errors():
            previous_hash = read_entry_hash(connection, self._release_number, after)
            if previous_hash is None:
                return []
            count, head = max(0, min(limit, PUBLIC_ENTRIES_MAX)), Head(after, previous_hash)
            found = read_entries(connection, self._release_number, head, count)
        return [public_entry(entry) for entry in found]

    def private(self, name: str, state: LedgerState | None = None) -> bytes | None:
        """Return a stored private value by name, or None if no ledger entry mentions it.

        Private values (secrets, models, noise) are stored in the database, and ledger entries
        contain their keyed hashes.

        Args:
            name: the name of the private value.
            state: the ledger state whose digests are used; None for the newest state.

        Raises:
            LedgerCorruptError: an entry mentions the value, and it is missing or altered.

        """
        bound = (state or self.read_state()).private_digests.get(name)
        if bound is None:
            return None
        with self.snapshot() as connection, database_errors():
            secret = read_private(connection, self._release_number, RELEASE_SECRET)
            piece = read_private(connection, self._release_number, name)
        if secret is None or piece is None:
            raise LedgerCorruptError(f"the private state is missing a piece: {name}")
        computed = private_digest(secret.body, name=name, body=piece.body)
        if not hmac.compare_digest(computed, bound):
            raise LedgerCorruptError(f"the private state has an altered piece: {name}")
        return piece.body

    def beside(self, prefix: str) -> dict[str, bytes]:
        """Return the private values outside the ledger's entries whose names begin with a prefix.

        Examples are pending erasure requests.

        Raises:
            LedgerCorruptError: a value is altered.
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return read_beside(connection, self._release_number, prefix)

    def database_secret(self) -> bytes:
        """Return the secret (32 bytes) that every release in this database shares."""
        return self._database.secret

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield a connection that sees the database at one moment and cannot write."""
        with database_errors():
            connection = self._database.readers.connect()
        try:
            with database_errors():
                connection.begin()  # a statement that goes to the driver would begin none
                if not self._is_found:
                    self._find_release(connection)
            yield connection
        finally:
            give_back(connection)  # which may be cut off: what was read is true all the same

    def is_backup(self) -> bool:
        """Return whether another database may continue this ledger: it is a copy, or was moved.

        Raises:
            LedgerUnavailableError: the database cannot be read.

        """
        with self.snapshot() as connection, database_errors():
            return holds_backup(connection)

    def messages(self, noise: NoiseSource) -> Messages | None:
        """Return a connection for messages to other servers of the ledger; None for an SQLite file.

        Args:
            noise: the source of randomness, for the name of this server.

        """
        engine = self._database.messaging
        if engine is None:
            return None
        name = noise.secret(NAME_BYTES)
        return Messages(engine, self._database.secret, self._release_number, name)

    # -- writing ---------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction with the write lock; commit it at the end, or undo it on an error.

        Raises:
            LedgerUnavailableError: the lock, a write or the commit failed. If it is unknown whether
                a commit happened, the next transaction finds out.
            LedgerCorruptError: the database has entries that may not follow each other.

        """
        writing = self._database.writing
        if writing is None:
            raise InvariantError("a ledger opened for reading is not written")
        with self._writing:
            with database_errors():
                connection = writing.begin()
            try:
                with database_errors():
                    version, state = self._state_under_lock(connection)
                image, self._image = self._image, None
                transaction = Transaction(
                    connection,
                    state,
                    release_number=self._release_number,
                    openings=self._openings,
                    digests=self.digests,
                    image=image,
                )
                try:
                    yield transaction
                    transaction.finish()
                    state = transaction.state
                    with database_errors():
                        checkpoint_at = self._keep_checkpoint(connection, state)
                        transaction.may_be_committed = True
                        writing.commit(connection)
                except BaseException:
                    transaction.note_its_failure()
                    raise
            finally:
                writing.end(connection)
            self._known, self._checkpoint_at = state, checkpoint_at
            self._openings = transaction.openings
            self._committed = version, state
            self._image = transaction.image
            if self._keeper is not None:
                self._keeper.committed(state)

    def _state_under_lock(self, connection: Connection) -> tuple[Version | None, LedgerState]:
        """Return what the database holds, and how to tell that nobody else wrote since.

        Where the last commit here is known to have happened and no other connection
        has committed after it, that is its state: asking the entries took a third of a
        transaction of one answer.
        """
        committed, self._committed = self._committed, None
        version = None if self.is_shared else version_of(connection)
        if version is not None and committed is not None and committed[0] == version:
            return committed
        self._find_release(connection)
        return version, self._catch_up(connection, self._known)

    @property
    def _is_found(self) -> bool:
        """Whether the database is known to hold this ledger's release."""
        return self._release_number <= len(self._openings)

    def _find_release(self, connection: Connection) -> None:
        """Learn which releases there are, where one has opened, and this one's number."""
        count, known = read_release_count(connection), len(self._openings)
        if count < known:
            raise LedgerCorruptError(f"the database counts {count} releases and had {known} before")
        if count == known > 0:
            return
        refuse_replaced(connection, self._database.secret)
        openings = read_openings(connection)
        if self._name is not None and not self._is_found:
            self._release_number = number_of(openings, self._name) or len(openings) + 1
        self._openings = openings

    def keep_checkpoint(self) -> None:
        """Write a checkpoint if the next start would otherwise have to read many entries.

        Transactions write checkpoints themselves; this function is for a ledger of an earlier
        version, which has none.

        Raises:
            LedgerUnavailableError: the database refused the write; only the next start is slower.

        """
        state = self.read_state()
        if is_due(state, self._checkpoint_at):
            with self.transaction():
                pass

    def _keep_checkpoint(self, connection: Connection, state: LedgerState) -> int:
        """Write a checkpoint if one is due; return the entry of the newest."""
        if not is_due(state, self._checkpoint_at):
            return self._checkpoint_at
        return write_checkpoint(connection, self._release_number, self.digests, state)

    def _catch_up(self, connection: Connection, known: LedgerState) -> LedgerState:
        """Fold what the database holds beyond what this process knows."""
        is_first = known is EMPTY
        if is_first:
            known = newest_checkpoint(connection, self._release_number, self.digests)
            self._checkpoint_at = known.head.sequence
        state = folded_on(connection, self._release_number, known)
        if is_first or state is not known:
            check_answers(connection, self._release_number, known, state)
        return state

    def _read_answers(self, after: int) -> list[AnswerRow]:
        with self.snapshot() as connection, database_errors():
            return [row for _, row in read_answers(connection, self._release_number, after)]

    def _read_keys(self, after: bytes) -> list[tuple[bytes, bytes]]:
        with self.snapshot() as connection, database_errors():
            return [row[:2] for row in read_keys(connection, self._release_number, after)]
