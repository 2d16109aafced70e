"""Requests of a known form get, byte for byte, what they get through the framework."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Self, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.answering.answers import Answer
from app.answering.queries import IdentifiedQueries, Query
from app.answering.queue import Decided
from app.data.vectors import decode_key
from app.errors import ContainedError, IntegrityError, KeyLimitError, UnavailableError
from app.http.access.keys import Key, KeyRing, Role, hash_of
from app.http.limits import Limits
from app.http.monitoring.monitoring_options import Watching
from app.http.wire.connection_guard import PIPELINED_MAX
from app.http.wire.fast_requests import HEAD_BYTES_MAX, HEADS_MAX, PlainProtocol, guarded
from tests.http.doubles import Http, MemoryService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from app.answering.queries import Queries
    from app.answering.queue import Decisions, Recipient
    from app.answering.service import ConclaveService
    from app.http.application import ConclaveApplication

PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 0.05
REQUEST_ID = re.compile(rb"x-request-id: [0-9a-f-]+")


class AloneService(MemoryService):
    """A service that takes single queries on the web server's connections too.

    Attributes:
        waiting: queries whose decision is held back, while ``is_held``.
        refusal: decided in place of the next answer.
        taken: queries that came past the framework.

    """

    def __init__(self) -> None:
        """Start with nothing asked."""
        super().__init__()
        self.is_held = False
        self.waiting: list[tuple[Any, Recipient]] = []
        self.refusal: UnavailableError | IntegrityError | KeyLimitError | None = None
        self.taken = 0

    def answer_at_once(self, queries: Queries) -> Answer | IdentifiedQueries | None:
        """Return a recorded answer; let everything else wait."""
        self.taken += 1
        vector = decode_key(queries.vectors[0])
        if vector in self.answers and self.refusal is None:
            return cast("Answer", self._answer(Query(vector)))
        return IdentifiedQueries(
            queries.vectors, (None,), (None,), queries.askers, (b"v",), (None,), (b"v",), (b"v",)
        )

    def enqueue_alone(self, queries: IdentifiedQueries, recipient: Recipient) -> None:
        """Decide at once, or when told."""
        self.waiting.append((queries, recipient))
        if not self.is_held:
            self.decide()

    def decide(self) -> None:
        """Decide whatever waits."""
        waiting, self.waiting = self.waiting, []
        for queries, recipient in waiting:
            if recipient.done():
                continue
            if isinstance(self.refusal, IntegrityError):
                recipient.set_result(self.refusal)
            else:
                recipient.set_result(Decided([self.refusal or cast("Any", queries)]))

    def told_alone(self, queries: IdentifiedQueries, decisions: Decisions) -> object:
        """Return the answer, or what was decided in its place."""
        decision: object = decisions[0]
        if decision is not queries:
            return decision
        return self._answer(Query(decode_key(queries.vectors[0])))


class Line:
    """One connection of a client to the web server's protocol, with a real transport."""

    def __init__(self, protocol: Any, client: socket.socket) -> None:
        """Read and write beside the protocol."""
        self.protocol = protocol
        self._client = client

    async def send(self, data: bytes) -> None:
        """Send bytes in one piece."""
        await asyncio.get_running_loop().sock_sendall(self._client, data)

    async def read(self) -> bytes:
        """Return one whole reply."""
        reply = b""
        while b"\r\n\r\n" not in reply or len(reply) < _length(reply):
            more = await self._received()
            assert more, reply
            reply += more
        return reply

    async def read_to_end(self) -> bytes:
        """Return whatever comes until the server closes."""
        reply = b""
        while more := await self._received():
            reply += more
        return reply

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return its reply."""
        await self.send(request)
        return await self.read()

    def arrived(self) -> bytes:
        """Return what has come by now; nothing once the connection is reset."""
        with suppress(OSError):
            return self._client.recv(1 << 20)
        return b""

    async def _received(self) -> bytes:
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.sock_recv(self._client, 65_536), PATIENCE_SECONDS)


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 -- what is waited for has no event
            await asyncio.sleep(0)


def _length(reply: bytes) -> int:
    head, _, _ = reply.partition(b"\r\n\r\n")
    (length,) = [
        int(line.split(b":")[1])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    return len(head) + 4 + length


class Served:
    """An application behind the web server's protocol."""

    def __init__(self, *, is_plain: bool = True, idle_seconds: int = 60, **options: Any) -> None:
        """Build both; ``is_plain=False`` parses every request."""
        self.http = Http(limits=options.pop("limits", Limits()), **options)
        self.service = AloneService()
        self.http.service = self.service
        self.http.slot.fill(cast("ConclaveService", self.service))
        self.application = cast("ConclaveApplication", self.http.application)
        plain = self.application.plain if is_plain else ()
        self.protocol = guarded(self.application.api.limits, plain)
        self.config = uvicorn.Config(
            self.application,
            http=self.protocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=idle_seconds,
        )
        self.state = ServerState()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the event loop."""
        self.http.runner.close()

    def run(self, play: Callable[[Served], Any]) -> Any:
        """Run a coroutine function on the loop."""
        return self.http.runner.run(play(self))

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        """Open a connection."""
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_accepted_socket(
            lambda: self.protocol(self.config, self.state, {}), theirs
        )
        try:
            yield Line(protocol, ours)
        finally:
            transport.close()
            ours.close()
            await asyncio.sleep(0)


def request(body: bytes | object, *headers: str) -> bytes:
    """Return a request; a body that is no bytes is the features."""
    content = body if isinstance(body, bytes) else json.dumps({"features": body}).encode()
    head = ["POST /query HTTP/1.1", "Host: 127.0.0.1:8000", "Content-Type: application/json"]
    lines = [*head, *headers, f"Content-Length: {len(content)}", "", ""]
    return "\r\n".join(lines).encode() + content


def inference(*rows: list[object], outputs: str = "") -> bytes:
    """Return a request of the Open Inference Protocol; rows of an age and a class of work."""
    columns = list(zip(*rows, strict=True))
    tensors = [
        {"name": name, "shape": [len(rows)], "datatype": datatype, "data": list(column)}
        for name, datatype, column in zip(
            ("age", "workclass"), ("FP64", "BYTES"), columns, strict=True
        )
    ]
    body = json.dumps({"inputs": tensors})[:-1] + outputs + "}"
    return request(body.encode()).replace(b"/query", b"/v2/models/adult-income/infer")


FIRST, SECOND = request([20, "Private"]), request([45, "Private"])


async def both(served: Served, second: bytes, *, first: bytes = FIRST) -> bytes:
    """Return the second reply on a connection that sent the same head before."""
    async with served.line() as line:
        await line.ask(first)
        return await line.ask(second)


BODIES = [
    inference([41, "Private"]),
    inference([41, "Private"], outputs=', "outputs": [{"name": "label"}]'),
    inference([41, "Private"], outputs=', "parameters": {"binary_data_output": true}'),
    inference([41, "Private"], [42, "Private"]),
    inference([4, 7]),
    inference([41, "Private"]).replace(b"adult-income", b"adult-outcome"),
    SECOND,
    request([47.5, "Pr"]),
    FIRST,
    request(b'{"features": {"age": 1}}'),
    request(b'{"features": [1, "Private"'),
    request(b'{"features": [1, 2, 3 ,4,5]}'),
    request(b'{"features": ["x", "Priva"]}'),
    request(b'{"feat\\u0075res": [1,null]}'),
    request(b"", "X-Request-Id: 7"),
    request([4, "Private"], "X-Request-Id: mine"),
    request([4, "Private"], "Idempotency-Key: k1"),
    request([4, "Private"], "Content-Encoding: gzip"),
    request([4, "Private"], "Connection: close"),
    request([4, "Private"], "Origin: http://elsewhere"),
    request([4, "Private"]).replace(b"application/json", b"text/csv"),
    request([4, "Private"]).replace(b"POST /query ", b"POST /nowhere "),
]


@pytest.mark.parametrize("second", BODIES)
def test_replies_and_counts_are_those_of_the_framework(second: bytes) -> None:
    """Answers, replays and refusals, known heads or not: the bytes and the counters agree."""
    found = []
    for is_plain in (True, False):
        with Served(is_plain=is_plain) as served:
            # Before it, a request of the same length with the same head, where there is one.
            head, _, body = second.partition(b"\r\n\r\n")
            learnt = head + b"\r\n\r\n" + _like(body)
            is_same = len(body) >= 21 and b"X-Req" not in second and b"Idem" not in second
            first = learnt if is_same and b"Connection" not in second else FIRST
            reply = served.run(partial(both, second=second, first=first))
            api = served.application.api
            times = {status: buckets.cumulative()[-1] for status, buckets in _times(served)}
            found.append((reply, dict(api.refusals), api.meter.in_flight, times))
    assert found[0] == found[1]


def _like(body: bytes) -> bytes:
    """Return a body of the same length and protocol."""
    if b'"inputs"' in body:
        return body.replace(b'"Private"', b'"private"').replace(b"7]", b"8]")
    return b'{"features":[1,null]}'.ljust(len(body))


def _times(served: Served) -> list[tuple[int, Any]]:
    paths = ("/query", "/v2/models/{name}/infer")
    counted = [served.application.api.meter.route("POST", path).items() for path in paths]
    return sorted(each for items in counted for each in items)


def test_a_known_head_is_not_parsed() -> None:
    """The second of two requests does not reach the framework, on another connection either."""
    with Served() as served:

        async def play(each: Served) -> list[int]:
            taken = []
            async with each.line() as one, each.line() as other:
                for line, asked in ((one, FIRST), (one, SECOND), (other, request([46, "Private"]))):
                    await line.ask(asked)
                    taken.append(each.service.taken)
            return taken

        assert served.run(play) == [0, 1, 2]


def test_an_inference_of_one_row_is_not_parsed_twice() -> None:
    """A known head of the other protocol is taken too; after one of several rows no more is."""
    with Served() as served:

        async def play(each: Served) -> list[int]:
            taken, two = [], [[31, "Private"], [32, "Private"]]
            async with each.line() as line:
                for rows in ([[41, "Private"]], [[42, "Private"]], two, two, two):
                    await line.ask(inference(*rows))
                    taken.append(each.service.taken)
            return taken

        assert served.run(play) == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    "watching", [Watching(log_requests=True), Watching(times=False)], ids=["logged", "no times"]
)
def test_what_is_watched_goes_by_the_framework(watching: Watching) -> None:
    """A server that logs every request parses every one; one without times need not."""
    with Served(watching=watching) as served:
        served.run(lambda each: both(each, SECOND))
        assert served.service.taken == (0 if watching.log_requests else 1)


def test_a_refusal_of_the_writer_is_told_by_the_edge() -> None:
    """Decisions that are no answers: the same problem replies, counted and timed once."""
    refusals = [UnavailableError("full"), KeyLimitError("used"), ContainedError("stopped")]
    for refusal in refusals:
        found = []
        for is_plain in (True, False):
            with Served(is_plain=is_plain) as served:

                async def play(each: Served, refusal: Any = refusal) -> bytes:
                    async with each.line() as line:
                        await line.ask(FIRST)
                        each.service.refusal = refusal
                        each.service.failure = refusal
                        return await line.ask(SECOND)

                if isinstance(refusal, KeyLimitError) and not is_plain:
                    continue  # the double raises it, where the service returns it
                reply = served.run(play)
                api = served.application.api
                counted = {status: each.cumulative()[-1] for status, each in _times(served)}
                found.append((reply, dict(api.refusals), api.meter.in_flight, counted))
        assert found[0] == found[-1]
        assert sum(found[0][1].values()) == 1
        assert found[0][2] == 0


def test_a_key_that_is_withdrawn_opens_nothing() -> None:
    """Each request of a known head is held against the keys as they are, with their limits."""
    ring = KeyRing([Key("web", Role.QUERY, hash_of("web"), limit=5)])
    with Served(keys=ring) as served:
        bearer = "Authorization: Bearer web"

        async def play(each: Served) -> list[bytes]:
            asked = [request([age, "Private"], bearer) for age in (20, 21, 22)]
            async with each.line() as line:
                replies = [await line.ask(asked[0]), await line.ask(asked[1])]
                ring._buckets.clear()
                return [*replies, await line.ask(asked[2])]

        first, second, third = served.run(play)
        assert served.service.taken == 1
        assert second == first.replace(b'"query_id":1', b'"query_id":2')
        assert b'ratelimit-policy: "answers";q=5\r\n' in second
        assert third.startswith(b"HTTP/1.1 401 ")


def test_a_key_of_another_role_is_refused_every_time() -> None:
    """A head that is refused is not known the next time."""
    ring = KeyRing([Key("reader", Role.READ, hash_of("reader"))])
    with Served(keys=ring) as served:
        asked = request([20, "Private"], "Authorization: Bearer reader")
        reply = served.run(lambda each: both(each, asked, first=asked))
        assert reply.startswith(b"HTTP/1.1 403 ")
        assert served.application.api.refusals.total() == 2


def test_requests_that_come_while_one_waits_are_answered_in_order() -> None:
    """Two at once are parsed; one that comes during another waits for it."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.ask(FIRST)
                both_at_once = await _two(line, request([30, "Private"]) + SECOND)
                each.service.is_held = True
                await line.send(request([31, "Private"]))
                await until(lambda: bool(each.service.waiting))
                await line.send(request([32, "Private"]))
                await until(lambda: bool(line.protocol.pipeline))
                each.service.is_held = False
                each.service.decide()
                return both_at_once + await _two(line, b"")

        replies = served.run(play)
        numbers = [part.split(b",")[0] for part in replies.split(b'"query_id":')[1:]]
        assert numbers == [b"2", b"3", b"4", b"5"]


