"""``POST /query`` with a head that was seen before: one vector, one answer, no framework.

What a refusal would say is left to the ordinary way, which finds it again: nothing is counted,
logged or charged here before the query is in the queue.  A decision that is no answer goes
there too, as it came.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.answering.queries import IdentifiedQueries, alone
from app.answering.queue import Decided
from app.answering.types import Answer, Edge, Step, observe_nothing
from app.errors import ConclaveError
from app.http.access.door import Caller
from app.http.access.keys import FoundKey, Role
from app.http.access.rate_limits import rate_limit_headers
from app.http.query.query_body import parse_body, parse_numbers_alone
from app.http.query.query_route import GIVEN
from app.http.watching.observability import STARTED, count_reply
from app.http.wire.bodies import JSON_TYPES, check_media_type
from app.http.wire.fast import NamedHeaders

if TYPE_CHECKING:
    from starlette.types import Scope

    from app.answering.answers import Told
    from app.answering.queries import Queries
    from app.answering.service import ConclaveService
    from app.answering.types import Asker
    from app.http.endpoint import Endpoint
    from app.http.wire.plain_requests import Exchange

_START: Final = b"POST /query HTTP/1.1\r\n"
_HEADERS: Final = b"content-type: application/json\r\ncontent-length: %d\r\n"
_encode: Final = msgspec.json.Encoder().encode


class Admitted:
    """What is known of every request with one head: who sends it.

    Attributes:
        caller: by its key; None on a server without keys.

    """

    __slots__ = ("caller",)

    def __init__(self, caller: Caller | None) -> None:
        """Keep what was found."""
        self.caller = caller


class Asked:
    """A query under way.

    Attributes:
        service: that was asked.
        caller: whose query it is; None on a server without keys.
        started: a moment of the monotonic clock; 0 where no times are counted.
        queries: the query, once it waits for the writer.

    """

    __slots__ = ("caller", "queries", "service", "started")

    def __init__(self, service: ConclaveService, caller: Caller | None, started: float) -> None:
        """Begin with what is asked of whom."""
        self.service = service
        self.caller = caller
        self.started = started
        self.queries: IdentifiedQueries | None = None


class PlainQueries:
    """Answers requests of a known form, as the route's endpoint does."""

    start: Final = _START

    def __init__(self, endpoint: Endpoint) -> None:
        """Answer in place of an endpoint, with its counters."""
        self._endpoint = endpoint
        self._api = endpoint.api
        self._observe = None if self._api.observe is observe_nothing else self._api.observe

    @property
    def are_watched(self) -> bool:
        """Whether each request has a line or a span, which the framework's edge makes."""
        watching = self._api.watching
        return watching.log_requests or watching.tracing is not None

    def admit(self, scope: Scope) -> Admitted | None:
        """Return the sender that a head names; None where it is refused, or has to be looked at."""
        headers = NamedHeaders(scope["headers"])
        if int(headers["content-length"]) > self._api.limits.body_bytes_max:
            return None
        try:
            check_media_type(headers, JSON_TYPES)
            caller = self._endpoint.access.identify_by_key(headers, Role.QUERY, writes=True)
            if caller is None:
                return Admitted(None)
            # A token ends some time, or is withdrawn.
            if not isinstance(caller, Caller) or not isinstance(caller.found, FoundKey):
                return None
            caller.require_role()
        except ConclaveError:
            return None
        return Admitted(caller)

    def ask(self, exchange: Exchange) -> bool:
        """Take a query; False where the ordinary way refuses it, or has to look."""
        api = self._api
        started = time.monotonic() if api.meter.with_times else 0.0
        try:
            service = api.slot.service
            caller, asker = _present(exchange.head.allowed)
            queries = self._parsed(service, exchange.body, asker)
            told = service.answer_at_once(queries)
            if told is None:
                return False
            exchange.kept = asked = Asked(service, caller, started)
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
        """Reply to a query with the decision on it."""
        asked: Asked = exchange.kept
        if isinstance(result, Decided) and asked.queries is not None:
            try:
                told: object = asked.service.told_alone(asked.queries, result.decisions)
            except Exception as error:  # noqa: BLE001 -- raised again where it is contained
                told = error
        else:
            told = result
        self._reply(exchange, told)

    def _parsed(self, service: ConclaveService, body: bytes, asker: Asker | None) -> Queries:
        """Return the query of a body; raises as :func:`parse_body` does."""
        if self._observe is not None:
            self._observe(Step.VALIDATE, Edge.BEFORE)
        queries = parse_numbers_alone(service.schema, body, asker=asker)
        if queries is None:
            with_scores = service.precision is not None
            query = parse_body(service.schema, body, None, with_scores=with_scores, asker=asker)
            queries = alone(query)
        if self._observe is not None:
            self._observe(Step.VALIDATE, Edge.AFTER)
        return queries

    def _reply(self, exchange: Exchange, told: Told | object) -> None:
        """Write an answer; let the endpoint say anything else."""
        asked: Asked = exchange.kept
        self._api.meter.in_flight -= 1
        if not isinstance(told, Answer):
            exchange.go_on({GIVEN: _given(told), STARTED: asked.started})
            return
        body = _encode(told)
        headers = _HEADERS % len(body)
        if asked.caller is not None:
            for name, text in rate_limit_headers(self._api.slot, asked.caller):
                headers += b"%b: %b\r\n" % (name, text)
        if self._api.meter.with_times:
            count_reply(self._endpoint.times, 200, time.monotonic() - asked.started)
        exchange.reply(headers, body)


def _present(admitted: object) -> tuple[Caller | None, Asker | None]:
    """Return the sender as its key is now; raises as :meth:`Caller.found_now` does."""
    caller: Caller | None = admitted.caller if isinstance(admitted, Admitted) else None
    if caller is None:
        return None, None
    found = caller.found_now()
    return Caller(found, caller.needed, caller.now), found.asker


def _given(told: object) -> asyncio.Future[object]:
    """Return a future that has what the endpoint is to say."""
    given: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    if isinstance(told, asyncio.CancelledError):
        given.cancel()
    else:
        given.set_result(told)
    return given
