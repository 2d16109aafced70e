"""Limits of keys on a real server: exact under many clients, restarts and changes of the file."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.cli import run
from app.http.access.keys import read_keys
from app.ledger.api_key_counts import KeyCount
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.server_process import ServerProcess, serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.http.end_to_end.conftest import OpenedRelease

CLIENTS = 32
LIMIT = 10
SECONDS_MAX = 60
LOOK_SECONDS = 0.1


class Keyed:
    """A release that is served with a file of keys.

    Attributes:
        release: the release.
        file: its file of keys.
        secrets: the keys, by name.

    """

    def __init__(self, release: SmallRelease, capsys: pytest.CaptureFixture[str]) -> None:
        """Begin without a key."""
        self.release = release
        self.file = release.folder / "keys.toml"
        self.secrets: dict[str, str] = {}
        self._capsys = capsys

    def call(self, command: str, *arguments: str) -> str:
        """Run ``conclave keys COMMAND`` on the file, and return what it printed."""
        self._capsys.readouterr()
        assert run(["keys", command, *arguments, "--keys-file", str(self.file)]) == 0
        return self._capsys.readouterr().out.strip()

    def add(self, name: str, *limits: str, role: str = "query") -> None:
        """Add a key."""
        self.secrets[name] = self.call("add", "--role", role, "--name", name, *limits)

    def serving(self) -> Any:
        """Serve the release with these keys."""
        environ = {
            "CONCLAVE_SERVER__KEYS_FILE": str(self.file),
            "CONCLAVE_SERVER__KEYS_RELOAD_SECONDS": str(LOOK_SECONDS),
        }
        return serving(self.release.config, environ=environ)

    def counts(self) -> dict[str, KeyCount]:
        """Return what the ledger has counted, which verifies."""
        ledger = open_ledger(f"sqlite:///{self.release.ledger}", create=False)
        verify(ledger)
        counts = ledger.key_counts()
        ledger.close()
        return counts

    def ask(self, server: ServerProcess, name: str, vector: object) -> httpx.Response:
        """Ask one query by a key."""
        return httpx.post(
            f"{server.address}/query",
            json={"features": vector},
            headers=self.bearer(name),
            timeout=SECONDS_MAX,
        )

    def stream(self, server: ServerProcess, name: str, vectors: Sequence[object]) -> list[Any]:
        """Stream queries by a key, and return the reply's lines."""
        reply = httpx.post(
            f"{server.address}/query/stream",
            content="\n".join(json.dumps({"features": vector}) for vector in vectors),
            headers=self.bearer(name) | {"Content-Type": "application/x-ndjson"},
            timeout=SECONDS_MAX,
        )
        return [json.loads(line) for line in reply.text.splitlines()]

    def bearer(self, name: str) -> dict[str, str]:
        """Return the header of a key."""
        return {"Authorization": f"Bearer {self.secrets[name]}"}


@pytest.fixture
def keyed(opened: OpenedRelease, capsys: pytest.CaptureFixture[str]) -> Keyed:
    """Return a release with the keys web, limited, and desk, not."""
    keyed = Keyed(opened(), capsys)
    keyed.add("web", "--limit", str(LIMIT), "--unstable-limit", "1")
    keyed.add("desk")
    return keyed


def test_many_clients_of_one_key_get_exactly_its_limit(keyed: Keyed) -> None:
    """However many ask at once, ten answers are given, the rest refused, and nobody else held."""
    asked = [agreed(number) for number in range(CLIENTS)]
    with keyed.serving() as server:
        replies = ask_at_once(server, keyed.bearer("web"), asked)
        statuses = [reply.status_code for reply in replies]
        assert (statuses.count(200), statuses.count(429)) == (LIMIT, CLIENTS - LIMIT)
        given = [vector for vector, status in zip(asked, statuses, strict=True) if status == 200]
        again = ask_at_once(server, keyed.bearer("web"), given)
        assert all(reply.json()["replayed"] for reply in again)
        refused = keyed.ask(server, "web", agreed(99))
        assert refused.json()["type"] == "urn:conclave:problem:key-limit"
        assert refused.headers["ratelimit"] == '"answers";r=0, "unstable";r=1'
        assert keyed.ask(server, "desk", agreed(99)).status_code == 200
    assert keyed.counts() == {"web": KeyCount(LIMIT), "desk": KeyCount(1)}


