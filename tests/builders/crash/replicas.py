"""Several servers on one ledger in PostgreSQL, to be killed, paused and started again."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url

from app.ledger.database import postgresql
from app.ledger.database.notifications import LEADING_LOCK
from tests.builders.crash.killing import start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease
from tests.builders.server.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np

    from tests.builders.ledger.postgresql_server import OwnServer

TRIES_TO_HOLD = 3000
TRIES_TO_LEAD = 1200
# Who has the lock of those that write, between two statements of a transaction.
HOLDER = (
    "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' "
    "AND objsubid = 1 AND objid::bigint = %s AND granted "
    "AND state = 'idle in transaction' AND application_name = %s"
)
# Who commits for all.
LEADER = (
    "SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s AND granted "
    "AND datname = %s"
)
CUT_OFF = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s "
    "AND application_name LIKE 'server%%' ORDER BY state = 'idle', random() LIMIT 1"
)


@dataclass
class Replicas:
    """The servers of one release.

    Attributes:
        folder: with a folder for each server.
        database: of the ledger.
        url: of the ledger.
        count: how many servers.
        changes: of the release, by table.
        plant: faults that every server has.
        forked: whether they come out of the nursery; else ``conclave serve`` is run.

    """

    folder: Path
    database: OwnServer
    url: str
    count: int
    changes: Mapping[str, Mapping[str, str]]
    plant: Sequence[str] = ()
    forked: bool = True
    _servers: list[ServerProcess | None] = field(default_factory=list)
    _left_alone: int | None = None

    def __post_init__(self) -> None:
        """Write the configuration of every server; they differ by their names in the database."""
        self.releases = [self._write(number) for number in range(self.count)]
        self._servers = [None] * self.count

    def _write(self, number: int) -> SmallRelease:
        folder = self.folder / f"server{number}"
        folder.mkdir()
        release = SmallRelease(folder, self.changes).write(asked=Asked(agreed=100, split=0))
        named = make_url(self.url).update_query_dict({"application_name": name_of(number)})
        with release.config.open("a", encoding="utf-8") as config:
            config.write(f'\n[ledger]\nurl = "{named.render_as_string(hide_password=False)}"\n')
        return release

    def start(self, *numbers: int) -> None:
        """Start servers, all at once, and wait until they are ready."""
        for number in numbers:
            config = self.releases[number].config
            if self.forked:
                server = start_to_kill_at(self.releases[number], NOWHERE, plant=self.plant)
            else:
                server = ServerProcess(config)
            self._servers[number] = server
        for number in numbers:
            server = self.server(number).wait_until_ready()
            assert server.is_running(), server.errors()

    def server(self, number: int) -> ServerProcess:
        """Return a server that was started."""
        server = self._servers[number]
        assert server is not None
        return server

    def address(self, number: int) -> str:
        """Return the address of a server, or of what it was."""
        return self.server(number).address

    def any_address(self, generator: np.random.Generator) -> str:
        """Return the address of one of them by chance, whether it answers or not."""
        numbers = [number for number in range(self.count) if number != self._left_alone]
        return self.address(numbers[int(generator.integers(len(numbers)))])

    def leave_alone(self, number: int) -> None:
        """Name this server to nobody any more who asks for one by chance."""
        self._left_alone = number

    def kill(self, number: int) -> None:
        """Kill a server; it has not ended by itself before."""
        server = self.server(number)
        assert server.is_running(), server.errors()
        server.kill()

    def end(self) -> None:
        """Kill those that run."""
        for server in self._servers:
            if server is not None and server.is_running():
                server.kill()

    def cut_off(self) -> bool:
        """Let PostgreSQL end a connection of any server, one at work if there is one."""
        with self.database.connect() as connection:
            database = make_url(self.url).database
            return connection.execute(CUT_OFF, (database,)).fetchone() is not None

    def leader(self) -> int:
        """Return the number of the server that commits for all, once there is one."""
        asked = (LEADING_LOCK, make_url(self.url).database)
        names = [name_of(number) for number in range(self.count)]
        with self.database.connect() as connection:
            for _ in range(TRIES_TO_LEAD):
                found = connection.execute(LEADER, asked).fetchone()
                if found is not None:
                    return names.index(found[0])
                time.sleep(0.05)
        message = "no server leads"
        raise AssertionError(message)

    def pause(self, number: int) -> None:
        """Stop a server while it has the lock and its transaction is open."""
        server = self.server(number)
        with self.database.connect() as connection:
            asked = (postgresql.WRITING_LOCK & 0xFFFFFFFF, name_of(number))
            for _ in range(TRIES_TO_HOLD):
                server.signal(signal.SIGSTOP)
                if connection.execute(HOLDER, asked).fetchone() is not None:
                    return
                server.signal(signal.SIGCONT)
                time.sleep(0.001)
        message = "a server is never seen in a transaction"
        raise AssertionError(message)

    def resume(self, number: int) -> None:
        """Let a server that was paused go on."""
        self.server(number).signal(signal.SIGCONT)


def name_of(number: int) -> str:
    """Return what a server is called in the database."""
    return f"server{number}"
