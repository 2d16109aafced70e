"""Several servers on one ledger in PostgreSQL: one budget, one answer to a vector, one chain."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from sqlalchemy.engine import make_url

from app.cli import run
from app.ledger.database.postgresql import DRAWING_LOCK
from app.ledger.ledger import open_ledger
from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.nursery import started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer
    from tests.builders.server.server_process import ServerProcess

pytestmark = pytest.mark.crash

SERVERS = 3
CLIENTS = 6
ASKED_BY_EACH = 12
CUTOFF = 5
SECONDS_MAX = 60.0


@pytest.fixture
def release(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[SmallRelease]:
    """Yield a release whose ledger is in a new database."""
    address = postgresql.create_database()
    yield shared_release(tmp_path, address)
    postgresql.drop_database(address)


def shared_release(folder: Path, address: str) -> SmallRelease:
    """Write a release with a ledger in PostgreSQL."""
    answers = {"queries": "200", "cutoff": str(CUTOFF)}
    release = SmallRelease(folder, {"answers": answers}).write(asked=Asked(0, 18))
    with release.config.open("a", encoding="utf-8") as config:
        config.write(f'\n[ledger]\nurl = "{address}"\n')
    return release


def start(release: SmallRelease, name: str) -> ServerProcess:
    """Start one more server."""
    return started(release.config, log=release.folder / f"{name}.log")


def ask_all_over(clients: Clients, addresses: list[str], client: int) -> None:
    """Ask new vectors, each of another server than the last; every fourth is split."""
    for number in range(ASKED_BY_EACH):
        vector = split if (number + client) % 4 == 0 else agreed
        try:
            with connect(addresses[(number + client) % len(addresses)]) as http:
                clients.ask_new(http, vector)
        except httpx.TransportError:
            continue  # the server was killed over it


def test_servers_that_start_at_once_share_one_release(release: SmallRelease) -> None:
    """One opens it, the others load what it drew; one is killed in flight, and nothing is lost."""
    clients = Clients()
    servers = [start(release, f"server{number}") for number in range(SERVERS)]
    with ExitStack() as ending:
        for server in servers:
            ending.callback(server.kill)
        addresses = [server.wait_until_ready().address for server in servers]
        threads = [
            threading.Thread(target=ask_all_over, args=(clients, addresses, client))
            for client in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        servers[0].kill()
        for thread in threads:
            thread.join(SECONDS_MAX)
        for address in addresses[1:]:
            clients.repeat_all(address)
            clients.ask_the_rest(address)
        budgets = [httpx.get(f"{address}/budget").json() for address in addresses[1:]]
    state = check_ledger(release, clients)
    assert (state.unstable, state.has_last_answer) == (CUTOFF, True)
    assert [share.mechanism for share in state.charged] == ["relabel", "answers"]
    assert [budget["unstable"]["left"] for budget in budgets] == [0] * (SERVERS - 1)
    assert budgets[0]["ledger"] == {"sequence": state.head.sequence, "head": state.head.hash}
    assert run(["verify", "--config", str(release.config)]) == 0


REFUSE_THE_CLASSIFIER = (
    "CREATE FUNCTION refuse_the_classifier() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.kind = 'ClassifierPublished' THEN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; "
    "END IF; RETURN NEW; END $$; "
    "CREATE TRIGGER refuse_the_classifier BEFORE INSERT ON entries "
    "FOR EACH ROW EXECUTE FUNCTION refuse_the_classifier()"
)
TURN = (
    "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %s "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
REFUSED_SECONDS = 4.0


def test_a_classifier_that_the_database_refuses_is_drawn_by_one_server(
    release: SmallRelease, postgresql: PostgresqlServer
) -> None:
    """The database is full for the classifier alone: who drew it keeps the turn until it fits."""
    text = release.config.read_text(encoding="utf-8").replace("queries = 200", "queries = 2")
    release.config.write_text(text, encoding="utf-8")
    servers = [start(release, f"server{number}") for number in range(2)]
    with ExitStack() as ending:
        for server in servers:
            ending.callback(server.kill)
        addresses = [server.wait_until_ready().address for server in servers]
        with postgresql.connect(release.settings().ledger_url) as connection:
            connection.execute(REFUSE_THE_CLASSIFIER)
            clients = Clients()
            for address in addresses:
                with connect(address) as http:
                    clients.ask_new(http, agreed)
            holders: set[int] = set()
            until = time.monotonic() + REFUSED_SECONDS
            while time.monotonic() < until:
                holders |= {pid for (pid,) in connection.execute(TURN, (DRAWING_LOCK,))}
                time.sleep(0.05)
            assert len(holders) == 1
            connection.execute("DROP TRIGGER refuse_the_classifier ON entries")
            connection.execute("DROP FUNCTION refuse_the_classifier()")
        for address in addresses:
            clients.ask_the_rest(address)
        documents = {httpx.get(f"{address}/classifier").text for address in addresses}
    state = check_ledger(release, clients)
    assert state.classifier is not None
    assert documents == {state.classifier.classifier}
    assert [share.mechanism for share in state.charged] == ["relabel", "answers", "classifier"]
    assert run(["verify", "--config", str(release.config)]) == 0


def test_a_server_needs_to_own_nothing(
    tmp_path: Path, release: SmallRelease, postgresql: PostgresqlServer
) -> None:
    """A role that may read and insert serves; neither it nor the owner changes a row."""
    owner = release.settings().ledger_url
    assert run(["ledger", "prepare", "--config", str(release.config)]) == 0
    role = f"server_of_{make_url(owner).database}"
    postgresql.run(f"CREATE ROLE {role} LOGIN")
    with postgresql.connect(owner) as connection:
        connection.execute(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {role}")
        connection.execute(f"GRANT UPDATE ON key_counts, key_blocks, hour_counts TO {role}")
        connection.execute(f"GRANT DELETE ON newest_answers, hour_counts TO {role}")
        connection.execute(f"GRANT EXECUTE ON FUNCTION conclave_forget TO {role}")
    address = make_url(owner).set(username=role).render_as_string(hide_password=False)
    (tmp_path / "served").mkdir()
    served, clients = shared_release(tmp_path / "served", address), Clients()
    server = start(served, "server").wait_until_ready()
    with connect(server.address) as http:
        clients.ask_new(http, agreed)
    server.kill()
    assert check_ledger(served, clients).answered == 1
    for user, refusal in ((address, "permission denied"), (owner, "rows are never changed")):
        for statement in (
            "UPDATE answers SET label = 0",
            "DELETE FROM entries",
            "TRUNCATE answers",
        ):
            with (
                postgresql.connect(user) as connection,
                pytest.raises(psycopg.Error, match=refusal),
            ):
                connection.execute(statement)
    open_ledger(owner, create=False).close()