def test_a_stream_is_counted_line_by_line_and_over_a_restart(keyed: Keyed) -> None:
    """Lines beyond the limit are refused in their place; a killed server forgets no answer."""
    vectors = [split(0), split(1), *(agreed(number) for number in range(LIMIT))]
    with keyed.serving() as server:
        first = keyed.stream(server, "web", vectors[:4])
        assert [line.get("stable") for line in first] == [False, None, None, None]
        assert {line["type"] for line in first[1:]} == {"urn:conclave:problem:key-limit"}
        server.kill()
    keyed.call("limit", "--name", "web", "--limit", str(LIMIT))
    with keyed.serving() as server:
        second = keyed.stream(server, "web", vectors)
        assert ["label" in line for line in second] == [True] * 2 + [True] * 8 + [False] * 2
        assert keyed.stream(server, "web", vectors)[:10] == [
            line | {"replayed": True} for line in second[:10]
        ]
        server.kill()
    assert keyed.counts() == {"web": KeyCount(LIMIT, 2)}


def test_keys_change_while_the_server_runs(keyed: Keyed) -> None:
    """A new key, a rotation, a raised limit and a removal need no restart."""
    with keyed.serving() as server:
        keyed.add("late", "--limit", "0")
        until(lambda: keyed.ask(server, "late", agreed(1)).status_code == 429)
        keyed.call("limit", "--name", "late", "--limit", "1")
        until(lambda: keyed.ask(server, "late", agreed(1)).status_code == 200)
        assert keyed.ask(server, "late", agreed(2)).status_code == 429
        old = keyed.secrets["late"]
        keyed.secrets["late"] = keyed.call("rotate", "--name", "late")
        until(lambda: keyed.ask(server, "late", agreed(2)).status_code == 429)
        new, keyed.secrets["late"] = keyed.secrets["late"], old
        assert keyed.ask(server, "late", agreed(1)).status_code == 200
        keyed.call("retire-old", "--name", "late")
        until(lambda: keyed.ask(server, "late", agreed(1)).status_code == 401)
        keyed.secrets["late"] = new
        keyed.call("disable", "--name", "late")
        until(lambda: keyed.ask(server, "late", agreed(1)).status_code == 401)
        assert keyed.ask(server, "desk", agreed(1)).json()["replayed"]
    assert [key.name for key in read_keys(keyed.file)] == ["web", "desk", "late"]


def ask_at_once(
    server: ServerProcess, headers: dict[str, str], vectors: Sequence[object]
) -> list[httpx.Response]:
    """Ask every vector on a connection of its own, all at once."""

    async def ask() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=CLIENTS)
        async with httpx.AsyncClient(
            base_url=server.address, limits=limits, timeout=SECONDS_MAX
        ) as client:
            posted = (
                client.post("/query", json={"features": vector}, headers=headers)
                for vector in vectors
            )
            return await asyncio.gather(*posted)

    return asyncio.run(ask())


def until(holds: Any) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(LOOK_SECONDS)


def test_the_usage_of_keys_is_told(keyed: Keyed, capsys: pytest.CaptureFixture[str]) -> None:
    """The command reads the ledger beside a running server, and the route says the same."""
    keyed.add("ops", role="admin")
    with keyed.serving() as server:
        keyed.ask(server, "web", agreed(1))
        keyed.ask(server, "web", split(2))
        capsys.readouterr()
        assert run(["keys", "usage", "--config", str(keyed.release.config)]) == 0
        reply = httpx.get(f"{server.address}/keys/usage", headers=keyed.bearer("ops"))
    assert capsys.readouterr().out == "web\t2\t1\n"
    web = {"name": "web", "answers": 2, "unstable": 1, "limit": LIMIT, "unstable_limit": 1}
    others = [
        {"name": name, "answers": 0, "unstable": 0, "limit": None, "unstable_limit": None}
        for name in ("desk", "ops")
    ]
    assert reply.json() == {"keys": [*others, web]}
