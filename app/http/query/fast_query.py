"""A fast path for queries of one vector, whose request headers were seen before.

The fast path avoids the web framework. If a query would be refused, the ordinary path handles it
from the start, so nothing is counted, logged or charged here before the query is in the queue of
the writer (the one thread that draws the answers to queries). If the writer gives no answer, the
ordinary path sends the refusal.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.answering.answer_query import Edge, Step, observe_nothing
from app.answering.answers import Answer
from app.answering.queries import IdentifiedQueries, alone
from app.answering.queue import Decided
from app.errors import ConclaveError
from app.http.access.access_control import Caller
from app.http.access.keys import FoundKey, Role
from app.http.access.rate_limit_headers import rate_limit_headers
from app.http.monitoring.request_ids_and_times import STARTED, count_reply
from app.http.query.query_body import parse_body, parse_numbers_alone
from app.http.route_handling import GIVEN
from app.http.wire.headers_and_bodies import JSON_TYPES, NamedHeaders, check_media_type

if TYPE_CHECKING:
    from starlette.types import Scope

    from app.answering.answers import Told
    from app.answering.queries import Asker, Queries
    from app.answering.service import ConclaveService
    from app.http.route_handling import Endpoint
    from app.http.wire.fast_requests import Exchange

_HEADERS: Final = b"content-type: application/json\r\ncontent-length: %d\r\n"
_encode: Final = msgspec.json.Encoder().encode


class Admitted:
    """The checked sender and properties of all requests with the same header bytes.

    Attributes:
        path: the path of the requests.
        caller: the sender, by its API key; None on a server without API keys.
        is_plain: whether to try to answer these requests without the web framework.

    """

    __slots__ = ("caller", "is_plain", "path")

    def __init__(self, path: str, caller: Caller | None) -> None:
        """Store the path and the sender."""
        self.path = path
        self.caller = caller
        self.is_plain = True


class Asked:
    """A query that is being answered on the fast path, without the web framework.

    Attributes:
        service: the service that answers the query.
        caller: the sender of the query; None on a server without API keys.
        started: the time when the request arrived, on a monotonic clock; 0 if times are not
            counted.
        form: the parsed request, if the form of the reply depends on the request; else None.
        queries: the query, once it waits for the writer.

    """

    __slots__ = ("caller", "form", "queries", "service", "started")

    def __init__(
        self, service: ConclaveService, caller: Caller | None, started: float, form: object
    ) -> None:
        """Store the service, the sender and the start time."""
        self.service = service
        self.caller = caller
        self.started = started
        self.form = form
        self.queries: IdentifiedQueries | None = None


class PlainQueries:
    """The fast path of ``POST /query``, without the web framework but with the same replies."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Answer in place of ``endpoint``, and increment its counters."""
        self._endpoint = endpoint
        self._api = endpoint.api
        self._is_observed = self._api.observe is not observe_nothing

    # -- what differs by the protocol ------------------------------------------

    def is_path(self, path: str) -> bool:
        """Return whether requests to a path may be answered without the web framework."""
        return path == self._endpoint.path

    def parse(
        self, service: ConclaveService, admitted: Admitted, body: bytes, asker: Asker | None
    ) -> tuple[Queries, object] | None:
        """Return the single query in a body; None for a body with several rows.

        The second item of the result is the parsed request if the form of the reply depends on it,
        and otherwise None.

        Raises:
            RequestError: the request is refused, as by the ordinary route.

        """
        del admitted
        queries = parse_numbers_alone(service.schema, body, asker=asker)
        if queries is None:
            with_scores = service.precision is not None
            query = parse_body(service.schema, body, None, with_scores=with_scores, asker=asker)
            queries = alone(query)
        return queries, None

    def document(self, asked: Asked, answer: Answer) -> bytes:
        """Return the body of the reply: the answer as JSON."""
        del asked
        return _encode(answer)

    # -- of a request ----------------------------------------------------------

    def admit(self, scope: Scope) -> Admitted | None:
        """Return the checked sender of a request by its headers; None if FastAPI must handle it."""
        headers, api = NamedHeaders(scope["headers"]), self._api
        is_watched = api.watching.log_requests or api.watching.tracing is not None
        is_long = int(headers["content-length"]) > api.limits.body_bytes_max
        if is_watched or is_long or not self.is_path(scope["path"]):
            return None
        try:
            check_media_type(headers, JSON_TYPES)
            caller = self._endpoint.access.identify_by_key(headers, Role.QUERY, writes=True)
            if caller is not None:
                # A token ends some time, or is withdrawn.
                if not isinstance(caller, Caller) or not isinstance(caller.found, FoundKey):
                    return None
                caller.require_role()
        except ConclaveError:
            return None
        return Admitted(scope["path"], caller)

    def ask(self, exchange: Exchange) -> bool:
        """Queue a query; return False if the web framework must handle the request."""
        api, admitted = self._api, exchange.head.allowed
        started = time.monotonic() if api.meter.with_times else 0.0
        try:
            if not (isinstance(admitted, Admitted) and admitted.is_plain):
                return False
            service = api.slot.service
            caller, asker = _present(admitted)
            parse = self._parse_observed if self._is_observed else self.parse
            parsed = parse(service, admitted, exchange.body, asker)
            if parsed is None:
                admitted.is_plain = False
                return False
            queries, form = parsed
            told = service.answer_at_once(queries)
            if told is None:
                return False
            exchange.kept = asked = Asked(service, caller, started, form)
            api.meter.in_flight += 1
            if isinstance(told, IdentifiedQueries):
                asked.queries = told
                service.enqueue_alone(told, exchange)
            else:
                self._reply(exchange, told)
        except Exception:  # noqa: BLE001 -- whatever it is happens again where it is contained
            if exchange.kept is not None and not exchange.done():
                api.meter.in_flight -= 1
            return False
        return True

    def settle(self, exchange: Exchange, result: object) -> None:
        """Send the reply to a query after the writer has answered or refused it."""
        asked: Asked = exchange.kept
        if isinstance(result, Decided) and asked.queries is not None:
            try:
                told: object = asked.service.told_alone(asked.queries, result.decisions)
            except Exception as error:  # noqa: BLE001 -- raised again where it is contained
                told = error
        else:
            told = result
        self._reply(exchange, told)

    def _parse_observed(
        self, service: ConclaveService, admitted: Admitted, body: bytes, asker: Asker | None
    ) -> tuple[Queries, object] | None:
        """Do what :meth:`parse` does, between the two sides of its step."""
        self._api.observe(Step.VALIDATE, Edge.BEFORE)
        parsed = self.parse(service, admitted, body, asker)
        self._api.observe(Step.VALIDATE, Edge.AFTER)
        return parsed

    def _reply(self, exchange: Exchange, told: Told | object) -> None:
        """Write an answer; let the endpoint say anything else."""
        asked: Asked = exchange.kept
        self._api.meter.in_flight -= 1
        if not isinstance(told, Answer):
            exchange.go_on({GIVEN: _given(told), STARTED: asked.started})
            return
        body = self.document(asked, told)
        headers = _HEADERS % len(body)
        if asked.caller is not None:
            for name, text in rate_limit_headers(self._api.slot, asked.caller):
                headers += b"%b: %b\r\n" % (name, text)
        if self._api.meter.with_times:
            count_reply(self._endpoint.times, 200, time.monotonic() - asked.started)
        exchange.reply(headers, body)


def _present(admitted: Admitted) -> tuple[Caller | None, Asker | None]:
    """Return the sender as its key is now; raises as :meth:`Caller.found_now` does."""
    caller = admitted.caller
    if caller is None:
        return None, None
    found = caller.found_now()
    return Caller(found, caller.needed, caller.now), found.asker


def _given(told: object) -> asyncio.Future[object]:
    """Return a future that has what the endpoint is to raise."""
    given: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    if isinstance(told, asyncio.CancelledError):
        given.cancel()
    else:
        given.set_result(told)
    return given