async def _two(line: Line, sent: bytes) -> bytes:
    """Send bytes, and return two replies."""
    if sent:
        await line.send(sent)
    replies = b""
    while replies.count(b'"replayed"') < 2:
        replies += await line._received()
    return replies


def test_the_last_reply_says_so_and_closes() -> None:
    """A server that ends answers what waits, and closes the connection."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.ask(FIRST)
                each.service.is_held = True
                await line.send(SECOND)
                await until(lambda: bool(each.service.waiting))
                line.protocol.shutdown()
                each.service.decide()
                return await line.read_to_end()

        reply = served.run(play)
        assert reply.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
        assert b"\r\nconnection: close\r\n\r\n" in reply


def test_a_request_that_is_given_up_is_told() -> None:
    """What the web server cancels gets the edge's 503, and nothing more."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.ask(FIRST)
                each.service.is_held = True
                await line.send(SECOND)
                await until(lambda: bool(each.service.waiting))
                for task in each.state.tasks:  # as the web server goes through them
                    task.cancel()
                reply = await line.read()
                each.service.decide()
                assert not each.state.tasks
                return reply

        assert served.run(play).startswith(b"HTTP/1.1 503 ")
        assert served.application.api.meter.in_flight == 0


def test_a_client_that_hangs_up_changes_nothing() -> None:
    """The decision on its query is made, and told nobody."""
    with Served() as served:

        async def play(each: Served) -> None:
            async with each.line() as line:
                await line.ask(FIRST)
                each.service.is_held = True
                await line.send(SECOND)
                await until(lambda: bool(each.service.waiting))
                line.protocol.transport.abort()
                await until(lambda: bool(line.protocol.cycle.disconnected))
                each.service.decide()

        served.run(play)
        assert len(served.service.answers) == 2
        assert served.application.api.meter.in_flight == 0
        assert not served.state.tasks


