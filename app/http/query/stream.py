"""The route ``POST /query/stream``: one query per line, and one answer per line.

A stream has three tasks: the first reads lines, the second answers all lines that have arrived, and
the third sends replies. So a client may send all its queries before it reads an answer, or wait for
each answer before it sends the next query.

Each line of the reply is an answer or a problem (an error).
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.answering.answer_query import Edge, Step
from app.answering.answers import Answer, in_turn
from app.answering.queries import NO_QUERIES, Query, in_columns
from app.errors import (
    IntegrityError,
    RequestError,
    TooLargeError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from app.http.access.access_control import caller_of
from app.http.access.rate_limit_headers import rate_limit_headers
from app.http.monitoring.request_ids_and_times import QUERY_STREAMS, Identity, identity_of
from app.http.openapi import query_models as models
from app.http.openapi.body_declarations import gives, takes
from app.http.openapi.refusal_replies import refused
from app.http.problems import InvalidParameterError, RequestTimeoutError, problem_body
from app.http.query.line_splitting import Channel, LineCutter, Overlong
from app.http.query.query_body import parse_line, parse_lines_of_numbers
from app.http.route_handling import Api, BusyRoute, CurrentApi, note_refusal, router_of
from app.http.wire.headers_and_bodies import LINE_TYPES, NDJSON, check_media_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.types import Message, Receive, Scope, Send

    from app.answering.queries import Asker, Queries
    from app.data.vectors_and_schema import Schema
    from app.http.access.access_control import Caller
    from app.http.query.line_splitting import Line

Refusal: TypeAlias = RequestError | UnavailableError | IntegrityError
Reply: TypeAlias = Answer | Refusal

_ENCODER: Final = msgspec.json.Encoder()


def encode_replies(replies: Sequence[Reply]) -> bytes:
    """Return the reply bytes of several answers, one line each."""
    if {Answer}.issuperset(map(type, replies)):  # as most are
        return _ENCODER.encode_lines(replies)
    return _ENCODER.encode_lines(
        [each if isinstance(each, Answer) else msgspec.Raw(problem_body(each)) for each in replies]
    )


DRAINING: Final = (
    "the server is shutting down and did not take this line; nothing was charged, send it "
    "again in a moment"
)
IDLE: Final = (
    "no line came within {seconds:g} seconds, so that this stream ends; every line before was "
    "answered, and the rest may be sent in another"
)
KEY_OF_A_STREAM: Final = (
    "one Idempotency-Key cannot stand for the queries of a stream; give each line an "
    '"idempotency_key" member'
)
HEADERS: Final = (
    (b"content-type", NDJSON.encode()),
    (b"cache-control", b"no-store"),
    # nginx would otherwise collect the answers before it passes them on.
    (b"x-accel-buffering", b"no"),
)


router = router_of(BusyRoute)


@router.post(
    "/query/stream",
    response_model=None,
    response_class=Response,
    responses=gives({NDJSON: models.Answer})
    | refused(
        InvalidParameterError(KEY_OF_A_STREAM),
        UnsupportedMediaTypeError("send the body with `Content-Type: application/x-ndjson`"),
    ),
    openapi_extra=takes({NDJSON: models.QueryLine}),
)
async def open_stream(api: CurrentApi, request: Request) -> QueryStream:
    """Return the streaming reply to a request; a wrong request is refused before any line."""
    api.slot.check_open()
    check_media_type(request.headers, LINE_TYPES)
    if "idempotency-key" in request.headers:
        raise InvalidParameterError(KEY_OF_A_STREAM)
    caller = caller_of(request.scope)
    api.streams.require_room(caller)
    identity = identity_of(request.scope, request.headers, api.watching.ids)
    return QueryStream(api, caller, identity)


class QueryStream:
    """The reply to one stream of queries, sent line by line."""

    def __init__(self, api: Api, caller: Caller | None, identity: Identity) -> None:
        """Start a stream with nothing read and nothing to send."""
        self._api = api
        self._caller = caller
        self._is_idle = False
        self._idle_at = self._drained_at = math.inf
        self._waiting: asyncio.Timeout | None = None
        self._identity = identity
        limits = api.limits
        self._lines: Channel[Line] = Channel(bytes_max=limits.stream_unread_bytes_max)
        self._replies: Channel[bytes] = Channel(bytes_max=limits.stream_unsent_bytes_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the last line is answered, the client is gone or the server ends."""
        del scope
        with self._api.meter.stream(QUERY_STREAMS), self._api.streams.hold(self._caller):
            await self._serve(receive, send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read(receive))
                watch = tasks.create_task(self._hurry_when_drained())
                tasks.create_task(self._answer())
                # The reader goes first: a client that waits for "100 Continue"
                # gets it before the reply begins.
                await asyncio.sleep(0)
                await self._send(send)
                watch.cancel()
        except* (ClientDisconnect, OSError):
            pass

    async def _read(self, receive: Receive) -> None:
        """Cut the request into lines until it ends."""
        cutter = LineCutter(line_bytes_max=self._api.limits.line_bytes_max)
        more, clock = True, asyncio.get_running_loop().time
        self._idle_at = clock() + self._api.limits.stream_idle_seconds_max
        while more:
            message = await self._received(receive)
            if message is None:
                self._is_idle = not self._api.slot.draining
                break
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            lines = cutter.feed(message.get("body", b""))
            whole = lines if more else lines + cutter.finish()
            await self._lines.put_all(whole)
            if lines:
                self._idle_at = clock() + self._api.limits.stream_idle_seconds_max
        self._lines.close()

    async def _received(self, receive: Receive) -> Message | None:
        """Return the next message, or None where it does not come in time."""
        clock, limits = asyncio.get_running_loop().time, self._api.limits
        if clock() >= self._drained_at + limits.drain_stream_seconds_max:
            return None
        try:
            async with asyncio.timeout_at(self._due()) as self._waiting:
                return await receive()
        except TimeoutError:
            return await _received_by_now(receive) if self._api.slot.draining else None
        finally:
            self._waiting = None

    def _due(self) -> float:
        """Return when the next message is due: soon, once the server is to end."""
        if self._drained_at == math.inf:
            return self._idle_at
        now = asyncio.get_running_loop().time()
        return min(self._idle_at, now + self._api.limits.drain_quiet_seconds)

    async def _hurry_when_drained(self) -> None:
        """Stop waiting for further lines; received lines are refused one by one."""
        await self._api.slot.drained()
        self._drained_at = asyncio.get_running_loop().time()
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(self._due())

    async def _answer(self) -> None:
        """Answer the lines that have come, a window at a time, in order."""
        while lines := await self._lines.take(count_max=self._api.limits.stream_lines_max):
            async for reply in self._answer_window(lines):
                await self._replies.put(reply)
        if self._is_idle:
            limit = self._api.limits.stream_idle_seconds_max
            problem = RequestTimeoutError(IDLE.format(seconds=limit))
            await self._replies.put(encode_replies([problem]))
        self._replies.close()

    async def _send(self, send: Send) -> None:
        headers = [*HEADERS, *rate_limit_headers(self._api.slot, self._caller)]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        while replies := await self._replies.take(count_max=self._api.limits.stream_lines_max):
            body = b"".join(replies)
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _answer_window(self, lines: Sequence[Line]) -> AsyncIterator[bytes]:
        """Yield one line for each of ``lines``, an answer or a problem, as they are known."""
        self._api.observe(Step.VALIDATE, Edge.BEFORE)
        queries, refused = self._parse(lines)
        self._api.observe(Step.VALIDATE, Edge.AFTER)
        async for replies in in_turn(refused, self._answer_queries(queries)):
            self._note_refusals(replies)
            yield encode_replies(replies)

    async def _answer_queries(self, queries: Queries) -> AsyncIterator[Sequence[Reply]]:
        """Yield an outcome for each of ``queries``, in order; without one, nothing."""
        given = 0
        if not queries:
            return
        try:
            async for part in self._api.slot.service.answer_in_turn(queries):
                given += len(part)
                yield part
        except (IntegrityError, UnavailableError) as error:
            yield [error] * (len(queries) - given)

    def _parse(self, lines: Sequence[Line]) -> tuple[Queries, dict[int, Reply]]:
        """Return the queries, and by its place why a line is none; all at one moment."""
        if self._api.slot.draining:
            return NO_QUERIES, dict.fromkeys(range(len(lines)), UnavailableError(DRAINING))
        try:
            service, caller = self._api.slot.service, self._caller
            asker = None if caller is None else caller.found_now().asker
        except (RequestError, UnavailableError, IntegrityError) as refusal:
            return NO_QUERIES, dict.fromkeys(range(len(lines)), refusal)
        schema, with_scores = service.schema, service.precision is not None
        if {bytes}.issuperset(map(type, lines)):
            together = parse_lines_of_numbers(schema, lines, asker=asker)  # type: ignore[arg-type]  # bytes
            if together is not None:
                return together, {}
        parsed = [
            self._overlong()
            if isinstance(line, Overlong)
            else _parsed(schema, line, with_scores=with_scores, asker=asker)
            for line in lines
        ]
        queries = in_columns([each for each in parsed if isinstance(each, Query)])
        places = enumerate(parsed)
        return queries, {place: each for place, each in places if not isinstance(each, Query)}

    def _overlong(self) -> TooLargeError:
        limit = self._api.limits.line_bytes_max
        return TooLargeError(f"this line is longer than {limit} bytes; send shorter lines")

    def _note_refusals(self, replies: Sequence[Reply]) -> None:
        """Log one line for each class of refusal in a window."""
        refusals = {type(each): each for each in replies if not isinstance(each, Answer)}
        if not refusals:
            return
        counts = Counter(map(type, replies))
        for kind, refusal in refusals.items():
            note_refusal(
                self._api,
                "/query/stream",
                refusal,
                self._identity,
                self._caller,
                count=counts[kind],
            )


def _parsed(
    schema: Schema, line: bytes, *, with_scores: bool, asker: Asker | None
) -> Query | RequestError:
    try:
        return parse_line(schema, line, with_scores=with_scores, asker=asker)
    except RequestError as refusal:
        return refusal


async def _received_by_now(receive: Receive) -> Message | None:
    """Return the next message if it came in the turn of the loop in which its time ended."""
    try:
        async with asyncio.timeout(0):
            return await receive()
    except TimeoutError:
        return None
