"""Private rows from a database, by an SQLAlchemy URL and an SQL query with one row per record.

Rows are read in blocks. Nothing is written: the transaction is read-only if the database supports
this, and is always rolled back. The message of a database driver's error may contain a value or a
password, so only the kind of the error is passed on.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from app.data.field_values import ERRORS
from app.data.sources.column_values import Values
from app.data.sources.row_blocks import ROWS_PER_BLOCK, SOURCE, Block, Blocks, column_indices
from app.data.sources.sql_query_check import QUERY, check_row_wise
from app.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection, CursorResult, Engine

    from app.data.sources.column_values import SourceColumn

SQLITE = "sqlite"
_READ_ONLY = ("SET TRANSACTION READ ONLY",)
READ_ONLY = {
    # The second reads the file, which opening it does not.
    SQLITE: ("PRAGMA query_only = ON", "PRAGMA schema_version"),
    "mariadb": _READ_ONLY,
    "mysql": _READ_ONLY,
    "oracle": _READ_ONLY,
    "postgresql": _READ_ONLY,
}
# A driver may fail to convert a value, or its own message.
DRIVER_ERRORS = (SQLAlchemyError, ValueError, ArithmeticError)
STREAMED = {"stream_results": True, "yield_per": ROWS_PER_BLOCK, "no_parameters": True}


@contextmanager
def open_database(
    source: str, query: str | None, columns: Sequence[SourceColumn]
) -> Iterator[Blocks]:
    """Return an opened source: a database connection on which the query has started.

    Args:
        source: an SQLAlchemy URL, which may contain a password.
        query: a ``SELECT`` that computes each row from one record.
        columns: the columns of the schema.

    Raises:
        DataError: the database cannot be opened, or the query lacks columns.
        ConfigurationError: there is no query, or it may combine several records.

    """
    if query is None:
        raise ConfigurationError(QUERY, "is required: data.source is a database")
    check_row_wise(query)
    engine = _engine(source)
    try:
        with _connected(engine) as connection, _begun(connection, query) as result:
            indices = column_indices(list(result.keys()), columns, place="the query")
            yield Blocks(_blocks(result, indices))
    finally:
        engine.dispose()


def _engine(source: str) -> Engine:
    """Find the driver of an address; nothing is connected yet."""
    try:
        url = make_url(source)
        _check_file(url)
        return create_engine(url, poolclass=NullPool, hide_parameters=True)
    except NoSuchModuleError:
        raise DataError(SOURCE, "names a kind of database that is not known") from None
    except ImportError as error:
        driver = error.name or "that the address names"
        raise DataError(SOURCE, f"needs the driver {driver}; install it") from None
    except (ArgumentError, TypeError, ValueError):
        raise DataError(SOURCE, "is no SQLAlchemy URL such as sqlite:///records.db") from None


def _check_file(url: URL) -> None:
    """Refuse an SQLite file that is not there, which connecting would make."""
    if url.get_backend_name() != SQLITE or (url.database or "").startswith("file:"):
        return
    if not url.database:
        raise DataError(SOURCE, "names no file")
    if not Path(url.database).is_file():
        raise DataError(SOURCE, f"no such file: {url.database}")


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    """Connect for reading only, where the database knows such."""
    try:
        connection = engine.connect()
        for statement in READ_ONLY.get(engine.dialect.name, ()):
            connection.exec_driver_sql(statement)
    except DRIVER_ERRORS as error:
        problem = f"cannot be connected to ({_kind(error)}): check address, user and password"
        raise DataError(SOURCE, problem) from None
    with connection:
        if engine.dialect.name == SQLITE:
            # What is not UTF-8 is then refused by its row, as in a CSV.
            driver = connection.connection.dbapi_connection
            driver.text_factory = _text  # type: ignore[union-attr]  # the driver's own
        yield connection


@contextmanager
def _begun(connection: Connection, query: str) -> Iterator[CursorResult[tuple[object, ...]]]:
    """Run the query; its rows are still to come."""
    try:
        result = connection.exec_driver_sql(query, execution_options=STREAMED)
    except DRIVER_ERRORS as error:
        problem = f"is refused by the database ({_kind(error)}): run it there to see why"
        raise ConfigurationError(QUERY, problem) from None
    with result:
        yield result


def _blocks(result: CursorResult[tuple[object, ...]], indices: Sequence[int]) -> Iterator[Block]:
    """Yield the rows as the database gives them."""
    partitions = result.partitions(ROWS_PER_BLOCK)
    count = 0
    while True:
        try:
            rows = next(partitions, None)
        except DRIVER_ERRORS as error:
            problem = f"the database broke off ({_kind(error)})"
            raise DataError(SOURCE, f"after row {count}: {problem}") from None
        if rows is None:
            return
        values = list(zip(*rows, strict=True))
        yield Block([Values(values[index]) for index in indices])
        count += len(rows)


def _text(body: bytes) -> str:
    """Decode a text of SQLite."""
    return body.decode(errors=ERRORS)


def _kind(error: Exception) -> str:
    """Name an error, without its text."""
    return type(getattr(error, "orig", None) or error).__name__
