"""A marked private row, and the search for its mark in everything that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.http.end_to_end.server_process import ServerProcess, serving
from tests.http.end_to_end.small_release import SmallRelease, agreed, private_rows, split

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# A category that no schema names, and a number that no other row and no query has.
MARKED_GROUP = "canary-group-51ab"
MARKED_AGE = "73.918273"
# A query's own values belong to its client: in no log and in nobody else's reply.
MARKED_QUERY = (73.102938, "canary-query-88cd")
MARKED_KEY = "canary-key-77ef"
MARKS = (MARKED_GROUP, MARKED_AGE, "73.102938", MARKED_QUERY[1], MARKED_KEY)
READ_PATHS = (
    "/",
    "/budget",
    "/ledger?limit=1000",
    "/ledger/head",
    "/classifier",
    "/schema",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/no-such-path",
)
REFUSED = (
    {"features": [73.918273]},
    {"features": {"age": "73.918273", "group": MARKED_GROUP}},
    {"rows": [[73.918273, MARKED_GROUP]]},
)


@pytest.mark.parametrize("sequel", ["classifier", "halt"])
def test_no_private_value_leaves(tmp_path: Path, sequel: str) -> None:
    """Neither a reply, the dashboard, an event nor a log line holds a value of the marked row."""
    release = SmallRelease(tmp_path, {"answers": {"on_cutoff": f'"{sequel}"'}})
    release.write([(MARKED_AGE, MARKED_GROUP, "yes"), *private_rows()[:-1]])
    said: list[str] = []
    for _ in ("first start", "restart"):
        with serving(release.config) as process:
            said += _ask_everything(process.address)
            process.terminate()
            assert process.wait() == 0
        said.append(process.errors())
    # The search has something to find: replies of both kinds, and a log of both kinds.
    for expected in ("200 ", "422 ", "410 " if sequel == "halt" else '"phase":"classifier"'):
        assert any(expected in text for text in said)
    for event in ("answers_committed", "request_refused"):
        assert any(f'"event": "{event}"' in text for text in said)
    for mark in MARKS:
        assert not [text for text in said if mark in text]


def test_a_bad_private_cell_is_named_without_its_value(tmp_path: Path) -> None:
    """A cell that does not fit ends the start with its column and row, and no value."""
    release = SmallRelease(tmp_path)
    rows = private_rows()
    release.write([*rows[:2], (MARKED_AGE, MARKED_GROUP, "canary-label"), *rows[3:]])
    process = ServerProcess(release.config)
    assert process.wait() == 2
    said = process.errors()
    assert said.splitlines()[-1].startswith('conclave: data.source: column "approved", row 3: ')
    assert "canary" not in said
    assert MARKED_AGE not in said


def _ask_everything(address: str) -> list[str]:
    """Ask every route, well and badly, and return all that came back, headers included."""
    said: list[httpx.Response] = []
    with httpx.Client(base_url=address, timeout=60) as client:
        for features in ([MARKED_QUERY, agreed(0), agreed(1)], [split(n) for n in range(5)]):
            said += [_post(client, each) for each in features]
        said += [client.post("/query", json=body) for body in REFUSED]
        said.append(client.post("/query", content=f'{{"features": [73.9182, "{MARKED_GROUP}"'))
        said += [client.get(path) for path in READ_PATHS]
        said.append(_first_event(client))
        stream = b'{"features": [73.918273]}\n{"features": [1, "common"]}\nno json\n'
        headers = {"Content-Type": "application/x-ndjson"}
        said.append(client.post("/query/stream", content=stream, headers=headers))
    return [f"{each.status_code} {each.headers} {each.text}" for each in said]


def _post(client: httpx.Client, features: Sequence[object]) -> httpx.Response:
    return client.post(
        "/query",
        json={"features": features},
        headers={"Idempotency-Key": MARKED_KEY} if features is MARKED_QUERY else {},
    )


def _first_event(client: httpx.Client) -> httpx.Response:
    """Return the event stream as far as its first event."""
    with client.stream("GET", "/budget/events") as events:
        first = next(events.iter_bytes())
        return httpx.Response(events.status_code, headers=events.headers, content=first)