def test_an_idle_connection_is_closed_as_long_after_its_last_reply() -> None:
    """The time begins anew with each reply, and ends the connection."""
    with Served(idle_seconds=1) as served:

        async def play(each: Served) -> tuple[float, bytes]:
            clock = asyncio.get_running_loop().time
            async with each.line() as line:
                await line.ask(FIRST)
                await asyncio.sleep(QUIET_SECONDS)
                replied = clock()
                await line.ask(SECOND)
                rest = await line.read_to_end()
                return clock() - replied, rest

        seconds, rest = served.run(play)
        assert rest == b""
        assert seconds >= 1.0


def test_known_heads_are_few() -> None:
    """However many lengths are sent, what is kept is bounded."""
    with Served() as served:

        async def play(each: Served) -> None:
            async with each.line() as line:
                for length in range(HEADS_MAX + 2):
                    padded = b'{"features":[1,null]}'.ljust(21 + length)
                    await line.ask(request(padded))

        served.run(play)
        assert issubclass(served.protocol, PlainProtocol)
        assert 0 < len(served.protocol.heads) <= HEADS_MAX


def test_an_error_in_a_reply_reaches_no_other_client() -> None:
    """What cannot be encoded ends its own connection; nothing is raised where others are told."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.ask(FIRST)
                each.service.is_held = True
                await line.send(SECOND)
                await until(lambda: bool(each.service.waiting))
                _, exchange = each.service.waiting[0]
                exchange.kept = None  # type: ignore[attr-defined]  # as nothing leaves it
                each.service.decide()
                return await line.read_to_end()

        assert served.run(play) == b""


def chunked(*trailers: str) -> bytes:
    """Return a request in one chunk, with trailers after it."""
    head, _, body = FIRST.partition(b"\r\n\r\n")
    kept = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
    after = "".join(f"{line}\r\n" for line in trailers).encode()
    lines = b"\r\n".join([*kept, b"Transfer-Encoding: chunked", b"", b"%x" % len(body), body])
    return lines + b"\r\n0\r\n" + after + b"\r\n"


def test_trailers_are_no_headers() -> None:
    """A key, or a key of idempotency, after the body counts for nothing, however it arrives."""
    keys = KeyRing([Key("a", Role.QUERY, hash_of("secret"))])
    with Served(keys=keys) as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                return await line.ask(chunked("Authorization: Bearer secret"))

        assert served.run(play).startswith(b"HTTP/1.1 401 ")


def older(told: bytes) -> bytes:
    """Return a request as one of HTTP/1.0."""
    return told.replace(b" HTTP/1.1", b" HTTP/1.0", 1)


@pytest.mark.parametrize("header", ["Accept: */*", "Expect: 100-continue"])
def test_a_stream_of_an_older_client_has_no_chunks(header: str) -> None:
    """HTTP/1.0 has none, and no "100 Continue": the lines come as they are, and then the end."""
    lines = b"".join(json.dumps({"features": [age, "Private"]}).encode() + b"\n" for age in (5, 6))
    stream = request(lines, header).replace(b"/query", b"/query/stream")
    stream = stream.replace(b"application/json", b"application/x-ndjson")
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.send(older(stream))
                return await line.read_to_end()

        head, _, body = served.run(play).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in head
    assert b"transfer-encoding" not in head
    assert [json.loads(line)["query_id"] for line in body.splitlines()] == [1, 2]


def test_events_of_an_older_client_have_no_chunks() -> None:
    """The first event follows the headers at once."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.send(b"GET /budget/events HTTP/1.0\r\nHost: 127.0.0.1:8000\r\n\r\n")
                told = b""
                while b"\r\n\r\nevent: " not in told:
                    more = await line._received()
                    assert more, told
                    told += more
                return told

        assert b"transfer-encoding" not in served.run(play)


