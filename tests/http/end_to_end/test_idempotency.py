"""Idempotency keys on real servers: many clients at once, restarts, and every phase."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed, split
from tests.builders.server.server_process import serving
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.http.end_to_end.conftest import OpenedRelease

CLIENTS = 64
SECONDS_MAX = 60


def ask_at_once(address: str, vectors: Sequence[object], *, key: str) -> list[httpx.Response]:
    """Ask vectors with one key, each on a connection of its own, all at once."""

    async def ask() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=CLIENTS)
        async with httpx.AsyncClient(
            base_url=address, limits=limits, timeout=SECONDS_MAX
        ) as client:
            return await asyncio.gather(
                *(
                    client.post(
                        "/query", json={"features": vector}, headers={"Idempotency-Key": key}
                    )
                    for vector in vectors
                )
            )

    return asyncio.run(ask())


def key_count(release: SmallRelease) -> int:
    """Return how many keys the ledger keeps."""
    path = release.folder / "conclave.db"
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT COUNT(*) FROM idempotency_keys").fetchone()[0]
    return count


def counts(address: str) -> tuple[int, int]:
    """Return the answers that a server has charged, and the unstable ones."""
    budget: dict[str, Any] = httpx.get(f"{address}/budget", timeout=SECONDS_MAX).json()
    return budget["queries"]["answered"], budget["unstable"]["count"]


def test_one_key_at_once_is_one_answer_across_a_kill(opened: OpenedRelease) -> None:
    """64 clients with one key get one answer, one number and one unit, and so after a kill."""
    release = opened()
    with serving(release.config) as server:
        replies = ask_at_once(server.address, [split(0)] * CLIENTS, key='"retry"')
        assert {each.status_code for each in replies} == {HTTPStatus.OK}
        answers = [each.json() for each in replies]
        assert sum(not each["replayed"] for each in answers) == 1
        distinct = {json.dumps(each | {"replayed": True}, sort_keys=True) for each in answers}
        assert len(distinct) == 1
        assert answers[0]["query_id"] == 1
        assert counts(server.address) == (1, 1)
        server.kill()
    assert key_count(release) == 1
    with serving(release.config) as server:
        again = ask_at_once(server.address, [split(0)] * CLIENTS, key="retry")
        assert {json.dumps(each.json(), sort_keys=True) for each in again} == distinct
        conflict = ask_at_once(server.address, [split(1)] * CLIENTS, key="retry")
        assert {each.status_code for each in conflict} == {HTTPStatus.CONFLICT}
        assert counts(server.address) == (1, 1)


def test_one_key_at_once_on_many_vectors_binds_one(opened: OpenedRelease) -> None:
    """Of 64 vectors sent at once with one key, one is answered and charged, and 63 conflict."""
    release = opened()
    with Served(release.settings()) as served:

        async def ask_all() -> list[httpx.Response]:
            return await asyncio.gather(
                *(served.post_query(agreed(number), "one") for number in range(CLIENTS))
            )

        replies = served.run(ask_all())
        statuses = [each.status_code for each in replies]
        assert statuses.count(HTTPStatus.OK) == 1
        assert statuses.count(HTTPStatus.CONFLICT) == CLIENTS - 1
        bound = agreed(statuses.index(HTTPStatus.OK))
        assert served.answer(bound, key="one")["query_id"] == 1
        assert served.budget()["queries"]["answered"] == 1
    assert key_count(release) == 1


def test_header_and_stream_share_one_key(opened: OpenedRelease) -> None:
    """A key bound by the header replays and conflicts as a stream's member, and within a stream."""
    lines = [
        (agreed(1), "a"),
        (agreed(2), "a"),
        (agreed(2), "b"),
        (agreed(3), "b"),
        (agreed(2), "b"),
    ]
    with Served(opened().settings()) as served:
        first = served.answer(agreed(1), key='"a"')
        bodies = [{"features": vector, "idempotency_key": key} for vector, key in lines]
        content = "\n".join(map(json.dumps, bodies))
        headers = {"Content-Type": "application/x-ndjson"}
        reply = served.run(served._client.post("/query/stream", content=content, headers=headers))
        replies = [json.loads(line) for line in reply.text.splitlines()]
        assert replies[0] == first | {"replayed": True}
        assert [each.get("status", 200) for each in replies] == [200, 409, 200, 409, 200]
        assert replies[4] == replies[2] | {"replayed": True}
        assert served.answer(agreed(2), key="b") == replies[4]
        assert served.budget()["queries"]["answered"] == 2


def test_a_query_that_is_refused_binds_no_key(opened: OpenedRelease) -> None:
    """Neither 422 nor 410 nor a conflict uses up a key, before a restart and after it."""
    release = opened(answers={"queries": "2", "after": '"halt"'})
    with Served(release.settings()) as served:
        assert served.query(["39", "common"], key="kept").status_code == 422
        first = served.answer(agreed(1), key="kept")
        assert served.query(agreed(2), key="kept").status_code == HTTPStatus.CONFLICT
        second = served.answer(agreed(2), key="second")
        assert served.query(agreed(3), key="late").status_code == HTTPStatus.GONE
        assert served.answer(agreed(1), key="late") == first | {"replayed": True}
    with Served(release.settings()) as served:
        assert served.query(agreed(3), key="unused").status_code == HTTPStatus.GONE
        assert served.answer(agreed(2), key="unused") == second | {"replayed": True}
        assert served.query(agreed(2), key="late").status_code == HTTPStatus.CONFLICT
        assert served.answer(agreed(1), key="late") == first | {"replayed": True}
    assert key_count(release) == 4


def test_a_key_goes_before_the_phase(opened: OpenedRelease) -> None:
    """After the switch a key replays, conflicts with any other vector, and no new one is kept."""
    release = opened(answers={"queries": "1"})
    with Served(release.settings()) as served:
        first = served.answer(split(0), key="early")
        assert served.answer(agreed(1), key="new")["phase"] == "classifier"
    for _ in range(2):
        with Served(release.settings()) as served:
            assert served.answer(split(0), key="early") == first | {"replayed": True}
            assert served.query(agreed(1), key="early").status_code == HTTPStatus.CONFLICT
            for vector in (agreed(2), split(0)):
                answer = served.answer(vector, key="new")
                assert (answer["phase"], answer["query_id"]) == ("classifier", None)
    assert key_count(release) == 1


def test_a_key_is_bound_to_a_precision(opened: OpenedRelease) -> None:
    """With scores a key replays its bins alone: the same vector in others is another question."""
    release = opened(Asked(4, 0), answers={"output": '"score"', "cutoff": "6"})

    def ask(served: Served, precision: int | None, key: str) -> httpx.Response:
        body = {"features": agreed(0)} | ({} if precision is None else {"precision": precision})
        headers = {"Idempotency-Key": key}
        return served.run(served._client.post("/query", json=body, headers=headers))

    with Served(release.settings()) as served:
        first = ask(served, 2, "a").json()
        assert ask(served, 2, "a").json() == first | {"replayed": True}
        assert ask(served, None, "a").status_code == HTTPStatus.CONFLICT
        assert ask(served, 4, "a").status_code == HTTPStatus.CONFLICT
        second = ask(served, 4, "b").json()
        assert (first["query_id"], second["query_id"]) == (1, 2)
    with Served(release.settings()) as served:
        assert ask(served, 4, "b").json() == second | {"replayed": True}
        assert ask(served, 2, "b").status_code == HTTPStatus.CONFLICT
