"""PostgreSQL as a ledger's database: every part that differs from SQLite.

Several servers may have one ledger open. Their writes are ordered by one advisory lock of the
database. Every write transaction takes this lock before its first read, and PostgreSQL releases the
lock when the transaction or the connection ends. No other server writes meanwhile, so all
statements of such a transaction see the same committed rows, including those of the previous
transaction.

Another lock lets one process at a time draw what a release publishes once: its classifier, and its
statistics table (noisy numbers of rows).

Private values (secrets, models, noise) are stored in the database, and ledger entries contain their
keyed hashes. The index of answers finds recorded answers.

The module also checks the triggers of the tables, which refuse changed and deleted rows, and the
functions that they run. The owner of the tables can disable a trigger, drop it, or replace its
function, so all three are compared with those that the revisions in ``migrations/`` created. A
server need not be the owner: ``docs/postgresql.md`` has the roles.
"""

# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

import time
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    LargeBinary,
    NullPool,
    create_engine,
    event,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from app.errors import ConfigurationError, LedgerUnavailableError
from app.ledger.database.driver import (
    KeptWriting,
    begun,
    database_errors,
    fetch_all,
    give_back,
    is_cut_off,
)
from app.ledger.database.sqlite import READERS_MAX, URL_KEY
from app.ledger.database.tables import (
    ANSWERS_INDEX,
    INSERT_ONLY,
    hour_counts,
    key_blocks,
    key_counts,
    metadata,
    newest_answers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection

    from app.ledger.database.driver import Writing

DRIVER: Final = "postgresql+psycopg"
DIALECT: Final = "postgresql"

WRITING_LOCK: Final = 0x436F6E63_6C617665  # "Conclave"
"""The advisory lock of whoever writes, in the ledger's database."""

OPENING_LOCK: Final = 0x6F70656E  # "open"
"""The first half of the advisory lock of whoever opens a release, while others wait."""

DRAWING_LOCK: Final = 0x64726177  # "draw"
"""The first half of the advisory lock of whoever draws what is published once."""

LOCK_SECONDS_MAX: Final = 20
"""How long a transaction waits for another server's before it is refused."""

IDLE_SECONDS_MAX: Final = 10
"""How long a server may hold the lock and ask for nothing.

One that is paused, or whose machine is gone, is then cut off by PostgreSQL and its
transaction undone, before those that wait for it give up.
"""

LOCK_TIMED_OUT: Final = "55P03"
"""PostgreSQL's code for a lock that was not to be had in time."""

LONG_WAITS: Final = "conclave, which may wait long"
"""What such a command calls its connection, so that no server takes it for a paused one."""

LONG_IDLE_SECONDS_MAX: Final = 3600
"""The same of a command that holds the lock while it reads another database whole."""

TURN_ASKED_SECONDS: Final = 2.0
"""How often the connection of a turn is asked, so that PostgreSQL does not end it as idle."""

IDLE_SESSIONS_END: Final = (14,)
"""The first version of PostgreSQL that ends a session for being idle."""

ANOTHER_DRAWS: Final = "another server draws what is published; try again"
CONNECT_SECONDS_MAX: Final = 5
TURN_SECONDS: Final = 0.2
"""How often a server that waits for its turn to open a release asks for it."""

# In every transaction, since a pooler may give each to another connection: a commit is
# answered once it is on disk, whatever the database's own default says.
_BEGIN: Final = (
    "SELECT set_config('synchronous_commit', 'on', true), "
    f"set_config('lock_timeout', '{LOCK_SECONDS_MAX}s', true), "
    f"set_config('idle_in_transaction_session_timeout', '{IDLE_SECONDS_MAX}s', true), "
    f"pg_advisory_xact_lock({WRITING_LOCK})"
)

# A server that is paused between two messages of one request is not idle by PostgreSQL's
# count, and no limit of its own ends it.  Some messages begin its state anew; where others
# end the count and leave the state, it is still called idle.  A command that may wait long
# has said so by the name of its connection.
_END_STUCK: Final = (
    "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND datname = current_database() "
    f"AND (classid::bigint << 32) + objid::bigint = {WRITING_LOCK} "
    "AND state IN ('active', 'idle in transaction') AND wait_event = 'ClientRead' "
    f"AND application_name <> '{LONG_WAITS}' "
    f"AND state_change < clock_timestamp() - interval '{IDLE_SECONDS_MAX} s'"
)


@dataclass(frozen=True, slots=True)
class PostgresqlDatabase:
    """A ledger's database on a PostgreSQL server.

    Attributes:
        url: the whole address, with the password; it is never shown.

    """

    url: URL

    @property
    def place(self) -> str:
        """The host and the database's name, without user and password."""
        host = self.url.host or self.url.query.get("host") or "localhost"
        return f"{self.url.database or 'postgres'} at {host}"

    @property
    def file(self) -> None:
        """None, since the files of a PostgreSQL database belong to its server."""
        return

    @property
    def is_shared(self) -> bool:
        """True: several servers may use a ledger in PostgreSQL at once."""
        return True

    @property
    def is_there(self) -> bool:
        """True, since the operator has created the PostgreSQL database."""
        return True

    @property
    def is_empty(self) -> bool:
        """False, since the contents of the database are unknown before reading."""
        return False

    def create(self) -> None:
        """Do nothing, since the operator creates a PostgreSQL database."""

    def create_tables(self, connection: Connection) -> bool:
        """Return False: the revisions also write the rights and functions of a server."""
        del connection
        return False

    def writing_engine(self) -> Engine:
        """Return the SQLAlchemy engine for writing; its transactions begin with the write lock."""
        engine = self._engine(pool_size=1, isolation_level="READ COMMITTED")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql(_BEGIN)

        return engine

    def writing(self, engine: Engine) -> Writing:
        """Return write transactions that each take a pooled connection."""
        return SharedWriting(engine, self.url)

    def reading_engine(self) -> Engine:
        """Return the engine for reading; each transaction sees the database at one moment."""
        engine = self._engine(pool_size=READERS_MAX, isolation_level="REPEATABLE READ")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")

        return engine

    def messaging_engine(self) -> Engine:
        """Return the engine of connections on which servers send each other messages."""
        return _engine_of_turns(self.url)

    def turn_to_draw(self, release_number: int) -> AbstractContextManager[Callable[[], bool]]:
        """Hold the lock that lets only one process draw the classifier or the statistics table."""
        return turn_to_draw(self.url, release_number)

    def _engine(self, *, pool_size: int, isolation_level: str) -> Engine:
        return create_engine(
            self.url,
            isolation_level=isolation_level,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=CONNECT_SECONDS_MAX,
            # A connection that was cut, as by a restart of the database, is replaced unnoticed.
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args={"connect_timeout": CONNECT_SECONDS_MAX},
        )


class SharedWriting(KeptWriting):
    """Write transactions that wait for another server's lock, and disconnect idle lock holders."""

    def __init__(self, engine: Engine, url: URL) -> None:
        """Take connections from ``engine``, which is for writing.

        Args:
            engine: the engine for writing.
            url: the address of the database, for one additional connection.

        """
        super().__init__(engine, _BEGIN)
        self._url = url

    def begin(self) -> Connection:
        """Begin a transaction; if an idle connection holds the lock, disconnect it once.

        If the open connection was cut, for example by a restart of the database, a new one replaces
        it without an error, since nothing was written yet.
        """
        kept = self._kept
        try:
            return self._begin_now()
        except DBAPIError as error:
            if kept is not None and is_cut_off(kept):
                return self._begin_now()
            timed_out = getattr(error.orig, "sqlstate", None) == LOCK_TIMED_OUT
            if not (timed_out and self._end_stuck()):
                raise
        return self._begin_now()

    def _begin_now(self) -> Connection:
        """Begin a transaction, or leave none open."""
        try:
            if self._kept is None:
                self._kept = begun(self._engine)
            else:
                fetch_all(self._kept, _BEGIN)
        except BaseException:
            if self._kept is not None:
                self.end(self._kept)
            raise
        return self._kept

    def _end_stuck(self) -> bool:
        """End the connection of a server that was paused in the middle of a request.

        Its transaction is undone, as that of one that is paused between two requests.
        PostgreSQL lets a role end connections of its own only.
        """
        with _engine_of_turns(self._url).connect() as connection:
            return bool(connection.exec_driver_sql(_END_STUCK).all())


def postgresql_database(url: str) -> PostgresqlDatabase:
    """Return the PostgreSQL database that an address names.

    Raises:
        ConfigurationError: the address is malformed.

    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the latter of a port that is no number
        raise ConfigurationError(
            URL_KEY, "is no address like postgresql+psycopg://HOST/DATABASE"
        ) from None
    if "@" in (parsed.host or ""):  # the end of the password, which errors must not show
        raise ConfigurationError(URL_KEY, "has an @ in its password; write it as %40")
    return PostgresqlDatabase(parsed)


def allow_long_waits(connection: Connection) -> None:
    """Allow a transaction to hold the write lock for a long time while it is idle.

    Otherwise PostgreSQL or another server disconnects the idle connection.

    Args:
        connection: a connection inside a transaction.

    Raises:
        DBAPIError: the database refused the statement.

    """
    if connection.dialect.name == DIALECT:
        limit = f"'idle_in_transaction_session_timeout', '{LONG_IDLE_SECONDS_MAX}s'"
        name = f"'application_name', '{LONG_WAITS}'"
        connection.exec_driver_sql(f"SELECT set_config({limit}, true), set_config({name}, true)")


@contextmanager
def turn_to_open(url: str, release_name: str) -> Iterator[None]:
    """Wait for and hold the lock that lets only one server open the release.

    If this process or its connection ends, PostgreSQL gives the lock to another server. Two servers
    that opened a release at once would do no harm, only the same work twice: the first transaction
    that commits decides what was drawn.

    Args:
        url: the address of the ledger.
        release_name: the name of the release.

    Raises:
        ConfigurationError: the database cannot be reached.

    """
    engine = _engine_of_turns(postgresql_database(url).url)
    second_half = zlib.crc32(release_name.encode()) - 2**31
    turn = f"SELECT pg_try_advisory_lock({OPENING_LOCK}, {second_half})"
    with _connected(engine, place=postgresql_database(url).place) as connection:
        while connection.exec_driver_sql(turn).scalar() is not True:
            time.sleep(TURN_SECONDS)
        yield


def grant_serving(url: str, role: str) -> None:
    """Grant a database role the rights that a server needs to read and write a ledger.

    The role may read and add rows of every table. It may also update and delete rows of the tables
    of counts and of the index of answers, as far as triggers permit it, and delete unused private
    values.

    Raises:
        ConfigurationError: there is no such role, or another role owns the tables.

    """
    engine = postgresql_database(url).writing_engine()
    names = ", ".join(metadata.tables)
    try:
        with engine.begin() as connection:
            quoted = connection.dialect.identifier_preparer.quote_identifier(role)
            connection.exec_driver_sql(f"GRANT SELECT, INSERT ON {names} TO {quoted}")
            raised = f"{key_counts.name}, {key_blocks.name}, {hour_counts.name}"
            connection.exec_driver_sql(f"GRANT UPDATE ON {raised} TO {quoted}")
            moved = f"{newest_answers.name}, {hour_counts.name}"
            connection.exec_driver_sql(f"GRANT DELETE ON {moved} TO {quoted}")
            connection.exec_driver_sql(f"GRANT EXECUTE ON FUNCTION {_FORGETS} TO {quoted}")
            connection.exec_driver_sql(f"GRANT SELECT ON alembic_version TO {quoted}")
    except DBAPIError as error:
        raise ConfigurationError("--grant", str(error.orig).splitlines()[0]) from None
    finally:
        engine.dispose()


@contextmanager
def turn_to_draw(url: URL, release_number: int) -> Iterator[Callable[[], bool]]:
    """Hold the lock that lets only one process draw the classifier or the statistics table.

    If two processes drew at once, the draw that finishes first would be published, and the time of
    a draw may depend on its result. The proofs are for a single draw. If this process or its
    connection ends, or the process is paused, PostgreSQL gives the lock to another process.

    Args:
        url: the address of the ledger.
        release_number: the number of the release in the database.

    Yields:
        A function that returns whether this process still has the lock.

    Raises:
        LedgerUnavailableError: the database cannot be reached, or another server has the lock for
            too long.

    """
    with database_errors():
        connection = _engine_of_turns(url).connect()
    try:
        with database_errors():
            if (connection.dialect.server_version_info or ()) >= IDLE_SESSIONS_END:
                limit = f"SET idle_session_timeout = '{IDLE_SECONDS_MAX}s'"
                connection.exec_driver_sql(limit)
            _wait_for_turn(connection, release_number)
        turn = _Turn(connection)
        with turn.kept_awake():
            yield turn.is_held
    finally:
        give_back(connection)


class _Turn:
    """A turn on a connection of its own, which is asked now and then, or is taken away."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = Lock()
        self._is_lost = False

    def is_held(self) -> bool:
        """Return whether the connection still holds the lock; False for ever once it was lost."""
        with self._asking:
            try:
                if not self._is_lost:
                    self._connection.exec_driver_sql("SELECT 1")
            except SQLAlchemyError:
                self._is_lost = True
            return not self._is_lost

    @contextmanager
    def kept_awake(self) -> Iterator[None]:
        """Keep the connection alive from a thread, which stops if the process is paused."""
        ended = Event()

        def ask_on() -> None:
            while not ended.wait(TURN_ASKED_SECONDS):
                self.is_held()

        asking = Thread(target=ask_on, name="conclave-turn", daemon=True)
        asking.start()
        try:
            yield
        finally:
            ended.set()
            asking.join()


def _wait_for_turn(connection: Connection, release_number: int) -> None:
    turn = f"SELECT pg_try_advisory_lock({DRAWING_LOCK}, {release_number})"
    until = time.monotonic() + LOCK_SECONDS_MAX
    while connection.exec_driver_sql(turn).scalar() is not True:
        if time.monotonic() > until:
            raise LedgerUnavailableError(ANOTHER_DRAWS)
        time.sleep(TURN_SECONDS)


def _engine_of_turns(url: URL) -> Engine:
    """Return an engine of connections that keep a lock beyond a transaction."""
    return create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        connect_args={"connect_timeout": CONNECT_SECONDS_MAX},
    )


