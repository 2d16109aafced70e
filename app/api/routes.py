"""Every route with the role that it needs: nothing is served that is not listed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.api import reads, v2
from app.api.events import open_events
from app.api.invocations import invoke, ping
from app.api.key_ring import Role
from app.api.metrics import metrics
from app.api.query import answer_query
from app.api.statistics import ask_statistics, statistics_table
from app.api.stream import open_stream

if TYPE_CHECKING:
    from app.api.endpoint import Handler


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
