"""POST /query/stream: order, places of refusals, clients of every temper."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from app.answering.service_slot import STOPPED
from app.errors import InvariantError, LedgerUnavailableError
from app.http.limits import Limits
from app.http.query.query_body import KEY_SHAPE, SHAPE
from app.http.query.stream import DRAINING, KEY_OF_A_STREAM
from tests.http.doubles import (
    CONFLICT,
    EXHAUSTED,
    NDJSON,
    Http,
    assert_problem,
    problem,
    wait_until,
)
from tests.http.wire import PATIENCE_SECONDS

if TYPE_CHECKING:
    from tests.http.wire import Wire

MALFORMED = problem("malformed-body", "Malformed body", 400, SHAPE)


def query(age: float | None) -> dict[str, object]:
    """Return the query of a person of this age."""
    return {"features": [age, "Private"]}


async def next_line(wire: Wire) -> dict[str, Any]:
    """Return the next piece of a reply that is one line."""
    line: dict[str, Any] = json.loads(await wire.receive_body())
    return line


def test_answers_line_by_line_in_order() -> None:
    """Every line has its reply in its place, refused lines a problem."""
    with Http() as http:
        replies = http.stream(query(20), {"features": 3}, query(50), b"{", query(20))
    not_json = problem("malformed-body", "Malformed body", 400, f"the body is not JSON; {SHAPE}")
    assert [reply.get("query_id") for reply in replies] == [1, None, 2, None, 1]
    assert replies[1] == MALFORMED
    assert replies[3] == not_json
    assert replies[4]["replayed"] is True


def test_a_line_carries_its_own_key() -> None:
    """The member idempotency_key is to a line what the header is to a query."""
    with Http() as http:
        replies = http.stream(
            query(20) | {"idempotency_key": "a"},
            query(30) | {"idempotency_key": "a"},
            query(40) | {"idempotency_key": "two words"},
            query(40) | {"idempotency_key": None},
        )
    conflict = problem("idempotency-conflict", "Idempotency key used before", 409, CONFLICT)
    assert replies[1] == conflict
    assert replies[2] == problem("invalid-parameter", "Invalid parameter", 400, KEY_SHAPE)
    assert [reply.get("query_id") for reply in replies] == [1, None, None, 2]


def test_refuses_a_key_for_the_whole_stream() -> None:
    """One key cannot stand for many queries."""
    with Http() as http:
        reply = http.request(
            "POST", "/query/stream", content=b"", headers=NDJSON | {"Idempotency-Key": "a"}
        )
    assert_problem(reply, problem("invalid-parameter", "Invalid parameter", 400, KEY_OF_A_STREAM))


def test_refuses_a_stream_of_another_type() -> None:
    """Only newline-delimited JSON is a stream."""
    wanted = "application/jsonl or application/ndjson or application/x-ndjson"
    with Http() as http:
        reply = http.request(
            "POST", "/query/stream", content=b"", headers={"Content-Type": "application/json"}
        )
    detail = f"send the body with `Content-Type: {wanted}`"
    assert_problem(reply, problem("unsupported-media-type", "Unsupported media type", 415, detail))


@pytest.mark.parametrize("body", [b"", b"\n", b"\n \r\n\t\n"])
def test_a_stream_without_lines_is_empty(body: bytes) -> None:
    """Lines of white space are no queries."""
    with Http() as http:
        reply = http.request("POST", "/query/stream", content=body, headers=NDJSON)
    assert reply.status_code == 200
    assert reply.content == b""


def test_every_new_line_is_refused_after_a_halt() -> None:
    """The stream goes on after a halt: recorded vectors replay, new ones are refused."""
    with Http(queries_max=2) as http:
        replies = http.stream(*(query(age) for age in (1, 2, 3, 1, 4)))
    exhausted = problem("budget-exhausted", "Privacy budget exhausted", 410, EXHAUSTED)
    assert replies[2] == replies[4] == exhausted
    assert [reply.get("query_id") for reply in replies] == [1, 2, None, 1, None]


def test_a_long_line_is_refused_in_its_place() -> None:
    """What is over the limit is dropped up to its newline, and the stream goes on."""
    long = b'{"features": [1, "' + b"x" * 100 + b'"]}'
    with Http(limits=Limits(line_bytes_max=60)) as http:
        replies = http.stream(query(1), long, query(2), long)
    detail = "this line is longer than 60 bytes; send shorter lines"
    too_large = problem("too-large", "Too large", 413, detail)
    assert replies[1] == replies[3] == too_large
    assert [reply.get("query_id") for reply in replies] == [1, None, 2, None]


def test_what_passes_is_told_line_by_line() -> None:
    """A ledger that is unavailable refuses each line, and the stream goes on."""
    with Http() as http:
        http.service.failure = LedgerUnavailableError("the disk is full")
        replies = http.stream(query(1), query(2))
    expected = problem("ledger-unavailable", "Ledger unavailable", 503, "the disk is full")
    assert replies == [expected, expected]


def test_an_integrity_error_refuses_every_line() -> None:
    """A release that stops gives each line the same fixed words."""
    expected = problem("release-stopped", "Release stopped", 500, STOPPED)
    with Http(limits=Limits(stream_lines_max=1)) as http:
        http.service.failure = InvariantError("17 votes for 18 chunks")
        assert http.stream(query(1), query(2)) == [expected, expected]
        assert http.service.windows == [1]
        assert http.get("/readyz").status_code == 500


def test_submits_waiting_lines_together() -> None:
    """Lines that came together are one batch, up to the window."""
    with Http(limits=Limits(stream_lines_max=3)) as http:
        http.stream(*(query(age) for age in range(7)))
        assert http.service.windows == [3, 3, 1]


def test_an_interactive_client_gets_each_answer_at_once() -> None:
    """A client may wait for each answer before it sends the next query."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            assert (await wire.receive())["type"] == "http.response.start"
            for number in (1, 2, 3):
                wire.send(json.dumps(query(number)).encode() + b"\n")
                assert (await next_line(wire))["query_id"] == number
            wire.send(b'{"features": [4,')
            wire.send(b'"Private"]}', more=False)
            assert (await next_line(wire))["query_id"] == 4
            assert await wire.receive_body() == b""
            await wire.task

    with Http() as http:
        http.runner.run(converse(http))