def _connected(engine: Engine, *, place: str) -> Connection:
    try:
        return engine.connect()
    except DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        raise ConfigurationError(URL_KEY, f"cannot open {place}: {reason}") from None


_NUMBERED: Final = {"entries": "sequence"}
_COUNTS: Final = "key_counts"
_REFUSED: Final = {
    "answers": "INSERT OR DELETE OR UPDATE OR TRUNCATE",
    _COUNTS: "DELETE OR TRUNCATE",
}
"""What the triggers of a table refuse, if not every change but a new row."""

_ONLY_GROW: Final = (
    " BEGIN IF NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
    "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable THEN "
    "RAISE EXCEPTION 'key_counts: counts only grow' USING ERRCODE = '23000'; "
    "END IF; RETURN NEW; END "
)
_GROUPS_FOLLOW: Final = (
    " BEGIN IF NEW.first_query_id <> 1 + COALESCE((SELECT MAX(last_query_id) FROM answer_groups "
    "WHERE release_number = NEW.release_number), (SELECT MAX(query_id) FROM answers "
    "WHERE release_number = NEW.release_number), 0) THEN "
    "RAISE EXCEPTION 'answer_groups: numbers follow without gaps' USING ERRCODE = '23000'; "
    "END IF; RETURN NEW; END "
)
_FORGET: Final = (
    " BEGIN IF EXISTS (SELECT 1 FROM unnest(gone) AS name WHERE "
    "name !~ '^(slots|labelling|request)-') THEN "
    "RAISE EXCEPTION 'private_state: rows are never changed' USING ERRCODE = '23000'; END IF; "
    "ALTER TABLE private_state DISABLE TRIGGER USER; "
    "DELETE FROM private_state WHERE release_number = of_release AND name = ANY (gone); "
    "ALTER TABLE private_state ENABLE TRIGGER USER; END "
)
_FORGETS: Final = "conclave_forget(smallint, text[])"
_FORGETTING: Final = (
    f"SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('{_FORGETS}') AND prosecdef "
    "AND proconfig = ARRAY[format('search_path=%I, pg_temp', current_schema())]"
).replace("%", "%%")
_REFUSE: Final = "conclave_refuse_change"
_ENABLED: Final = "O"

