"""Every route with the role that it needs: nothing is served that is not listed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.http import reads
from app.http.access.keys import Role
from app.http.budget_events import open_events
from app.http.protocols import v2
from app.http.protocols.mlflow import invoke, ping
from app.http.query.query_route import answer_query
from app.http.query.statistics_route import ask_statistics, statistics_table
from app.http.query.stream import open_stream
from app.http.watching.metrics import metrics

if TYPE_CHECKING:
    from app.http.endpoint import Handler


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """One method of one path; a role of None is open to everyone who can connect."""

    method: str
    path: str
    role: Role | None
    handler: Handler


ROUTES: Final = (
    # The router tries them in this order, so the busiest come first.
    RouteEntry("POST", "/query", Role.QUERY, answer_query),
    RouteEntry("POST", "/query/stream", Role.QUERY, open_stream),
    RouteEntry("POST", "/v2/models/{name}/infer", Role.QUERY, v2.infer),
    RouteEntry("POST", "/invocations", Role.QUERY, invoke),
    RouteEntry("GET", "/budget", Role.READ, reads.budget),
    RouteEntry("GET", "/budget/events", Role.READ, open_events),
    RouteEntry("GET", "/budget/outlook", Role.READ, reads.outlook),
    RouteEntry("GET", "/parameters", Role.READ, reads.parameters),
    RouteEntry("GET", "/ledger", Role.ADMIN, reads.ledger),
    RouteEntry("GET", "/ledger/head", Role.READ, reads.ledger_head),
    RouteEntry("GET", "/classifier", Role.QUERY, reads.classifier),
    RouteEntry("POST", "/statistics", Role.QUERY, ask_statistics),
    RouteEntry("GET", "/statistics/table", Role.QUERY, statistics_table),
    RouteEntry("GET", "/schema", Role.QUERY, reads.schema),
    RouteEntry("GET", "/v2", Role.QUERY, v2.server),
    RouteEntry("GET", "/v2/models/{name}", Role.QUERY, v2.model),
    RouteEntry("GET", "/ping", Role.QUERY, ping),
    RouteEntry("GET", "/metrics", Role.READ, metrics),
    RouteEntry("GET", "/healthz", None, reads.alive),
    RouteEntry("GET", "/readyz", None, reads.ready),
    RouteEntry("GET", "/v2/health/live", None, v2.live),
    RouteEntry("GET", "/v2/health/ready", None, v2.server_ready),
    RouteEntry("GET", "/v2/models/{name}/ready", None, v2.model_ready),
)