def test_an_answer_does_not_wait_for_those_after_it() -> None:
    """What is known of a window is sent, refused lines around it too, while the rest waits."""

    async def converse(http: Http) -> None:
        http.service.held = asyncio.Event()
        lines = [b"{", json.dumps(query(1)).encode(), b"{", *[json.dumps(query(2)).encode()] * 2]
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            await wire.receive()
            wire.send(b"\n".join(lines), more=False)
            refused = [json.loads(line) for line in (await wire.receive_body()).splitlines()]
            known = [json.loads(line) for line in (await wire.receive_body()).splitlines()]
            http.service.held.set()
            rest = [json.loads(line) for line in (await wire.receive_body()).splitlines()]
            assert await wire.receive_body() == b""
        assert [reply["status"] for reply in refused] == [400]
        assert [reply.get("query_id", reply.get("status")) for reply in known] == [1, 400]
        assert [reply["query_id"] for reply in rest] == [2, 2]

    with Http() as http:
        http.runner.run(converse(http))


def test_a_client_may_send_everything_before_it_reads() -> None:
    """Requests are read while replies wait for the client."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            wire.open_for_sending.clear()
            for number in range(200):
                wire.send(json.dumps(query(number)).encode() + b"\n", more=number < 199)
            await wait_until(lambda: len(http.service.answers) == 200)
            wire.open_for_sending.set()
            await wire.task

    with Http(limits=Limits(stream_unread_bytes_max=100)) as http:
        http.runner.run(converse(http))


def test_a_client_that_never_reads_is_held_back() -> None:
    """Beyond the bound on unsent replies nothing more is read or asked."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            wire.open_for_sending.clear()
            for number in range(200):
                wire.send(json.dumps(query(number)).encode() + b"\n", more=number < 199)
            await asyncio.sleep(0.05)
            assert len(http.service.answers) < 10
            wire.open_for_sending.set()
            await wire.task
            assert len(http.service.answers) == 200

    limits = Limits(stream_unread_bytes_max=1, stream_unsent_bytes_max=1, stream_lines_max=1)
    with Http(limits=limits) as http:
        http.runner.run(converse(http))


def test_hanging_up_ends_the_stream_and_keeps_the_answers() -> None:
    """What was answered stays answered; the application ends quietly."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            await wire.receive()
            wire.send(json.dumps(query(1)).encode() + b"\n")
            await next_line(wire)
            wire.hang_up()
            await asyncio.wait_for(wire.task, PATIENCE_SECONDS)

    with Http() as http:
        http.runner.run(converse(http))
        assert http.ask([1, "Private"]).json()["replayed"] is True


def test_a_server_that_gives_up_on_a_stream_logs_no_traceback() -> None:
    """Cancelling a request ends the application without an exception."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            await wire.receive()
            wire.task.cancel()
            await wire.task

    with Http() as http:
        http.runner.run(converse(http))


def test_draining_ends_an_open_stream() -> None:
    """A server that shuts down ends the stream even if its client would go on."""

    async def converse(http: Http) -> None:
        async with http.wire("POST", "/query/stream", **NDJSON) as wire:
            await wire.receive()
            wire.send(json.dumps(query(1)).encode() + b"\n")
            await next_line(wire)
            http.slot.drain()
            assert await wire.receive_body() == b""
            await wire.task

    with Http() as http:
        http.runner.run(converse(http))


def test_lines_that_come_too_late_are_refused() -> None:
    """Lines read after the drain began are refused, uncharged, and may be sent again."""
    with Http() as http:
        http.slot.drain()
        replies = http.stream(query(1))
        assert replies in ([], [problem("unavailable", "Unavailable", 503, DRAINING)])
        assert http.service.answers == {}
