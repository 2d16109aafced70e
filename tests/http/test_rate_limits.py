"""``RateLimit`` headers: what a key's limits are and what is left of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from app.errors import KeyLimitError
from app.http.access.access_control import Access
from app.http.access.keys import Key, KeyRing, Role, hash_of
from app.http.application import create_application
from app.http.dashboard.page import page_responses
from app.http.limits import Limits
from app.ledger.api_key_counts import KeyCount
from tests.http.doubles import JSON, NDJSON, Http, assert_problem, problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from app.http.access.keys import FoundKey

WEB = {"Authorization": "Bearer web"}
LINE = b'{"features": [1, null]}\n'
REACHED = "this key has had its 5 fresh answers"


def ring(**limits: int) -> KeyRing:
    """Return the key "web" with limits, and "desk" without."""
    keys = [
        Key("web", Role.ADMIN, hash_of("web"), **limits),  # type: ignore[arg-type]  # its own members
        Key("desk", Role.ADMIN, hash_of("desk")),
    ]
    return KeyRing(keys)


def ask(http: Http, path: str = "/query", *, key: str = "web") -> httpx.Response:
    """Ask one query with a key."""
    headers = (JSON if path == "/query" else NDJSON) | {"Authorization": f"Bearer {key}"}
    return http.request("POST", path, content=b'{"features": [1, null]}', headers=headers)


def told(reply: httpx.Response) -> tuple[str | None, str | None]:
    """Return both headers."""
    return reply.headers.get("ratelimit-policy"), reply.headers.get("ratelimit")


@pytest.mark.parametrize(
    ("limits", "policy", "left"),
    [
        ({"limit": 5}, '"answers";q=5', '"answers";r=2'),
        ({"unstable_limit": 2}, '"unstable";q=2', '"unstable";r=1'),
        (
            {"limit": 1000, "unstable_limit": 1},
            '"answers";q=1000, "unstable";q=1',
            '"answers";r=997, "unstable";r=0',
        ),
        ({"limit": 2}, '"answers";q=2', '"answers";r=0'),
    ],
)
@pytest.mark.parametrize("path", ["/query", "/query/stream"])
def test_a_limited_key_is_told_what_is_left(
    limits: dict[str, int], policy: str, left: str, path: str
) -> None:
    """Quota and remainder, each by its name; a limit that was lowered leaves nothing."""
    with Http(keys=ring(**limits)) as http:
        http.service.counts["web"] = KeyCount(3, 1)
        assert told(ask(http, path)) == (policy, left)


def test_a_key_without_a_limit_is_told_nothing() -> None:
    """No header where there is no limit, and none on a server without keys."""
    with Http(keys=ring(limit=5)) as http:
        assert told(ask(http, key="desk")) == (None, None)
    with Http() as http:
        assert told(http.ask([1, None])) == (None, None)


def test_usage_has_the_keys_of_the_file_and_every_name_that_was_counted() -> None:
    """A key without an answer has zeros, and a name that is not in the file has no limits."""
    with Http(keys=ring(limit=5)) as http:
        http.service.counts |= {"web": KeyCount(3, 1), "gone": KeyCount(7)}
        reply = http.get("/keys/usage", headers=WEB)
    members = ("name", "answers", "unstable", "limit", "unstable_limit")
    expected = [("desk", 0, 0, None, None), ("gone", 7, 0, None, None), ("web", 3, 1, 5, None)]
    assert reply.json() == {"keys": [dict(zip(members, each, strict=True)) for each in expected]}


def test_a_role_that_does_not_open_a_route_is_told_what_is_left() -> None:
    """A key is known by then, and has its limits in every reply."""
    keys = KeyRing([Key("web", Role.QUERY, hash_of("web"), limit=5)])
    with Http(keys=keys) as http:
        reply = http.get("/keys/usage", headers=WEB)
    assert reply.status_code == 403
    assert told(reply) == ('"answers";q=5', '"answers";r=5')


def test_a_refusal_at_the_limit_has_the_headers_too() -> None:
    """429 ``key-limit`` says by its headers which limit it was."""
    with Http(keys=ring(limit=5)) as http:
        http.service.counts["web"] = KeyCount(5)
        http.service.failure = KeyLimitError(REACHED)
        reply = ask(http)
    assert_problem(reply, problem("key-limit", "Limit of this key reached", 429, REACHED))
    assert told(reply) == ('"answers";q=5', '"answers";r=0')
    assert "retry-after" not in reply.headers


def test_while_the_release_opens_nothing_is_told_of_what_is_left() -> None:
    """The policy is the file's; what is left is in a ledger that is not open yet."""
    with Http(keys=ring(limit=5), is_open=False) as http:
        reply = ask(http)
    assert reply.status_code == 503
    assert told(reply) == ('"answers";q=5', None)


def test_any_reply_to_a_limited_key_tells() -> None:
    """A client need not spend an answer to learn what is left."""
    with Http(keys=ring(limit=5)) as http:
        reply = http.get("/schema", headers={"Authorization": "Bearer web"})
    assert told(reply) == ('"answers";q=5', '"answers";r=5')


def test_a_stream_goes_by_the_keys_of_now() -> None:
    """A line that is sent after its key was removed is refused, and the stream goes on."""

    async def converse(http: ChangingHttp) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON, **WEB) as wire:
            await wire.receive()
            wire.send(LINE)
            assert json.loads(await wire.receive_body())["query_id"] == 1
            http.keys.ring = KeyRing([])
            wire.send(LINE)
            refused = json.loads(await wire.receive_body())
            assert refused["type"] == "urn:conclave:problem:unauthorized"
            http.keys.ring = ring()
            wire.send(LINE, more=False)
            assert json.loads(await wire.receive_body())["replayed"]

    with ChangingHttp() as http:
        http.runner.run(converse(http))


def test_an_event_stream_ends_with_its_key() -> None:
    """Nothing is shown to a key that was removed, neither a change nor a keep-alive."""

    async def listen(http: ChangingHttp) -> None:
        async with http.wire("GET", "/budget/events", **WEB) as wire:
            await wire.receive()
            assert (await wire.receive_body()).startswith(b"event: budget")
            http.keys.ring = KeyRing([])
            assert await wire.receive_body() == b""
            await wire.task

    with ChangingHttp() as http:
        http.runner.run(listen(http))


@dataclass
class ChangingKeys:
    """Keys that a test changes."""

    ring: KeyRing

    def find(self, presented: str) -> FoundKey | None:
        """Look in the ring of now."""
        return self.ring.find(presented)

    def known(self, digest: bytes) -> FoundKey | None:
        """Look in the ring of now."""
        return self.ring.known(digest)

    def listed(self) -> Sequence[Key]:
        """List the ring of now."""
        return self.ring.listed()


class ChangingHttp(Http):
    """An application whose keys change."""

    def __init__(self) -> None:
        """Begin with the keys of these tests."""
        self.keys = ChangingKeys(ring())
        limits = Limits(event_interval_seconds=0.01, keep_alive_seconds=0.05)
        super().__init__(keys=self.keys, limits=limits)


def test_a_page_that_is_sent_again_has_them_once() -> None:
    """The page's replies are kept, and no request adds to those of the next."""
    keys = ring(limit=5)
    with Http(keys=keys) as http:
        http.application = create_application(http.slot, Access(keys), pages=page_responses())
        replies = [http.get("/", headers=WEB) for _ in range(3)]
    assert [reply.headers.get_list("ratelimit") for reply in replies] == [['"answers";r=5']] * 3