@pytest.mark.parametrize("header", ["Accept: */*", "Connection: keep-alive"])
def test_an_older_client_gets_its_answer_and_the_end(header: str) -> None:
    """With the length, however often the same bytes came before."""
    with Served() as served:

        async def play(each: Served) -> list[bytes]:
            replies = []
            for _ in range(3):
                async with each.line() as line:
                    await line.send(older(request([20, "Private"], header)))
                    replies.append(await line.read_to_end())
            return replies

        for reply in served.run(play):
            head, _, body = reply.partition(b"\r\n\r\n")
            assert b"content-length: %d" % len(body) in head
            assert b"connection: close" in head
            assert json.loads(body)["query_id"] == 1


def test_trailers_are_bounded() -> None:
    """Trailers, and extensions of chunks, are cut off where headers would be, also in a stream."""
    stream = chunked("A: b").replace(b"POST /query", b"POST /query/stream")
    stream = stream.replace(b"application/json", b"application/x-ndjson")
    with Served() as served:

        async def play(each: Served) -> None:
            for begun in (chunked("A: b")[:-2], stream[:-2], chunked()[:-5] + b"1;"):
                async with each.line() as line:
                    await line.send(begun)
                    piece = b"A: b\r\n" * 400 if begun.endswith(b"\n") else b"a" * 2400
                    with suppress(OSError):  # it may be closed before all is sent
                        for _ in range(400):
                            await line.send(piece)
                    await until(line.protocol.transport.is_closing)

        served.run(play)


