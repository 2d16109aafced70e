"""The cheap routes: budget, events, ledger, classifier, schema, the page, OpenAPI."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from app.http.access.access_control import Access
from app.http.access.keys import Role
from app.http.application import create_application
from app.http.dashboard.page import page_responses
from app.http.limits import Limits
from app.http.read_routes import TWO_FORMS
from app.http.routes import ROUTES
from app.http.version import installed_version
from tests.http.doubles import HEAD, KEY_RING, KEYS, OUTLOOK, Http, assert_problem, problem
from tests.http.wire import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.http.wire import Wire


def test_gives_the_budget_as_the_service_has_it() -> None:
    """Numbers are JSON numbers, null where unlimited; nothing is cached."""
    with Http() as http:
        reply = http.get("/budget")
        assert reply.json() == http.service.budget().model_dump()
    assert reply.json()["queries"] == {"answered": 0, "limit": None, "left": None}
    assert reply.headers["cache-control"] == "no-store"


async def next_event(wire: Wire) -> dict[str, Any]:
    """Return the data of the next event."""
    event = await wire.receive_body()
    found = re.fullmatch(rb"event: budget\ndata: (.*)\n\n", event)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_sends_the_budget_on_every_change() -> None:
    """The first event is the budget now; changes that come together share one."""

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events") as wire:
            start = await wire.receive()
            assert dict(start["headers"])[b"content-type"] == b"text/event-stream"
            assert (await next_event(wire))["queries"]["answered"] == 0
            http.service.answers = {(1.0, None): 1, (2.0, None): 2}
            http.service.announce()
            http.service.announce()
            assert (await next_event(wire))["queries"]["answered"] == 2
            assert await wire.receive_body() == b": keep-alive\n\n"

    with Http(limits=Limits(event_interval_seconds=0.01, keep_alive_seconds=0.05)) as http:
        http.runner.run(listen(http))


def test_sends_the_outlook_where_it_is_asked_for() -> None:
    """The stream then has both, each by its name; the outlook comes again without a change."""

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events?outlook=true") as wire:
            await wire.receive()
            names = [(await wire.receive_body()).partition(b"\n")[0] for _ in range(2)]
            assert sorted(names) == [b"event: budget", b"event: outlook"]
            assert (await wire.receive_body()).startswith(b'event: outlook\ndata: {"time":')
            http.service.answers = {(1.0, None): 1}
            http.service.announce()
            after = {(await wire.receive_body()).partition(b"\n")[0] for _ in range(2)}
            assert after == {b"event: budget", b"event: outlook"}

    limits = Limits(
        event_interval_seconds=0.01, outlook_interval_seconds=0.01, outlook_seconds_max=0.2
    )
    with Http(limits=limits) as http:
        http.runner.run(listen(http))


@pytest.mark.parametrize("query", ["outlook=yes", "outlook=", "outlook=TRUE"])
def test_refuses_an_outlook_that_is_neither_true_nor_false(query: str) -> None:
    """A parameter with another value is told of, in place of a stream without it."""
    with Http() as http:
        expected = problem(
            "invalid-parameter", "Invalid parameter", 400, "outlook is true or false"
        )
        assert_problem(http.get(f"/budget/events?{query}"), expected)


def test_a_last_event_id_changes_nothing() -> None:
    """A browser that comes back sends the last id it saw; there is none, and the budget comes."""

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events", **{"Last-Event-ID": "17"}) as wire:
            await wire.receive()
            assert (await next_event(wire))["queries"]["answered"] == 0

    with Http() as http:
        http.runner.run(listen(http))


def test_gives_outlook_and_parameters_as_the_service_has_them() -> None:
    """Both are the service's own words, and nothing is cached."""
    with Http() as http:
        outlook, parameters = http.get("/budget/outlook"), http.get("/parameters")
        assert parameters.json() == {"parameters": http.service.parameters()}
    assert outlook.json() == OUTLOOK | {"chain": OUTLOOK["chain"] | {"checked_to": 0}}
    assert outlook.headers["cache-control"] == parameters.headers["cache-control"] == "no-store"


def stop(http: Http) -> None:
    """Stop the release, as an integrity error does, and let its listeners look."""
    http.slot.stop()
    http.service.announce()


END: dict[str, Callable[[Http], None]] = {
    "drain": lambda http: http.slot.drain(),
    "close": lambda http: http.service.announce(more=False),
    "stop": stop,
}


@pytest.mark.parametrize("how", END)
def test_events_end_when_the_server_does(how: str) -> None:
    """A drain, a service that closes or a release that stops ends the stream properly."""

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events") as wire:
            await wire.receive()
            await next_event(wire)
            END[how](http)
            assert await wire.receive() == {
                "type": "http.response.body",
                "body": b"",
                "more_body": False,
            }
            await wire.task
            assert http.service.subscribers == set()

    with Http(limits=Limits(event_interval_seconds=0.01)) as http:
        http.runner.run(listen(http))


