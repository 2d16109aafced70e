"""Where the ledgers of a test are: in files, or in PostgreSQL under the names of files.

Databases of PostgreSQL are copies of one that was created by the revisions as a server does it,
each with a secret of its own.  ``Places``, ``test_postgresql.py`` and the tests of servers create
theirs.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from app.ledger.database.open_database import open_database
from app.ledger.entries.digests import SECRET_BYTES
from app.noise.system import SystemNoise
from tests.builders.ledger.single_answers import READ, SingleAnswer, gathered, parted

if TYPE_CHECKING:
    from pathlib import Path

    from psycopg import Connection

    from tests.builders.ledger.postgresql_server import PostgresqlServer

SQLITE, POSTGRESQL = "sqlite", "postgresql"
KINDS = (SQLITE, POSTGRESQL)


class Databases:
    """The databases of one test."""

    def __init__(self) -> None:
        """Begin with files."""
        self.server: PostgresqlServer | None = None
        self._address: dict[Path, str] = {}
        self._template: dict[PostgresqlServer, str] = {}

    def url_of(self, path: Path) -> str:
        """Return the address of a ledger, in PostgreSQL a new database for each path."""
        if self.server is None:
            return f"sqlite:///{path}"
        if path not in self._address:
            self._address[path] = self._new(self.server)
        return self._address[path]

    def _new(self, server: PostgresqlServer) -> str:
        """Create a database with the tables of a ledger, and no release."""
        if server not in self._template:
            template = server.create_database()
            open_database(template, create=True, noise=SystemNoise()).close()
            self._template[server] = template
        address = server.copy_database(self._template[server])
        with server.connect(address) as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute(
                "UPDATE database_secret SET secret = %s", [SystemNoise().secret(SECRET_BYTES)]
            )
        return address

    def tamper(self, path: Path, *statements: str) -> None:
        """Change a database behind the ledger's back, where no trigger refuses it.

        A statement about ``answers`` is of the answers of all groups, as rows of their own.
        """
        if self.server is None:
            _tamper_with_file(path, statements)
            return
        with self.server.connect(self.url_of(path)) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                _run_in_postgresql(connection, _in_postgresql(statement))

    def end(self) -> None:
        """Drop what was created in PostgreSQL; a test's folder goes with pytest."""
        for address in self._address.values():
            if self.server is not None:
                self.server.drop_database(address)
        self._address, self.server = {}, None


def _in_postgresql(statement: str) -> str:
    """Return a statement with literals of bytes as PostgreSQL writes them."""
    statement = statement.replace("AS BLOB", "AS bytea")
    statement = re.sub(r"\bx'([0-9a-f]*)'", r"'\\x\1'::bytea", statement)
    return re.sub(r"zeroblob\((\d+)\)", r"decode(repeat('00', \1), 'hex')", statement)


SINGLE = "single_answers"
_ANSWERS = re.compile(r"(?<=\b(?:FROM|INTO) )answers\b|(?<=\bUPDATE )answers\b")
_INSERT_SINGLE = f"INSERT INTO {SINGLE} VALUES ({', '.join('?' * len(SingleAnswer._fields))})"  # noqa: S608 -- a name of ours
_INSERT_GROUP = "INSERT INTO answer_groups VALUES (?, ?, ?, ?, ?)"


def run_in_file(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement; where it is of answers, on those of the groups."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if "answer_groups" not in tables or not _ANSWERS.search(statement):
        connection.execute(statement)
        return
    connection.execute(f"CREATE TABLE {SINGLE} AS SELECT * FROM answers LIMIT 0")  # noqa: S608 -- as above
    connection.executemany(_INSERT_SINGLE, parted(connection.execute(READ)))
    connection.execute(_ANSWERS.sub(SINGLE, statement))
    changed = [SingleAnswer(*row) for row in connection.execute(f"SELECT * FROM {SINGLE}")]  # noqa: S608 -- as above
    connection.execute("DELETE FROM answer_groups")
    connection.executemany(_INSERT_GROUP, gathered(changed))
    connection.execute(f"DROP TABLE {SINGLE}")


def _run_in_postgresql(connection: Connection, statement: str) -> None:
    """Run a statement; where it is of answers, on those of the groups."""
    if not _ANSWERS.search(statement):
        connection.execute(statement.encode())
        return
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE {SINGLE} (LIKE answers)".encode())
        single = [*parted(cursor.execute(READ).fetchall())]
        cursor.executemany(_INSERT_SINGLE.replace("?", "%s").encode(), single)
        cursor.execute(_ANSWERS.sub(SINGLE, statement).encode())
        rows = cursor.execute(f"SELECT * FROM {SINGLE}".encode()).fetchall()  # noqa: S608 -- as above
        changed = [SingleAnswer(*row) for row in rows]
        cursor.execute("DELETE FROM answer_groups")
        cursor.executemany(_INSERT_GROUP.replace("?", "%s").encode(), gathered(changed))
        cursor.execute(f"DROP TABLE {SINGLE}".encode())


def _tamper_with_file(path: Path, statements: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in (found := triggers.fetchall()):
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            run_in_file(connection, statement)
        for _, statement in found:
            connection.execute(statement)
        connection.commit()


DATABASES = Databases()
