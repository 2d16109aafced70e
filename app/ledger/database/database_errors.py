"""What the database raises, in our own words.

Wrapped around the calls of the database and nothing else, so that an error of
somebody else's code inside a transaction is never taken for one of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

from app.errors import InvariantError, LedgerCorruptError, LedgerUnavailableError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

UNAVAILABLE: Final = "the ledger took no entry and nothing was released; try again"
DAMAGED: Final = "the file of the ledger is damaged"
DAMAGED_STATES: Final = frozenset({"XX001", "XX002"})
"""PostgreSQL's codes for a table, or an index, whose pages are not what it wrote."""

WRONG_TYPE: Final = "a table of the ledger holds a value of a wrong type"


class _Translation:
    """Has no state: each of the dozen calls of a commit takes the same one."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Raise in our words what the database raised."""
        del kind, traceback
        if error is not None:
            translate(error)


_TRANSLATION: Final = _Translation()


def database_errors() -> AbstractContextManager[None]:
    """Translate what the database raises; its own words go no further.

    Raises:
        InvariantError: a row that the tables refuse.
        LedgerCorruptError: a file that is damaged: trying again is no use.
        LedgerUnavailableError: anything else: locked, full, read-only, gone.

    """
    return _TRANSLATION


def translate(error: BaseException) -> None:
    """Raise in our words what the database raised; anything else is left to the caller."""
    if isinstance(error, IntegrityError):
        raise InvariantError("the tables of the ledger refuse a row") from None
    if isinstance(error, SQLAlchemyError):
        if is_damage(error):
            raise LedgerCorruptError(DAMAGED) from None
        raise LedgerUnavailableError(UNAVAILABLE) from None
    if isinstance(error, TypeError | ValueError):
        raise LedgerCorruptError(WRONG_TYPE) from None


def is_damage(error: SQLAlchemyError) -> bool:
    """Return whether an error says that the file is no sound database.

    SQLite's driver raises the bare class for damage, and a subclass for whatever has
    to do with the system underneath or with the statement.  PostgreSQL says by a code
    what it found, and its driver raises the bare class where a connection ends
    without any.
    """
    origin = error.orig if isinstance(error, DatabaseError) else None
    if origin is not None and hasattr(origin, "sqlstate"):
        return origin.sqlstate in DAMAGED_STATES
    return type(error) is DatabaseError
