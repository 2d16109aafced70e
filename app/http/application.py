"""The HTTP application: routes, access control, and the form of every refusal.

The service is the object that answers queries; it exists only while a release is open.
"""

from __future__ import annotations

import asyncio
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from app.answering.answer_query import Observer, observe_nothing
from app.http.access.access_control import Access
from app.http.limits import Limits
from app.http.monitoring.monitoring_options import Watching
from app.http.monitoring.request_ids_and_times import RequestMeter, identity_of
from app.http.openapi.openapi_document import build_document
from app.http.openapi.swagger_page import swagger_responses
from app.http.problems import from_router, problem_response
from app.http.protocols.v2_fast import PlainInferences
from app.http.query.fast_query import PlainQueries
from app.http.route_handling import (
    INFER_PATH,
    QUERY_PATH,
    Api,
    EdgeRoute,
    Endpoint,
    OpenRoute,
    ReadRoute,
    busy_endpoint,
)
from app.http.routes import ROUTES
from app.http.version import installed_version

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Lifespan, Receive, Scope, Send

    from app.answering.service_slot import ServiceSlot

DEFAULT_LIMITS: Final = Limits()
UNWATCHED: Final = Watching()
DOCUMENT_PATH: Final = "/openapi.json"


class ConclaveApplication(FastAPI):
    """A FastAPI application in which every route has access control and error handling.

    Attributes:
        api: the parts of the server that every handler may use.
        endpoints: the handling of each route, by its path.
        plain: the fast paths that answer simple queries directly on the web server's connections.

    """

    api: Api
    endpoints: Mapping[str, Endpoint]
    plain: Sequence[PlainQueries]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; a query goes to its endpoint past the router."""
        endpoint = busy_endpoint(scope, self.endpoints)
        if endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            await endpoint(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of all routes."""
        return build_document(with_keys=self.api.keys is not None)

    def setup(self) -> None:
        """Add the routes that serve the OpenAPI document.

        Building the document takes a tenth of a second. It is therefore built in a thread, so that
        queries are answered meanwhile, and at the first request for it, because most servers are
        never asked for it.
        """

        async def document(_: Request) -> JSONResponse:
            return JSONResponse(await asyncio.to_thread(self.openapi))

        self.add_route(DOCUMENT_PATH, document, include_in_schema=False)


def create_application(
    slot: ServiceSlot,
    access: Access,
    *,
    limits: Limits = DEFAULT_LIMITS,
    pages: Mapping[str, Response] | None = None,
    lifespan: Lifespan[FastAPI] | None = None,
    observe: Observer = observe_nothing,
    watching: Watching = UNWATCHED,
) -> ConclaveApplication:
    """Return the web application for a service that may not be open yet.

    Args:
        slot: the container of the service; while the release opens, the container is empty, and
            requests get 503 ``opening``.
        access: access control by API keys and tokens.
        limits: the maxima of the HTTP layer.
        pages: the dashboard: a reply for each of its paths; None serves no dashboard.
        lifespan: a context manager that runs around serving, e.g. to open and close the release.
        observe: a function that is called before and after the checks of each query's features;
            crash tests end the process in it.
        watching: the options by which requests are recorded for operators.

    """
    meter = RequestMeter(with_times=watching.times)
    api = Api(slot, limits, observe, meter=meter, watching=watching, keys=access.keys)
    dashboard = _page_routes(ReadRoute, pages or {})
    # The document is open to all, and so is the page that shows it.
    routes = [*ROUTES, *dashboard, *_page_routes(OpenRoute, swagger_responses())]
    application = ConclaveApplication(
        title="Conclave",
        version=installed_version(),
        routes=[*routes],
        exception_handlers={HTTPException: _refuser(api)},
        lifespan=lifespan,
        redirect_slashes=False,
        # The library's spans and logs have raw latency and exception text, which would
        # leave the promise of docs/guarantee.md; ours are in app/http/monitoring/tracing.py.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    application.api = api
    application.endpoints = {route.path: _endpoint(api, access, route) for route in routes}
    application.plain = (
        PlainQueries(application.endpoints[QUERY_PATH]),
        PlainInferences(application.endpoints[INFER_PATH]),
    )
    return application


def _endpoint(api: Api, access: Access, route: EdgeRoute) -> Endpoint:
    return Endpoint(
        api,
        access,
        route.path,
        route.role,
        route.handler,
        problem_response,
        route.method,
        api.meter.route(route.method, route.path),
    )


def _page_routes(kind: type[EdgeRoute], pages: Mapping[str, Response]) -> list[EdgeRoute]:
    return [
        kind(path, _page(reply), methods=["GET"], include_in_schema=False)
        for path, reply in pages.items()
    ]


def _page(reply: Response) -> Callable[[], Coroutine[None, None, Response]]:
    async def page() -> Response:
        """Return a static file of the dashboard; its script fetches every figure."""
        own = copy(reply)
        own.raw_headers = [*reply.raw_headers]  # those of the key's limits are added to them
        return own

    return page


def _refuser(api: Api) -> Callable[[Request, Exception], Coroutine[None, None, Response]]:
    """Return what answers the router's own refusals in the one error shape."""

    async def refuse(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        reply = problem_response(from_router(error), request.url.path)
        identity = identity_of(request.scope, request.headers, api.watching.ids)
        reply.raw_headers.extend(identity.headers)
        return reply

    return refuse
