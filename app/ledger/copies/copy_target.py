"""The database that a ledger is copied to: reserved first, then filled in one transaction.

A reserved database has tables and a secret of its own, and says in place of a revision
that it is no ledger yet, so that no server opens it and none begins a release there.  The
one transaction that fills it brings every row, the ledger's secret and the revision, all
or none of them.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import inspect, text, update
from sqlalchemy.exc import SQLAlchemyError

from app.errors import ConfigurationError, VerificationError
from app.ledger.copies.row_copier import copy_rows, is_without_rows, row_digests
from app.ledger.database.database import ledger_database
from app.ledger.database.open_database import (
    UNFINISHED,
    cannot_open,
    open_database,
    read_revision,
    refusal_reason,
)
from app.ledger.database.postgresql import allow_long_waits
from app.ledger.database.protections import unprotected
from app.ledger.database.sqlite import URL_KEY
from app.ledger.database.statements import read_database_secret
from app.ledger.database.tables import REVISION, database_secret, entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from app.noise.source import NoiseSource

_SET_REVISION: Final = text("UPDATE alembic_version SET version_num = :revision")


class Held(Enum):
    """What a database holds, as far as a copy is concerned."""

    NOTHING = "nothing"
    RESERVED = "reserved"
    LEDGER = "ledger"


class Found(NamedTuple):
    """What is at an address.

    Attributes:
        held: the kind of thing.
        secret: of the database, 32 bytes; None where it has none.

    """

    held: Held
    secret: bytes | None = None


def look_at(url: str) -> Found:
    """Return what a database holds, and change nothing in it.

    Raises:
        ConfigurationError: it is another program's, or cannot be read.
        LedgerCorruptError: it is a damaged ledger.

    """
    database = ledger_database(url)
    if database.is_empty:
        return Found(Held.NOTHING)
    readers = database.reading_engine()
    try:
        with readers.connect() as connection:
            return _found(connection, read_revision(database, connection))
    except (SQLAlchemyError, ValueError) as error:
        raise cannot_open(database, refusal_reason(error)) from None
    finally:
        readers.dispose()


def _found(connection: Connection, revision: str | None) -> Found:
    if revision is None or not inspect(connection).has_table(entries.name):
        return Found(Held.NOTHING)
    secret = read_database_secret(connection)
    if revision == UNFINISHED:
        return Found(Held.RESERVED, secret)
    held = Held.NOTHING if revision == REVISION and is_without_rows(connection) else Held.LEDGER
    return Found(held, secret)


def reserve(url: str, *, noise: NoiseSource) -> None:
    """Make the tables where there are none, and let no server open the database from now on.

    Args:
        url: of a database that holds no release, or that is reserved already.
        noise: where a new database's secret is drawn from.

    Raises:
        ConfigurationError: a release is there, or the database cannot be made.
        SQLAlchemyError: the database refuses.

    """
    if look_at(url).held is Held.RESERVED:
        return
    open_database(url, create=True, noise=noise).close()
    with filling(url) as connection:
        connection.execute(_SET_REVISION, {"revision": UNFINISHED})
        connection.commit()


@contextmanager
def filling(url: str) -> Iterator[Connection]:
    """Yield a transaction that holds the write lock of a database without rows.

    What the block does not commit is undone.

    Raises:
        ConfigurationError: rows are there.
        SQLAlchemyError: the database refuses.

    """
    database = ledger_database(url)
    engine = database.writing_engine()
    try:
        with closing(engine.connect()) as connection:
            connection.begin()
            allow_long_waits(connection)
            if not is_without_rows(connection):
                raise ConfigurationError(URL_KEY, f"{database.place} holds a ledger already")
            yield connection
    finally:
        engine.dispose()


def fill(source: Connection, target: Connection, secret: bytes) -> None:
    """Bring a whole ledger into a reserved database, in the transaction of the caller.

    Args:
        source: a transaction that sees one moment.
        target: what ``filling`` yields.
        secret: of the source's database, 32 bytes.

    Raises:
        VerificationError: what arrived is not what was sent.
        SQLAlchemyError: either database refuses.

    """
    copy_rows(source, target)
    with unprotected(target, database_secret.name):
        target.execute(update(database_secret), {"secret": secret})
    target.execute(_SET_REVISION, {"revision": REVISION})
    arrived = row_digests(target)
    for name, sent in row_digests(source).items():
        if arrived[name] != sent:
            raise VerificationError(
                f"the copy has other rows than the ledger in the table {name}; nothing was changed"
            )
