"""A request is found again: by the client's id or ours, and in the client's trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from app.http.access.keys import Role
from app.http.monitoring.monitoring_options import Watching
from app.http.monitoring.request_ids_and_times import RequestIds
from tests.http.doubles import JSON, KEY_RING, KEYS, NDJSON, Http

if TYPE_CHECKING:
    from collections.abc import Sequence

SECRET = bytes(range(8))
MADE = re.compile(r"0001020304050607-[0-9a-f]+")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
WELL_FORMED = ("a", "7f3c-1", "Root=1-67891233-abcdef012345678912345678", "A" * 128)
ILL_FORMED = ("", "A" * 129, "two words", 'say"it"', "caf\xe9", "a\x7fb", "{secret}")
ILL_FORMED_PARENTS = (
    "",
    TRACE,
    f"ff-{TRACE}-00f067aa0ba902b7-01",
    f"00-{'0' * 32}-00f067aa0ba902b7-01",
    f"00-{TRACE}-{'0' * 16}-01",
    f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
    f"{PARENT}-more",
    f"{PARENT} ",
    f"00-{TRACE}-00f067aa0ba902b7-1",
    f"{PARENT}, {PARENT}",
)


def watched(**more: Any) -> Http:
    """Return an application whose ids are known."""
    return Http(watching=Watching(ids=RequestIds(SECRET), **more))


@pytest.mark.parametrize("given", WELL_FORMED)
def test_a_well_formed_id_comes_back(given: str) -> None:
    """The client's own id is in its answer, and in its refusal, unchanged."""
    with watched() as http:
        answered = http.ask([20, None], **{"X-Request-Id": given})
        refused = http.ask(["old", None], **{"X-Request-Id": given})
    assert (answered.status_code, refused.status_code) == (200, 422)
    assert answered.headers["x-request-id"] == refused.headers["x-request-id"] == given


@pytest.mark.parametrize("given", ILL_FORMED)
def test_an_id_that_is_not_well_formed_is_replaced(given: str) -> None:
    """What could break a line or be too long is left aside, and one of ours takes its place."""
    with watched() as http:
        raw = {"X-Request-Id": given.encode("latin-1")}
        refused = http.request("GET", "/ledger?limit=0", headers=raw)
    assert MADE.fullmatch(refused.headers["x-request-id"])


def test_every_refusal_has_an_id_of_its_own() -> None:
    """A route's refusals, the router's and a probe's are told apart; an answer has none unasked."""
    with watched() as http:
        refused = [
            http.ask(["old", None]),
            http.get("/nowhere"),
            http.request("DELETE", "/budget"),
            http.ask({}),
        ]
        answered = http.ask([20, None])
    with Http(is_open=False, watching=Watching(ids=RequestIds(SECRET))) as http:
        assert MADE.fullmatch(http.get("/readyz").headers["x-request-id"])
    ids = [reply.headers["x-request-id"] for reply in refused]
    assert all(MADE.fullmatch(each) for each in ids)
    assert len(set(ids)) == len(ids)
    assert "x-request-id" not in answered.headers


@pytest.mark.parametrize("version", ["00", "01"])
def test_a_trace_is_answered_within(version: str) -> None:
    """The reply names the client's trace, a span of its own, and whether it is recorded."""
    parent = PARENT.replace("00-", f"{version}-", 1) + ("-more" if version == "01" else "")
    with watched() as http:
        first, second = (http.ask([20, None], traceparent=parent) for _ in range(2))
    shape = re.compile(rf"00-{TRACE}-(?!0{{16}})[0-9a-f]{{16}}-01")
    assert shape.fullmatch(first.headers["traceresponse"])
    assert first.headers["traceresponse"] != second.headers["traceresponse"]
    assert "00f067aa0ba902b7" not in first.headers["traceresponse"]


@pytest.mark.parametrize("parent", ILL_FORMED_PARENTS)
def test_a_trace_that_is_not_well_formed_is_left_aside(parent: str) -> None:
    """As the recommendation asks, such a header is as good as none."""
    with watched() as http:
        reply = http.ask([20, None], traceparent=parent)
    assert reply.status_code == 200
    assert "traceresponse" not in reply.headers


def test_two_traces_are_none() -> None:
    """A header that came twice does not say which trace is meant."""
    with watched() as http:
        headers = [("traceparent", PARENT), ("traceparent", PARENT)]
        assert "traceresponse" not in http.get("/budget", headers=headers).headers


def test_a_stream_and_events_carry_the_id() -> None:
    """Replies that are not whole have the headers too."""
    with watched() as http:
        named = {"X-Request-Id": "mine", "Content-Type": "application/x-ndjson"}
        reply = http.request(
            "POST", "/query/stream", content=b'{"features": [20, null]}', headers=named
        )
    assert reply.headers["x-request-id"] == "mine"


def refusals(logged: Sequence[Any]) -> list[Any]:
    """Return what was logged of refusals."""
    return [each for each in logged if each["event"] == "request_refused"]


def test_the_log_of_a_refusal_has_the_ids() -> None:
    """The line has the id that the reply has, and the trace; of a stream, each refused line."""
    with watched() as http, structlog.testing.capture_logs() as logged:
        http.ask(["old", None], traceparent=PARENT, **{"X-Request-Id": "mine"})
        http.stream({"features": ["old", None]})
    first, second = refusals(logged)
    assert (first["request_id"], first["trace_id"]) == ("mine", TRACE)
    assert re.fullmatch(r"[0-9a-f]{16}", first["span_id"])
    assert MADE.fullmatch(second["request_id"])
    assert "trace_id" not in second


def test_a_line_for_every_request_where_an_operator_wants_it() -> None:
    """Route, status and id are told, and no path, time or body."""
    with watched(log_requests=True) as http, structlog.testing.capture_logs() as logged:
        http.ask([20, None], **{"X-Request-Id": "mine"})
        http.get("/ledger?limit=0")
    lines = [each for each in logged if each["event"] == "request_answered"]
    assert lines[0] == {
        "event": "request_answered",
        "log_level": "info",
        "route": "POST /query",
        "status": 200,
        "request_id": "mine",
    }
    assert (lines[1]["route"], lines[1]["status"]) == ("GET /ledger", 400)


def test_nothing_is_told_of_a_request_that_asked_for_nothing() -> None:
    """By default an answer has no line, and no id is made for it."""
    with watched() as http, structlog.testing.capture_logs() as logged:
        http.ask([20, None])
        refused = http.ask(["old", None])
    assert [each["event"] for each in logged] == ["request_refused"]
    assert refused.headers["x-request-id"].endswith("-1")


def test_lines_of_requests_name_the_key() -> None:
    """Of a reply, a refused role and a refused line; a key that is unknown has no name."""
    watching = Watching(log_requests=True)
    query = {"Authorization": f"Bearer {KEYS[Role.QUERY]}"}
    with Http(keys=KEY_RING, watching=watching) as http, structlog.testing.capture_logs() as logged:
        body = b'{"features": [20, null]}'
        http.request("POST", "/query", content=body, headers=JSON | query)
        http.get("/budget", headers=query)
        http.request("POST", "/query/stream", content=b"{", headers=NDJSON | query)
        http.get("/budget", headers={"Authorization": "Bearer unknown"})
    named = [(each["event"], each.get("key")) for each in logged]
    answered, refused = ("request_answered", "query"), ("request_refused", "query")
    assert named == [
        answered,
        refused,
        answered,
        answered,
        refused,
        ("request_refused", None),
        ("request_answered", None),
    ]