_TABLES: Final = ", ".join(f"'{name}'" for name in sorted(metadata.tables))
_TRIGGERS: Final = (
    "SELECT tgname, relname, pg_get_triggerdef(pg_trigger.oid), tgenabled, prosrc "
    "FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "JOIN pg_proc ON pg_proc.oid = tgfoid "
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    f"WHERE NOT tgisinternal AND nspname = current_schema() AND relname IN ({_TABLES})"
)
_RULES: Final = (
    "SELECT rulename FROM pg_rules "
    f"WHERE schemaname = current_schema() AND tablename IN ({_TABLES}) LIMIT 1"
)
_INDEX: Final = (
    "SELECT indisunique AND indisvalid FROM pg_index "
    f"WHERE indexrelid = to_regclass('{ANSWERS_INDEX}') AND indrelid = to_regclass('answers') "
    "AND pg_get_indexdef(indexrelid) LIKE "
    "'%(vector_digest, release_number) WHERE (qualifier IS NULL)'"
)


def protection_fault(connection: Connection) -> str | None:
    """Return a fault of the protecting triggers or of the index of answers, or None.

    A fault is, for example, a trigger that is missing, disabled, altered or unknown, or a rewrite
    rule of PostgreSQL on a table.
    """
    if connection.exec_driver_sql(_INDEX.replace("%", "%%")).scalar() is not True:
        return f"the table answers has lost the index {ANSWERS_INDEX}, or it was altered"
    rows = connection.exec_driver_sql(_TRIGGERS)
    found = {row[0]: (row[1], _clause(row[2]), row[3], row[4]) for row in rows}
    for name, (table, clause, source) in _protections().items():
        if found.pop(name, None) != (table, clause, _ENABLED, source):
            return f"the table {table} has lost the trigger {name}, or it was altered"
    if found:
        return f"the database has a trigger that is not the ledger's: {min(found)}"
    if connection.exec_driver_sql(_FORGETTING).scalar() != _FORGET:
        return "the database has lost the function conclave_forget, or it was altered"
    rule = connection.exec_driver_sql(_RULES).scalar()
    return None if rule is None else f"the database has a rule that is not the ledger's: {rule}"