def test_a_listener_may_hang_up() -> None:
    """Nothing is left of a client that went away."""

    async def listen(http: Http) -> None:
        async with http.wire("GET", "/budget/events") as wire:
            await wire.receive()
            await next_event(wire)
            wire.hang_up()
            await asyncio.wait_for(wire.task, PATIENCE_SECONDS)
            assert http.service.subscribers == set()

    with Http() as http:
        http.runner.run(listen(http))


def test_a_head_request_for_events_ends() -> None:
    """HEAD gets the headers of the stream and no stream."""
    with Http() as http:
        reply = http.request("HEAD", "/budget/events")
    assert reply.status_code == 200
    assert reply.content == b""


def test_tells_of_the_process_whatever_state_it_is_in() -> None:
    """Version and state are there while the release opens; answers come with the release."""
    with Http(is_open=False) as http:
        opening = http.get("/server").json()
    assert opening == {
        "version": installed_version(),
        "state": "opening",
        "roles": ["admin", "query", "read"],
        "answers": [],
        "refusals": {},
    }
    with Http() as http:
        http.service.work.answers.add("repeated", 3)
        http.ask([1])
        told = http.get("/server").json()
    assert told["state"] == "open"
    assert {each["kind"]: each["count"] for each in told["answers"]} == {
        "fresh": 0,
        "repeated": 3,
        "classified": 0,
    }
    assert [each["window_seconds"] for each in told["answers"][1]["pace"]] == [10, 300]
    assert told["refusals"] == {"invalid-features": 1}


@pytest.mark.parametrize("role", [Role.READ, Role.ADMIN])
def test_tells_whoever_asks_which_roles_they_have(role: Role) -> None:
    """A page asks for what only some roles open where its own is one of them."""
    with Http(keys=KEY_RING) as http:
        reply = http.get("/server", headers={"Authorization": f"Bearer {KEYS[role]}"})
    assert reply.json()["roles"] == [role]


def test_tells_the_operator_of_the_ledgers_machine() -> None:
    """The newest backup, the room of the disk and the entry that the head file notes."""
    with Http() as http:
        for age in range(5):
            http.ask([age, None])
        storage = http.get("/ledger/storage").json()
    assert storage == {
        "backup": {"made_at": 1_767_225_600, "sequence": 3},
        "bytes_free": 2**30,
        "noted_sequence": 4,
    }


def test_pages_through_the_ledger() -> None:
    """Entries follow ``after``, up to ``limit``, with the head they were read at."""
    with Http() as http:
        for age in range(5):
            http.ask([age, None])
        page = http.get("/ledger?after=2&limit=2").json()
        rest = http.get("/ledger?after=4").json()
        head = http.get("/ledger/head").json()
    assert [entry["sequence"] for entry in page["entries"]] == [3, 4]
    assert [entry["sequence"] for entry in rest["entries"]] == [5]
    assert page["head"] == head == {"sequence": 5, "hash": HEAD}


def test_a_page_is_never_longer_than_the_server_gives() -> None:
    """A client may ask for all entries at once, and gets the first page of them."""
    with Http(limits=Limits(ledger_entries_max=2)) as http:
        for age in range(5):
            http.ask([age, None])
        page = http.get("/ledger?limit=1000000").json()
    assert [entry["sequence"] for entry in page["entries"]] == [1, 2]
    assert page["head"]["sequence"] == 5


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("after=-1", "after is a whole number of at least 0 and at most 18 digits"),
        ("after=", "after is a whole number of at least 0 and at most 18 digits"),
        ("after=1e3", "after is a whole number of at least 0 and at most 18 digits"),
        ("limit=0", "limit is a whole number of at least 1 and at most 18 digits"),
        ("limit=ten", "limit is a whole number of at least 1 and at most 18 digits"),
        ("limit=" + "9" * 5000, "limit is a whole number of at least 1 and at most 18 digits"),
    ],
)
def test_refuses_a_page_that_is_none(query: str, detail: str) -> None:
    """Both parameters are whole numbers within public bounds."""
    with Http() as http:
        expected = problem("invalid-parameter", "Invalid parameter", 400, detail)
        assert_problem(http.get(f"/ledger?{query}"), expected)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/html, */*", "application/json"),
        ("application/onnx, application/json", "application/json"),
        ("application/onnx;q=0.5, application/*", "application/json"),
        ("application/onnx", "application/onnx"),
        ("Application/ONNX ; q=0.001", "application/onnx"),
        ("application/onnx, application/*;q=0.5", "application/onnx"),
        ("*/*, application/json;q=0.9", "application/onnx"),
        ("application/json;q=0, */*;q=0.1", "application/onnx"),
    ],
)
def test_gives_the_classifier_in_the_form_liked_best(accept: str | None, media_type: str) -> None:
    """The bytes are the service's own; JSON stands first where a client likes both alike."""
    with Http() as http:
        http.service.published, http.service.model = b'{"kind":"tree"}', b"a model"
        headers = {} if accept is None else {"Accept": accept}
        reply = http.get("/classifier", headers=headers)
    is_model = media_type == "application/onnx"
    assert reply.content == (b"a model" if is_model else b'{"kind":"tree"}')
    assert reply.headers["content-type"] == media_type
    assert reply.headers["vary"] == "accept"
    assert reply.headers.get("content-disposition") == (
        'attachment; filename="classifier.onnx"' if is_model else None
    )


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;q=0, application/onnx;q=0.000", "json", ""]
)
def test_refuses_the_classifier_in_another_form(accept: str) -> None:
    """What cannot be given is 406, not something else."""
    with Http() as http:
        http.service.published, http.service.model = b"{}", b"a model"
        reply = http.get("/classifier", headers={"Accept": accept})
    assert_problem(reply, problem("not-acceptable", "Not acceptable", 406, TWO_FORMS))


