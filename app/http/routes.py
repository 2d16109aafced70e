"""The list of all routes, in the order in which the router tries them."""

from __future__ import annotations

from typing import Final

from app.http import budget_events, read_routes
from app.http.monitoring import metrics
from app.http.protocols import mlflow, v2
from app.http.query import query_route, statistics_route, stream
from app.http.route_handling import EdgeRoute

ROUTERS: Final = (
    query_route.router,
    stream.router,
    v2.infer_router,
    mlflow.router,
    read_routes.read_router,
    budget_events.router,
    read_routes.admin_router,
    read_routes.query_router,
    statistics_route.router,
    v2.query_router,
    metrics.router,
    read_routes.probe_router,
    v2.probe_router,
)
# The busiest come first; a route whose path is missing ends the start.
PATHS: Final = (
    "/query",
    "/query/stream",
    "/v2/models/{name}/infer",
    "/invocations",
    "/budget",
    "/budget/events",
    "/budget/outlook",
    "/budget/history",
    "/parameters",
    "/ledger",
    "/ledger/head",
    "/ledger/storage",
    "/keys/usage",
    "/classifier",
    "/statistics",
    "/statistics/table",
    "/schema",
    "/server",
    "/v2",
    "/v2/models/{name}",
    "/ping",
    "/metrics",
    "/healthz",
    "/readyz",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/{name}/ready",
)
ROUTES: Final = tuple(
    sorted(
        (route for router in ROUTERS for route in router.routes if isinstance(route, EdgeRoute)),
        key=lambda route: PATHS.index(route.path),
    )
)
