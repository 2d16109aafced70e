"""Common handling of every route: access control, and errors turned into problem bodies.

A route is a FastAPI route with models for its bodies; the code between its path and its handler
checks access and handles errors. The few routes of queries avoid FastAPI's request handling: see
:class:`BusyRoute`. The service is the object that answers queries while a release is open.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, TypeVar

import msgspec
import structlog
from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from app.answering.answer_query import Observer, observe_nothing
from app.errors import IntegrityError, UnavailableError
from app.http.access.access_control import CALLER, caller_of, key_field
from app.http.access.keys import Role
from app.http.access.rate_limit_headers import rate_limit_headers
from app.http.limits import OpenStreams
from app.http.monitoring.monitoring_options import Watching
from app.http.monitoring.request_ids_and_times import (
    STARTED,
    Identity,
    RequestMeter,
    count_reply,
    identity_of,
    is_named,
    known_identity,
)
from app.http.problems import slug_of
from app.http.wire.headers_and_bodies import NamedRequest

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, MutableMapping

    from starlette.types import Receive, Scope, Send

    from app.answering.hourly_counts import Buckets
    from app.answering.service_slot import ServiceSlot
    from app.http.access.access_control import Access, Caller
    from app.http.access.keys import Keys
    from app.http.limits import Limits

GIVEN_UP: Final = (
    "the server is shutting down and gave this request up; sending the same features again is safe"
)
GIVEN: Final = "conclave.given"
"""The key of a scope with a future that has an error: the query was asked, and gets no answer."""

QUERY_PATH: Final = "/query"
INFER_PATH: Final = "/v2/models/{name}/infer"
INFER: Final = re.compile(r"/v2/models/([^/]+)/infer")
log = structlog.get_logger("conclave.api")


@dataclass(frozen=True, slots=True)
class Api:
    """The parts of the server that every route's handler may use.

    Attributes:
        slot: the container of the service that answers queries; empty until the release is open.
        limits: the maxima of the HTTP layer.
        observe: a function that is called before and after the checks of each query's features.
        refusals: the number of refused requests and stream lines, by the error's short name (slug).
        meter: the counters of requests in progress and of open streams.
        streams: the number of open streams of each API key.
        watching: the options by which requests are recorded for operators.
        keys: the API keys that are accepted; None if no key is needed.

    """

    slot: ServiceSlot
    limits: Limits
    observe: Observer = observe_nothing
    refusals: Counter[str] = field(default_factory=Counter)
    meter: RequestMeter = field(default_factory=RequestMeter)
    watching: Watching = field(default_factory=Watching)
    keys: Keys | None = None
    streams: OpenStreams = field(init=False)

    def __post_init__(self) -> None:
        """Count streams against the limits."""
        object.__setattr__(self, "streams", OpenStreams(self.limits))


Handling = Callable[..., Any]
Handler = Callable[[Api, Request], Awaitable["ASGIApp"]]


ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True, slots=True)
class RouteEdge(Generic[ReplyT]):
    """Common handling of a route for HTTP and gRPC: access control, counters, refusals.

    Attributes:
        api: the parts of the server that the handler may use.
        access: access control by API keys and tokens.
        path: the route's path pattern, as logs show it, without the values that a client sends in
            it.
        role: the role that the route requires; None for a route that is open to all.
        handler: a function that returns the reply, whole or streaming, or raises an error.
        refuse: a function that returns the reply for an error, given the request's path.
        method: the route's HTTP method.
        times: the counts of reply times, by status.

    """

    api: Api
    access: Access
    path: str
    role: Role | None
    handler: Callable[[Api, Request], Awaitable[ReplyT]]
    refuse: Callable[[Exception, str], ReplyT]
    method: str = ""
    times: dict[int, Buckets] = field(default_factory=dict)

    async def reply(self, request: Request) -> ReplyT:
        """Return the route's reply, and record a trace span or log line if configured."""
        watching = self.api.watching
        if watching.tracing is None and not watching.log_requests:
            if is_named(request.headers):
                identity_of(request.scope, request.headers, watching.ids)
            return await self._measured_reply(request)
        identity = identity_of(request.scope, request.headers, watching.ids)
        tracing = watching.tracing
        name = f"{self.method} {self.path}"
        span = None if tracing is None else tracing.begin_request(name, identity)
        reply = await self._measured_reply(request)
        status = _status_of(reply)
        if span is not None and tracing is not None:
            told = {"http.request.method": self.method, "http.route": self.path}
            told["conclave.request_id"] = identity.request_id
            failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR
            tracing.end(span, {**told, "http.response.status_code": status}, failed=failed)
        if watching.log_requests:
            key = key_field(caller_of(request.scope))
            log.info("request_answered", route=name, status=status, **identity.fields, **key)
        return reply

    async def _measured_reply(self, request: Request) -> ReplyT:
        """Make the reply; count its time in the coarse bucket of its route and status."""
        meter = self.api.meter
        meter.in_flight += 1
        started = time.monotonic() if meter.with_times else 0.0
        started = request.scope.get(STARTED, started)
        try:
            reply = await self._reply(request)
        finally:
            meter.in_flight -= 1
        if meter.with_times:
            count_reply(self.times, _status_of(reply), time.monotonic() - started)
        return reply

    async def _reply(self, request: Request) -> ReplyT:
        reply = await self._reply_or_problem(request)
        caller = caller_of(request.scope)
        headers = getattr(reply, "raw_headers", None)
        if caller is not None and headers is not None:
            headers.extend(rate_limit_headers(self.api.slot, caller))
        return reply

    async def _reply_or_problem(self, request: Request) -> ReplyT:
        try:
            if self.role is not None:
                writes = request.method == "POST"
                caller = await self.access.identify(request.headers, self.role, writes=writes)
                request.scope[CALLER] = caller
                if caller is not None:
                    caller.require_role()
            await _raise_given(request.scope)
            return await self.handler(self.api, request)
        except (ClientDisconnect, OSError):
            raise
        except asyncio.CancelledError:
            # The server gave up on draining this request, whose reply has not begun.
            identity = identity_of(request.scope, request.headers, self.api.watching.ids)
            key = key_field(caller_of(request.scope))
            log.warning("reply_cancelled", path=self.path, **identity.fields, **key)
            return self.refuse(UnavailableError(GIVEN_UP), request.url.path)
        except Exception as error:  # noqa: BLE001 -- the edge: an unknown error has fixed text
            identity = identity_of(request.scope, request.headers, self.api.watching.ids)
            if self.role is not None:  # probes ask on and on while a release opens
                note_refusal(self.api, self.path, error, identity, caller_of(request.scope))
            return self.refuse(error, request.url.path)