def test_a_body_after_an_upgrade_is_no_request() -> None:
    """The parser leaves such a body unread, and would take it for a request of its own."""
    upgrade = request(SECOND, "Connection: Upgrade", "Upgrade: h2c")
    head, body = upgrade[: -len(SECOND)], SECOND
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                await line.send(head)
                reply = await line.read()
                with suppress(OSError):
                    await line.send(body)
                return reply + await line.read_to_end()

        reply = served.run(play)
        assert reply.startswith(b"HTTP/1.1 400 ")
        assert reply.count(b"\r\n\r\n") == 1
        assert not served.service.answers


@pytest.mark.parametrize("piece", [b"GET / HTTP/1.1\r\n\r\n", FIRST])
def test_requests_that_wait_for_their_turn_are_few(piece: bytes) -> None:
    """A client that sends requests faster than they are answered is not read, or is cut off."""
    most = 0
    with Served() as served:

        async def play(each: Served) -> None:
            nonlocal most
            async with each.line() as line:
                sending = asyncio.ensure_future(line.send(piece * 50_000))
                for _ in range(2000):
                    await asyncio.sleep(0)
                    most = max(most, len(line.protocol.pipeline))
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)

        served.run(play)
    assert 0 < most <= PIPELINED_MAX


def odd(rng: Random, age: int) -> bytes:
    """Return a request that the fast path has to leave alone, or bytes that are hardly one."""
    plain = request([age, "Private"])
    forms: list[Callable[[], bytes]] = [
        lambda: plain.replace(b"Content-Type", rng.choice([b"content-type", b"CONTENT-TYPE"])),
        lambda: older(plain),
        lambda: plain.replace(b"Content-Length: ", b"Content-Length: 0"),
        lambda: plain.replace(b"POST /query", rng.choice([b"POST /%71uery", b"POST /query?a=1"])),
        lambda: plain + b"x",
        lambda: b"\r\n" + plain,
        lambda: plain.replace(b"\r\n", b"\n"),
        lambda: plain.replace(
            b"Host:", b"A: " + b"a" * (HEAD_BYTES_MAX - rng.randrange(140)) + b"\r\nHost:"
        ),
        lambda: plain[:-1] + b"]",
        lambda: request(b'{"features": "x"}'),
        lambda: request([age, "Private"], "A: b\r\n folded"),
        lambda: request([age, "Private"], "Content-Length: 5"),
        lambda: request([age, "Private"], "Connection: close"),
        lambda: request([age, "Private"], "Expect: 100-continue"),
        lambda: request([age, "Private"] * 3),
        lambda: chunked("A: b"),
        lambda: inference([age, "Private"]),
        lambda: b"GET /schema HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n",
    ]
    return rng.choice(forms)()


