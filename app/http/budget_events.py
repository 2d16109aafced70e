"""``GET /budget/events``: the budget as server-sent events, on every change.

With ``?outlook=true`` the stream also contains the outlook (a forecast of when the budget is used
up), as events with the name ``outlook``.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from fastapi import Query
from pydantic import BeforeValidator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.answering.service import Budget
from app.errors import IntegrityError, RequestError, UnavailableError
from app.http.access.access_control import Caller, caller_of
from app.http.monitoring.request_ids_and_times import EVENT_STREAMS
from app.http.openapi.body_declarations import gives
from app.http.openapi.refusal_replies import refused
from app.http.problems import InvalidParameterError
from app.http.route_handling import Api, CurrentApi, ReadRoute, router_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

KEEP_ALIVE: Final = b": keep-alive\n\n"
HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
OUTLOOK_SHAPE: Final = "outlook is true or false"
EVENT_STREAM: Final = "text/event-stream"
router = router_of(ReadRoute)


def _true_or_false(text: str) -> bool:
    if text not in {"true", "false"}:
        raise InvalidParameterError(OUTLOOK_SHAPE)
    return text == "true"


WithOutlook = Annotated[
    bool,
    Query(
        description="also send events named outlook, of GET /budget/outlook, after changes and "
        "every few seconds"
    ),
    BeforeValidator(_true_or_false),
]


@router.get(
    "/budget/events",
    response_model=None,
    response_class=Response,
    responses=gives({EVENT_STREAM: Budget}) | refused(InvalidParameterError(OUTLOOK_SHAPE)),
)
async def open_events(
    api: CurrentApi, request: Request, *, outlook: WithOutlook = False
) -> EventStream:
    """Stream the body of ``GET /budget`` as events, now and after every change."""
    api.slot.check_open()
    is_head = request.method == "HEAD"
    caller = caller_of(request.scope)
    api.streams.require_room(caller)
    return EventStream(api, caller, head_only=is_head, with_outlook=outlook)


class EventStream(Response):
    """The reply to one subscriber: the budget now, and again after each change."""

    def __init__(
        self, api: Api, caller: Caller | None, *, head_only: bool, with_outlook: bool
    ) -> None:
        """Stream the budget of ``api``; a HEAD request gets the headers alone."""
        super().__init__()
        self._api = api
        self._caller = caller
        self._head_only = head_only
        self._with_outlook = with_outlook
        self._changed = asyncio.Event()
        self._outlook_changed = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client is gone, the service closes or the server drains."""
        del scope
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": HEADERS})
        if not self._head_only:
            with self._api.meter.stream(EVENT_STREAMS), self._api.streams.hold(self._caller):
                await self._send_until_the_end(receive, send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_until_the_end(self, receive: Receive, send: Send) -> None:
        """Send beside what can end the stream; whichever ends first ends the rest."""
        async with self._api.slot.service.subscribe() as changes:
            tasks = [
                asyncio.create_task(self._send_events(send)),
                asyncio.create_task(self._note_changes(changes)),
                asyncio.create_task(_wait_for_hang_up(receive)),
                asyncio.create_task(self._api.slot.drained()),
            ]
            if self._with_outlook:
                tasks.append(asyncio.create_task(self._send_outlooks(send)))
            try:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _cancel(tasks)
        for task in ended:
            task.result()

    async def _note_changes(self, changes: AsyncIterator[None]) -> None:
        async for _ in changes:
            self._changed.set()
            self._outlook_changed.set()

    async def _send_events(self, send: Send) -> None:
        """Send until a release that stopped has no budget to show, or the key opens nothing."""
        limits = self._api.limits
        event = await self._event()
        while event:
            await send({"type": "http.response.body", "body": event, "more_body": True})
            # Changes that come closer together than this share one event.
            await asyncio.sleep(limits.event_interval_seconds)
            try:
                await asyncio.wait_for(self._changed.wait(), limits.keep_alive_seconds)
            except TimeoutError:
                event = KEEP_ALIVE
            else:
                self._changed.clear()
                event = await self._event()
            if not self._is_allowed():
                return

    def _is_allowed(self) -> bool:
        """Return whether the key still opens this route: a stream may outlive it."""
        try:
            if self._caller is not None:
                self._caller.found_now()
        except RequestError:
            return False
        return True

    async def _send_outlooks(self, send: Send) -> None:
        """Send after changes, and at times without one: rates fall while nothing is asked."""
        limits = self._api.limits
        while event := await self._outlook():
            await send({"type": "http.response.body", "body": event, "more_body": True})
            await asyncio.sleep(limits.outlook_interval_seconds)
            if not self._is_allowed():
                return
            try:
                await asyncio.wait_for(self._outlook_changed.wait(), limits.outlook_seconds_max)
            except TimeoutError:
                continue
            self._outlook_changed.clear()

    async def _event(self) -> bytes:
        """Return the budget; as this server knows it while the ledger cannot be read."""
        try:
            service = self._api.slot.service
            try:
                budget = await service.read_budget()
            except UnavailableError:
                budget = service.budget()
            return _named(b"budget", budget.model_dump())
        except IntegrityError:
            return b""

    async def _outlook(self) -> bytes:
        try:
            return _named(b"outlook", await self._api.slot.service.outlook())
        except UnavailableError:
            return KEEP_ALIVE
        except IntegrityError:
            return b""


def _named(name: bytes, document: object) -> bytes:
    return b"event: " + name + b"\ndata: " + msgspec.json.encode(document) + b"\n\n"


async def _wait_for_hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    raise ClientDisconnect


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