def test_a_classifier_without_a_model_is_refused_as_one() -> None:
    """Who takes only ONNX is told why there is none; who takes JSON as well gets it."""
    with Http() as http:
        http.service.published = b"{}"
        refused = http.get("/classifier", headers={"Accept": "application/onnx"})
        given = http.get("/classifier", headers={"Accept": "application/onnx, */*;q=0.1"})
    assert_problem(refused, problem("not-acceptable", "Not acceptable", 406, "it is code"))
    assert (given.status_code, given.content) == (200, b"{}")


@pytest.mark.parametrize("accept", ["application/json", "application/onnx", "text/html"])
def test_there_is_no_classifier_before_it_is_published(accept: str) -> None:
    """Whatever form is asked for, none is there yet."""
    with Http() as http:
        reply = http.get("/classifier", headers={"Accept": accept})
    detail = "no classifier is published yet"
    assert_problem(reply, problem("not-published", "No classifier yet", 404, detail))


def test_describes_the_public_schema() -> None:
    """A client learns from it what to post."""
    with Http() as http:
        assert http.get("/schema").json() == {
            "release": "adult-income",
            "features": [
                {"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]},
                {
                    "name": "workclass",
                    "kind": "categorical",
                    "categories": ["Private", "State-gov"],
                },
            ],
            "label": "income",
            "classes": ["<=50K", ">50K"],
            "missing": ["?"],
        }


def test_serves_the_page_and_lets_nothing_else_load() -> None:
    """Every file of the page comes from here, with a policy that allows no inline code or style."""
    with Http() as http:
        assert http.get("/").status_code == 404
        http.application = create_application(http.slot, Access(None), pages=page_responses())
        replies = {path: http.get(path) for path in page_responses()}
        assert http.get("/dashboard/nothing.js").status_code == 404
    page = replies["/"]
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"(?:https?:)?//[a-z]", page.text) == []
    asked = {f"/{path}" for path in re.findall(r'(?:src|href)="(dashboard/[^"]+)"', page.text)}
    assert asked <= set(replies)
    for reply in replies.values():
        assert reply.status_code == 200
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"


def references(document: object) -> Iterator[str]:
    """Yield every $ref in a document."""
    if isinstance(document, dict):
        if isinstance(document.get("$ref"), str):
            yield document["$ref"]
        for value in document.values():
            yield from references(value)
    elif isinstance(document, list):
        for value in document:
            yield from references(value)


@pytest.mark.parametrize("with_keys", [True, False])
def test_documents_every_route_and_reply(with_keys: bool) -> None:  # noqa: FBT001 -- two cases
    """The OpenAPI document has each route, an example of each reply, and no loose end."""
    with Http(keys=KEY_RING if with_keys else None) as http:
        document = http.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    described = {
        (method.upper(), path) for path, entry in document["paths"].items() for method in entry
    }
    assert described == {(entry.method, entry.path) for entry in ROUTES}
    for reference in references(document):
        _, components, kind, name = reference.split("/")
        assert name in document[components][kind]
    for entry in ROUTES:
        replies = document["paths"][entry.path][entry.method.lower()]["responses"]
        assert ("401" in replies) == (with_keys and entry.role is not None)
        assert all(
            media["examples"] for reply in replies.values() for media in reply["content"].values()
        )


def test_documented_problems_are_those_that_happen() -> None:
    """An example in the document has the members of a real problem."""
    with Http() as http:
        document = http.get("/openapi.json").json()
    replies = document["paths"]["/query"]["post"]["responses"]
    assert set(replies) >= {"200", "400", "409", "410", "413", "415", "422", "503"}
    for status, reply in replies.items():
        for media_type, media in reply["content"].items():
            for slug, example in media["examples"].items():
                if media_type == "application/problem+json":
                    assert example["value"]["status"] == int(status)
                    assert example["value"]["type"].endswith(slug)