def fits(column: Column[object]) -> str | None:
    """Return an SQL condition that a column's bytes have the right length, or None.

    PostgreSQL enforces the types of its columns, but not the length of bytes. None stands for a
    column of another type, or without a fixed length.
    """
    length = column.type.length if isinstance(column.type, LargeBinary) else None
    return None if length is None else f"octet_length({column.name}) = {length}"


@contextmanager
def unprotected(connection: Connection, table: str) -> Iterator[None]:
    """Disable the triggers of a table for a ``with`` block, in which rows may be changed."""
    connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def forget(connection: Connection, release_number: int, names: Sequence[str]) -> None:
    """Delete private values of a release, with the rights of the tables' owner.

    Args:
        connection: a connection inside a transaction.
        release_number: the number of the release to which the private values belong.
        names: the names of private values that are unused after a tick (scheduled update) or the
            retirement of a batch of rows; other names are refused.

    Raises:
        SQLAlchemyError: the database refused, for example because the role was not granted the
            right.

    """
    connection.execute(
        text("SELECT conclave_forget(CAST(:number AS smallint), CAST(:names AS text[]))"),
        {"number": release_number, "names": list(names)},
    )


def _protections() -> dict[str, tuple[str, str, str]]:
    """Return every trigger by its name: its table, its clause and the text of its function."""
    refuse = (
        " BEGIN RAISE EXCEPTION '%: rows are never changed', TG_TABLE_NAME "
        "USING ERRCODE = '23000'; END "
    )
    grow = (
        f"BEFORE UPDATE ON {_COUNTS} FOR EACH ROW EXECUTE FUNCTION conclave_{_COUNTS}_only_grow()"
    )
    expected = {f"{_COUNTS}_only_grow": (_COUNTS, grow, _ONLY_GROW)}
    name = "answer_groups_follow_without_gaps"
    clause = f"BEFORE INSERT ON answer_groups FOR EACH ROW EXECUTE FUNCTION conclave_{name}()"
    expected[name] = ("answer_groups", clause, _GROUPS_FOLLOW)
    name = newest_answers.name
    changed = f"BEFORE UPDATE OR TRUNCATE ON {name} FOR EACH STATEMENT"
    expected[f"{name}_refuse_change"] = (name, f"{changed} EXECUTE FUNCTION {_REFUSE}()", refuse)
    for table in (*INSERT_ONLY, _COUNTS):
        verbs = _REFUSED.get(table, "DELETE OR UPDATE OR TRUNCATE")
        event = f"BEFORE {verbs} ON {table} FOR EACH STATEMENT"
        clause = f"{event} EXECUTE FUNCTION {_REFUSE}()"
        expected[f"{table}_refuse_change"] = (table, clause, refuse)
    for table, number in _NUMBERED.items():
        name = f"{table}_follow_without_gaps"
        clause = f"BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION conclave_{name}()"
        follow = (
            f" BEGIN IF NEW.{number} <> 1 + COALESCE((SELECT MAX({number}) "
            f"FROM {table} WHERE release_number = NEW.release_number), 0) THEN "
            f"RAISE EXCEPTION '{table}: numbers follow without gaps' USING ERRCODE = '23000'; "
            "END IF; RETURN NEW; END "
        )
        expected[name] = (table, clause, follow)
    return expected


def _clause(definition: str) -> str:
    """Return what a trigger's definition says after its name, without the schema's."""
    clause = definition.split(" ", 3)[3]
    before, _, after = clause.partition(" ON ")
    table = after.split(" ", 1)[0]
    return f"{before} ON {after.replace(table, table.split('.')[-1], 1)}"