def steps_of(seed: int) -> list[tuple[int, list[bytes], bool]]:
    """Return the number of a connection, what it sends in pieces, and whether answers wait."""
    rng = Random(seed)
    steps = []
    for _ in range(40):
        age = rng.randrange(10, 14)
        whole = request([age, "Private"])
        if rng.random() < 0.15:
            data = odd(rng, age)
            cut = rng.randrange(1, len(data))
            parts = rng.choice([[data], [data[:cut], data[cut:]]])
        elif rng.random() < 0.1:
            # What comes in a piece of its own is a body, though it looks like a request.
            parts = [request(whole)[: -len(whole)], whole]
        else:
            parts = rng.choice([[whole]] * 6 + [[whole, whole], [whole * 2]])
        steps.append((rng.randrange(2), parts, rng.random() < 0.3))
    return steps


@pytest.mark.parametrize("seed", range(8))
def test_any_requests_in_any_pieces_get_what_the_framework_gives(seed: int) -> None:
    """Two connections, byte for byte, with requests among them that end one of the two."""
    found, taken = [], 0
    for is_plain in (True, False):
        with Served(is_plain=is_plain) as served:

            async def play(each: Served) -> list[bytes]:
                replies = [b"", b""]
                async with each.line() as one, each.line() as other:
                    for place, parts, is_held in steps_of(seed):
                        line = (one, other)[place]
                        each.service.is_held = is_held
                        for part in parts:
                            with suppress(OSError):
                                await line.send(part)
                            await turns()
                        each.service.is_held = False
                        each.service.decide()
                        await turns()
                        replies[place] += line.arrived()
                return replies

            replies = served.run(play)
            found.append(([REQUEST_ID.sub(b"", each) for each in replies], served.service.answers))
            taken += served.service.taken
    assert found[0] == found[1]
    assert taken > 0


async def turns() -> None:
    """Let the loop turn as often as a request and its reply need."""
    for _ in range(40):
        await asyncio.sleep(0)


def test_a_partial_request_after_others_is_read_to_its_end() -> None:
    """While requests wait nothing more is received; the last of them gets the rest of its body."""
    with Served() as served:

        async def play(each: Served) -> bytes:
            async with each.line() as line:
                each.service.is_held = True
                await line.send(FIRST + SECOND + SECOND[:-5])
                await until(lambda: len(line.protocol.pipeline) == 2)
                await line.send(SECOND[-5:])
                each.service.is_held = False
                each.service.decide()
                reply = b""
                while reply.count(b"query_id") < 3:
                    reply += await line.read()
                return reply

        assert served.run(play).count(b"HTTP/1.1 200 ") == 3