@dataclass(frozen=True, slots=True)
class Endpoint(RouteEdge[ASGIApp]):
    """The ASGI application that handles one route."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; nothing escapes, so that no server logs a traceback."""
        request = NamedRequest(scope, receive, send)
        try:
            reply = await self.reply(request)
            identity = known_identity(scope)
            await reply(scope, receive, send if identity is None else identity.telling(send))
        except (ClientDisconnect, OSError):
            # A client that hangs up changes nothing: what was decided stays recorded.
            return
        except asyncio.CancelledError:
            # The server gave up on draining this request; it would log a traceback.
            log.warning("reply_cancelled", path=self.path)
        except Exception as error:  # noqa: BLE001 -- the edge; its text may be private
            log.error(  # noqa: TRY400 -- a traceback may be private too
                "reply_aborted", path=self.path, error=type(error).__name__
            )


async def _raise_given(scope: MutableMapping[str, Any]) -> None:
    """Raise what a query is told that was asked past the framework, and has no answer."""
    given = scope.get(GIVEN)
    if given is not None:
        raise await given


def _status_of(reply: object) -> int:
    """Return the status of a reply; a stream begins with no other than 200."""
    # An enumeration is hashed by its name, which takes longer than all that is counted.
    return int(getattr(reply, "status_code", HTTPStatus.OK))


def note_refusal(
    api: Api,
    path: str,
    error: Exception,
    identity: Identity,
    caller: Caller | None,
    *,
    count: int = 1,
) -> None:
    """Count and log a refusal by its error class; an integrity error stops the service."""
    if isinstance(error, IntegrityError):
        api.slot.stop(error)
    api.refusals[slug_of(error)] += count
    api.slot.note_refused(count)
    log.info(
        "request_refused",
        path=path,
        problem=slug_of(error),
        error=type(error).__name__,
        count=count,
        **identity.fields,
        **key_field(caller),
    )


