"""How transactions of the one writer begin and end, by the kind of database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sqlalchemy.exc import SQLAlchemyError

from app.ledger.database.driver import fetch_all, give_back, is_in_transaction

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class Writing(Protocol):
    """Begins and ends the transactions of one writer, one at a time."""

    def begin(self) -> Connection:
        """Begin a transaction, which holds the write lock.

        Raises:
            SQLAlchemyError: the database cannot be reached, or another holds the lock.

        """

    def commit(self, connection: Connection) -> None:
        """Commit, durably.

        Raises:
            SQLAlchemyError: it failed, or nobody knows whether it did.

        """

    def end(self, connection: Connection) -> None:
        """Undo what is not committed, and let the connection go."""

    def close(self) -> None:
        """Close what is kept open."""


class PooledWriting:
    """Transactions on a connection of the pool, which looks whether it was cut off meanwhile."""

    def __init__(self, engine: Engine) -> None:
        """Take connections of the engine of writers."""
        self._engine = engine

    def begin(self) -> Connection:
        """Begin a transaction as the engine does."""
        connection = self._engine.connect()
        try:
            connection.begin()
        except BaseException:
            give_back(connection)
            raise
        return connection

    def commit(self, connection: Connection) -> None:
        """Commit as the engine does."""
        connection.commit()

    def end(self, connection: Connection) -> None:
        """Give the connection back."""
        give_back(connection)

    def close(self) -> None:
        """Do nothing: the pool is the engine's."""


class KeptWriting:
    """Transactions on one connection that is kept, begun and ended by its driver alone.

    SQLAlchemy takes all of them for one transaction that it began with the first, so that
    its statements begin none.  What it does around a transaction of its own took 60 of the
    220 microseconds of the processor that a batch of one answer took with its commit.
    """

    def __init__(self, engine: Engine, begin: str) -> None:
        """Connect with the first transaction.

        Args:
            engine: of writers; its transactions begin with the statement as well.
            begin: the statement that begins one.

        """
        self._engine = engine
        self._begin = begin
        self._kept: Connection | None = None

    def begin(self) -> Connection:
        """Begin a transaction on the connection that is kept."""
        if self._kept is None:
            connection = self._engine.connect()
            try:
                connection.begin()
            except BaseException:
                give_back(connection)
                raise
            self._kept = connection
            return connection
        fetch_all(self._kept, self._begin)
        return self._kept

    def commit(self, connection: Connection) -> None:
        """Commit."""
        fetch_all(connection, "COMMIT")

    def end(self, connection: Connection) -> None:
        """Undo what is not committed; a connection that cannot is not used again."""
        if not is_in_transaction(connection):
            return
        try:
            fetch_all(connection, "ROLLBACK")
        except SQLAlchemyError:
            self._kept = None
            connection.invalidate()
            give_back(connection)

    def close(self) -> None:
        """Close the connection, between two transactions."""
        kept, self._kept = self._kept, None
        if kept is not None:
            give_back(kept)
