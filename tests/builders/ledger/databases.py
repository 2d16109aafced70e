"""Where the ledgers of a test are: in files, or in PostgreSQL under the names of files."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer

SQLITE, POSTGRESQL = "sqlite", "postgresql"
KINDS = (SQLITE, POSTGRESQL)


class Databases:
    """The databases of one test."""

    def __init__(self) -> None:
        """Begin with files."""
        self.server: PostgresqlServer | None = None
        self._address: dict[Path, str] = {}

    def url_of(self, path: Path) -> str:
        """Return the address of a ledger, in PostgreSQL a new database for each path."""
        if self.server is None:
            return f"sqlite:///{path}"
        if path not in self._address:
            self._address[path] = self.server.create_database()
        return self._address[path]

    def tamper(self, path: Path, *statements: str) -> None:
        """Change a database behind the ledger's back, where no trigger refuses it."""
        if self.server is None:
            _tamper_with_file(path, statements)
            return
        with self.server.connect(self.url_of(path)) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(_in_postgresql(statement).encode())

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


def _tamper_with_file(path: Path, statements: tuple[str, ...]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        for name, _ in (found := triggers.fetchall()):
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, statement in found:
            connection.execute(statement)
        connection.commit()


DATABASES = Databases()