async def _api_of(request: Request) -> Api:
    api: Api = request.app.api
    return api


CurrentApi = Annotated[Api, Depends(_api_of)]
"""The application's, in the signature of a handler."""


class Document(JSONResponse):
    """A JSON reply, encoded as fast as the answers to queries."""

    def render(self, content: object) -> bytes:
        """Return the JSON bytes of the reply."""
        return msgspec.json.encode(content)


class FreshDocument(Document):
    """A JSON reply with the instruction not to cache it, since it changes."""

    def __init__(
        self, content: object, status_code: int = 200, background: BackgroundTask | None = None
    ) -> None:
        """Make a JSON reply with the header ``cache-control: no-store``."""
        super().__init__(content, status_code, {"cache-control": "no-store"}, None, background)


class EdgeRoute(APIRoute):
    """A FastAPI route with the common access control and error handling.

    Attributes:
        role: the role that the route requires; None for a route that is open to all.
        method: the declared HTTP method; a GET route also answers HEAD.

    """

    role: ClassVar[Role | None]

    def __init__(self, path: str, endpoint: Handling, **options: Any) -> None:  # noqa: ANN401 -- FastAPI's
        """Declare a route; OpenAPI shows its name and the first line of its handler's docstring."""
        line = (endpoint.__doc__ or "").partition("\n")[0].rstrip(".")
        named = {"operation_id": endpoint.__name__, "summary": line, "response_description": line}
        super().__init__(path, endpoint, **options | named)
        methods = self.methods or set()
        (self.method,) = methods
        if self.method == "GET":
            methods.add("HEAD")

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Any]]:
        """Return a function by which FastAPI calls this route's endpoint directly."""
        self._by_framework = super().get_route_handler()
        path = self.path

        async def edge(request: Request) -> Endpoint:
            endpoint: Endpoint = request.app.endpoints[path]
            return endpoint

        return edge

    @property
    def handler(self) -> Handler:
        """The handler that FastAPI calls with the parameters that it has read."""

        async def handle(api: Api, request: Request) -> ASGIApp:
            del api
            return await self._by_framework(request)

        return handle


class OpenRoute(EdgeRoute):
    """A route that needs no API key."""

    role = None


class QueryRoute(EdgeRoute):
    """A route for clients that send queries; it needs the role ``query``."""

    role = Role.QUERY


class ReadRoute(EdgeRoute):
    """A route for readers of the public state; it needs the role ``read``."""

    role = Role.READ


class AdminRoute(EdgeRoute):
    """A route for operators; it needs the role ``admin``."""

    role = Role.ADMIN


class BusyRoute(QueryRoute):
    """A query route without FastAPI's request handling, for speed.

    Between the web server and the service, a query takes 18 microseconds of processor time in this
    way, 36 with FastAPI's router, and 89 as an ordinary route whose reply FastAPI checks and
    encodes. Access control, error handling and counts are the same, and the OpenAPI document
    contains the models. A stream of queries uses the router, once for all its lines.
    """

    @property
    def handler(self) -> Handler:
        """The route's own handler, which is called without FastAPI."""
        return self.endpoint


def router_of(kind: type[EdgeRoute]) -> APIRouter:
    """Return a FastAPI router for routes that need one role."""
    return APIRouter(route_class=kind, default_response_class=FreshDocument)


def busy_endpoint(scope: Scope, endpoints: Mapping[str, Endpoint]) -> Endpoint | None:
    """Return the endpoint of a request that sends queries for labels; None for other requests.

    The function also sets the path parameters in ``scope``.

    Args:
        scope: the ASGI scope of any request.
        endpoints: the endpoints, by the path of their route.

    """
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    path = scope["path"]
    if path == QUERY_PATH:
        return endpoints[path]
    found = INFER.fullmatch(path)
    if found is None:
        return None
    scope["path_params"] = {"name": found[1]}
    return endpoints[INFER_PATH]
