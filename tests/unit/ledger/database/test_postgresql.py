"""What is of PostgreSQL alone: its triggers and roles, and connections that it ends."""

# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psycopg
import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, OperationalError

from app.errors import LedgerCorruptError, LedgerUnavailableError, VerificationError
from app.ledger.database import postgresql as postgresql_module
from app.ledger.database.driver import database_errors
from app.ledger.database.postgresql import allow_long_waits, postgresql_database
from app.ledger.database.tables import INSERT_ONLY, metadata
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.databases import DATABASES
from tests.builders.ledger.releases import answer, answer_many, middle_of_life, url_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ledger.ledger import Ledger
    from tests.builders.ledger.postgresql_server import PostgresqlServer

REFUSED = "rows are never changed"
COUNTS = "key_counts"


@pytest.fixture(scope="module")
def lived(postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a ledger in the middle of its life, which nobody has open."""
    DATABASES.server = postgresql
    path = tmp_path_factory.mktemp("lived") / "life.db"
    middle_of_life(path).close()
    address = url_of(path)
    DATABASES.server = None
    yield address
    postgresql.drop_database(address)


@pytest.fixture
def address(lived: str, postgresql: PostgresqlServer) -> Iterator[str]:
    """Yield the address of a copy of that ledger."""
    address = postgresql.copy_database(lived)
    yield address
    postgresql.drop_database(address)


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    """Yield that copy, opened to be written."""
    ledger = open_ledger(address, create=True)
    assert ledger.is_shared
    yield ledger
    ledger.close()


def first_column(table: str) -> str:
    """Return the name of a column that every row has."""
    return next(iter(metadata.tables[table].columns)).name


def verdict(address: str) -> str | None:
    """Return what verify finds wrong, or None."""
    try:
        ledger = open_ledger(address, create=False)
    except LedgerCorruptError as error:
        return str(error)
    try:
        verify(ledger)
    except (LedgerCorruptError, VerificationError) as error:
        return str(error)
    finally:
        ledger.close()
    return None


# -- roles and triggers ------------------------------------------------------------


@pytest.mark.parametrize("table", INSERT_ONLY)
def test_no_row_is_changed_by_its_owner(
    address: str, postgresql: PostgresqlServer, table: str
) -> None:
    """The owner of the tables is refused UPDATE, DELETE and TRUNCATE of each, empty or not."""
    column = first_column(table)
    with postgresql.connect(address) as connection:
        for statement in (
            f"UPDATE {table} SET {column} = {column}",
            f"UPDATE {table} SET {column} = {column} WHERE false",
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
        ):
            with pytest.raises(psycopg.Error, match=REFUSED):
                connection.execute(statement.encode())
    assert verdict(address) is None


def test_counts_of_keys_only_grow(address: str, postgresql: PostgresqlServer) -> None:
    """They are updated upwards by whoever may, never downwards, and not deleted."""
    with postgresql.connect(address) as connection:
        connection.execute("INSERT INTO key_counts VALUES (1, 'ours', 3, 1, '\\x00')")
        connection.execute("UPDATE key_counts SET answered = 4, unstable = 1")
        for statement in (
            "UPDATE key_counts SET answered = 3",
            "UPDATE key_counts SET unstable = 0",
            "UPDATE key_counts SET name = 'theirs'",
            "UPDATE key_counts SET release_number = 2",
        ):
            with pytest.raises(psycopg.Error, match="counts only grow"):
                connection.execute(statement.encode())
        for statement in ("DELETE FROM key_counts", "TRUNCATE key_counts"):
            with pytest.raises(psycopg.Error, match=REFUSED):
                connection.execute(statement.encode())


def test_a_server_that_owns_nothing_changes_nothing(
    address: str, postgresql: PostgresqlServer
) -> None:
    """The role that serves may insert, and is refused every change before a trigger is asked."""
    role = f"serving_{make_url(address).database}"
    postgresql.run(f"CREATE ROLE {role} LOGIN")
    with postgresql.connect(address) as owner:
        owner.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {role}".encode())
        owner.execute(f"GRANT UPDATE ON key_counts, key_blocks TO {role}".encode())
        owner.execute(f"GRANT DELETE ON newest_answers, hour_counts TO {role}".encode())
        owner.execute(f"GRANT UPDATE ON hour_counts TO {role}".encode())
    served = make_url(address).set(username=role).render_as_string(hide_password=False)
    with postgresql.connect(served) as connection:
        for table in (*INSERT_ONLY, COUNTS):
            for statement in (
                f"UPDATE {table} SET {first_column(table)} = 1",
                f"DELETE FROM {table}",
                f"TRUNCATE {table}",
                f"DROP TABLE {table}",
                f"ALTER TABLE {table} DISABLE TRIGGER ALL",
                f"DROP TRIGGER {table}_refuse_change ON {table}",
            ):
                if table == COUNTS and statement.startswith("UPDATE"):
                    continue
                with pytest.raises(psycopg.Error, match=r"permission denied|must be owner"):
                    connection.execute(statement.encode())
        with pytest.raises(psycopg.Error, match="permission denied"):
            connection.execute("SET session_replication_role = replica")
    serving = open_ledger(served, create=True)
    with serving.transaction() as transaction:
        transaction.record_answers([answer(serving, 10)])
    serving.close()
    assert verdict(address) is None


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO entries VALUES (1, 11, 'ReleaseHalted', 1, '{}', 'x')",
        "INSERT INTO answer_groups VALUES (1, 11, 11, 6, '\\x11')",
        "INSERT INTO answer_groups VALUES (1, 10, 9, 6, '\\x11')",
    ],
)
def test_numbers_follow_without_gaps(
    address: str, postgresql: PostgresqlServer, statement: str
) -> None:
    """Neither an entry nor an answer is put beyond the next one, or in the place of one."""
    with (
        postgresql.connect(address) as connection,
        pytest.raises(psycopg.Error, match="numbers follow without gaps"),
    ):
        connection.execute(statement.encode())


def test_the_table_of_single_answers_takes_no_row(
    address: str, postgresql: PostgresqlServer
) -> None:
    """New answers are in groups, and those of before are all there."""
    statement = (
        "INSERT INTO answers (release_number, query_id, sequence, vector_digest, vector, stable) "
        "VALUES (1, 10, 6, '\\x11', '\\x11', true)"
    )
    with (
        postgresql.connect(address) as connection,
        pytest.raises(psycopg.Error, match=REFUSED),
    ):
        connection.execute(statement.encode())


def test_bodies_of_groups_are_not_compressed(address: str, postgresql: PostgresqlServer) -> None:
    """They are digests for the most part; and a group has 1 to 64 answers."""
    storage = (
        "SELECT attstorage FROM pg_attribute WHERE attname = 'body' AND attrelid = %s::regclass"
    )
    with postgresql.connect(address) as connection:
        assert connection.execute(storage, ("answer_groups",)).fetchone() == ("e",)
        for last in (9, 74):
            statement = f"INSERT INTO answer_groups VALUES (1, {last}, 10, 6, '\\x11')"
            with pytest.raises(psycopg.Error, match="answer_groups_have_1_to_64_answers"):
                connection.execute(statement.encode())


ANOTHER = (
    "CREATE TRIGGER another BEFORE INSERT ON entries FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
)
REPLACED = (
    "CREATE OR REPLACE FUNCTION conclave_refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RETURN NULL; END $$"
)


@pytest.mark.parametrize(
    ("statement", "account"),
    [
        (
            "ALTER TABLE answers DISABLE TRIGGER answers_refuse_change",
            "answers has lost the trigger",
        ),
        (
            "DROP TRIGGER answer_groups_follow_without_gaps ON answer_groups",
            "answer_groups has lost the trigger",
        ),
        ("DROP TRIGGER entries_refuse_change ON entries", "entries has lost the trigger"),
        (REPLACED, "has lost the trigger"),
        ("DROP TRIGGER key_counts_only_grow ON key_counts", "key_counts has lost the trigger"),
        ("ALTER TABLE entries DISABLE TRIGGER entries_follow_without_gaps", "entries has lost"),
        (ANOTHER, "a trigger that is not the ledger's: another"),
        (
            "CREATE RULE quiet AS ON DELETE TO answers DO INSTEAD NOTHING",
            "a rule that is not the ledger's: quiet",
        ),
        ("DROP INDEX answers_by_vector", "lost the index answers_by_vector"),
    ],
)
def test_what_the_owner_takes_away_is_named(
    address: str, postgresql: PostgresqlServer, statement: str, account: str
) -> None:
    """A trigger that is disabled, dropped or replaced, a rule beside it, and a lost index."""
    with postgresql.connect(address) as connection:
        connection.execute(statement.encode())
    assert account in (verdict(address) or "")


# -- connections -------------------------------------------------------------------


def end_connections(address: str, postgresql: PostgresqlServer) -> None:
    """Let PostgreSQL end every connection to a database."""
    with postgresql.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            (make_url(address).database,),
        )


def test_what_was_read_is_true_though_the_connection_ends(
    ledger: Ledger, address: str, postgresql: PostgresqlServer
) -> None:
    """A snapshot that is left on a connection that is gone raises nothing."""
    with ledger.snapshot() as connection:
        connection.exec_driver_sql("SELECT 1")
        end_connections(address, postgresql)
    assert ledger.read_state().answered == 9


@pytest.mark.parametrize("ends_at", ["append", "commit"])
def test_a_transaction_knows_that_it_was_cut_off(
    ledger: Ledger, address: str, postgresql: PostgresqlServer, ends_at: str
) -> None:
    """Where PostgreSQL ended its connection; the next one has another, and finds nothing of it."""
    with pytest.raises(LedgerUnavailableError), ledger.transaction() as transaction:  # noqa: PT012 -- its end is what raises
        if ends_at == "append":
            end_connections(address, postgresql)
        transaction.record_answers([answer(ledger, 10)])
        end_connections(address, postgresql)
    assert transaction.was_cut_off
    with ledger.transaction() as following:
        assert following.state.answered == 9
        following.record_answers([answer(ledger, 10)])
    assert not following.was_cut_off
    verify(ledger)


def test_a_transaction_that_was_refused_was_not_cut_off(
    ledger: Ledger, address: str, postgresql: PostgresqlServer
) -> None:
    """A statement that the database does not take, for want of space say, ends no connection."""
    with postgresql.connect(address) as owner:
        owner.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
        )
        owner.execute(
            "CREATE TRIGGER full_disk BEFORE INSERT ON answer_groups EXECUTE FUNCTION full_disk()"
        )
    with pytest.raises(LedgerUnavailableError), ledger.transaction() as transaction:
        transaction.record_answers([answer(ledger, 10)])
    assert not transaction.was_cut_off


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (psycopg.errors.DataCorrupted("page"), LedgerCorruptError),
        (psycopg.errors.IndexCorrupted("index"), LedgerCorruptError),
        (psycopg.errors.AdminShutdown("bye"), LedgerUnavailableError),
        (psycopg.errors.DiskFull("full"), LedgerUnavailableError),
        (
            psycopg.DatabaseError("the connection is lost, and nobody said why"),
            LedgerUnavailableError,
        ),
    ],
)
def test_only_damage_is_taken_for_damage(raised: psycopg.Error, expected: type) -> None:
    """What PostgreSQL calls corrupted stops a release; whatever else it says passes."""
    kind = OperationalError if isinstance(raised, psycopg.OperationalError) else DatabaseError
    with pytest.raises(expected), database_errors():
        raise kind("SELECT", {}, raised)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait two seconds for the lock, and let who holds it sleep half a second."""
    begin = postgresql_module._BEGIN
    begin = begin.replace("lock_timeout', '20s", "lock_timeout', '2s")
    monkeypatch.setattr(postgresql_module, "_BEGIN", begin)
    end = postgresql_module._END_STUCK.replace("'10 s'", "'0.5 s'")
    monkeypatch.setattr(postgresql_module, "_END_STUCK", end)


@pytest.fixture
def other_server(address: str) -> Iterator[psycopg.Connection]:
    """Yield a connection of another server, which holds the lock."""
    url = make_url(address).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        connection.execute(postgresql_module._BEGIN.encode())
        yield connection
        connection.close()


@pytest.mark.usefixtures("impatient")
def test_a_server_that_sleeps_within_a_request_is_ended(
    ledger: Ledger, other_server: psycopg.Connection
) -> None:
    """No limit of PostgreSQL's own sees it; who waits for the lock ends it, and goes on."""
    asked = other_server.pgconn
    asked.enter_pipeline_mode()
    asked.send_query_params(b"SELECT $1::int", [b"1"])
    asked.send_flush_request()
    asked.flush()  # executed, and what ends the request is never sent
    answer_many(ledger, batches=1, batch_size=2)
    with pytest.raises(psycopg.OperationalError):
        other_server.execute("SELECT 1")


@pytest.mark.usefixtures("impatient")
def test_a_server_that_sleeps_before_it_asks_is_ended(
    ledger: Ledger, other_server: psycopg.Connection
) -> None:
    """A message that ends PostgreSQL's count and begins no state is called idle for ever."""
    asked = other_server.pgconn
    asked.prepare(b"known", b"SELECT 1")
    other_server.execute("SET LOCAL idle_in_transaction_session_timeout = '1s'")
    asked.enter_pipeline_mode()
    asked.send_describe_prepared(b"known")
    asked.send_flush_request()
    asked.flush()
    answer_many(ledger, batches=1, batch_size=2)
    with pytest.raises(psycopg.OperationalError):
        other_server.execute("SELECT 1")


@pytest.mark.usefixtures("impatient")
def test_a_command_that_may_wait_long_is_not_ended(ledger: Ledger, address: str) -> None:
    """Whoever moves a ledger holds the lock while it reads elsewhere; servers give up."""
    engine = postgresql_database(address).writing_engine()
    with engine.begin() as connection:
        allow_long_waits(connection)
        with pytest.raises(LedgerUnavailableError):
            answer_many(ledger, batches=1, batch_size=1)
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    engine.dispose()


@pytest.mark.usefixtures("impatient")
def test_a_server_that_works_is_not_ended(ledger: Ledger, other_server: psycopg.Connection) -> None:
    """Who waits for it gives up, as ever, and takes nothing away from it."""
    working = other_server.pgconn
    working.send_query(b"SELECT pg_sleep(3)")
    working.flush()
    with pytest.raises(LedgerUnavailableError):
        answer_many(ledger, batches=1, batch_size=1)
    found = working.get_result()
    assert found is not None
    assert found.status == psycopg.pq.ExecStatus.TUPLES_OK
    working.get_result()


# -- turns -------------------------------------------------------------------------


def test_a_turn_is_one_servers(
    ledger: Ledger, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one waits so long and is refused, and has it once the first has left it."""
    monkeypatch.setattr(postgresql_module, "LOCK_SECONDS_MAX", 0.1)
    other = open_ledger(address, create=True)
    with ledger.turn_to_draw(1) as is_held:
        with pytest.raises(LedgerUnavailableError, match="another server"), other.turn_to_draw(1):
            pass
        with other.turn_to_draw(2) as of_another_release:
            assert of_another_release()
        assert is_held()
    with other.turn_to_draw(1) as is_held:
        assert is_held()
    other.close()


def test_a_kept_turn_is_one_servers_until_it_has_recorded_its_draw(
    ledger: Ledger, address: str, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by a full database it keeps its turn; cut off from the database it loses that."""
    monkeypatch.setattr(postgresql_module, "LOCK_SECONDS_MAX", 0.1)
    other = open_ledger(address, create=True)

    def refused() -> None:
        with ledger.drawing.hold() as is_held:
            assert is_held()
            ledger.drawing.keep()
            raise LedgerUnavailableError("full")

    for _ in range(2):
        with pytest.raises(LedgerUnavailableError, match="full"):
            refused()
        with pytest.raises(LedgerUnavailableError, match="another server"), other.drawing.hold():
            pass
    with ledger.drawing.hold():
        pass
    with other.drawing.hold() as is_held:
        assert is_held()
    with pytest.raises(LedgerUnavailableError, match="full"):
        refused()
    end_connections(address, postgresql)
    with other.drawing.hold() as is_held:
        assert is_held()
    with pytest.raises(LedgerUnavailableError, match="full"):
        refused()
    ledger.close()
    with other.drawing.hold() as is_held:
        assert is_held()
    other.close()


def test_a_turn_lasts_as_long_as_its_server_is_awake(
    ledger: Ledger, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL ends a connection that asks for nothing, as that of a paused server does."""
    monkeypatch.setattr(postgresql_module, "IDLE_SECONDS_MAX", 2)
    monkeypatch.setattr(postgresql_module, "TURN_ASKED_SECONDS", 0.1)
    with ledger.turn_to_draw(1) as is_held:
        time.sleep(2.5)
        assert is_held()
    monkeypatch.setattr(postgresql_module, "TURN_ASKED_SECONDS", 3600.0)
    other = open_ledger(address, create=True)
    with ledger.turn_to_draw(1) as is_held, other.turn_to_draw(1) as is_held_by_other:
        assert is_held_by_other()
        assert not is_held()
        assert not is_held()
    other.close()
