"""``GET /metrics``: public quantities for Prometheus.

A registry of its own holds what is listed and nothing else: no processor time, memory,
garbage or raw time of the deciding process, and no label that tells clients apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response

from app.errors import IntegrityError, UnavailableError
from app.http.endpoint import Api, CurrentApi, ReadRoute, router_of
from app.http.openapi.declaring import gives
from app.http.openapi.read_models import Metrics
from app.http.watching.metric import Facts
from app.http.watching.process_metrics import PROCESS_METRICS
from app.http.watching.release_metrics import RELEASE_METRICS

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

METRICS: Final = (*RELEASE_METRICS, *PROCESS_METRICS)
router = router_of(ReadRoute)


class _Public(Collector):
    """Gives the metrics of one moment."""

    def __init__(self, facts: Facts) -> None:
        """Keep the facts."""
        self._facts = facts

    def collect(self) -> Iterator[Family]:
        """Yield every metric."""
        return (metric.family(self._facts) for metric in METRICS)


def exposition(facts: Facts) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Public(facts))
    return generate_latest(registry)


@router.get("/metrics", response_class=Response, responses=gives({"text/plain": Metrics}))
async def metrics(api: CurrentApi) -> Response:
    """Give the public quantities to Prometheus, whatever state the server is in."""
    return Response(
        exposition(_facts(api)),
        headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4, "cache-control": "no-store"},
    )


def _facts(api: Api) -> Facts:
    """Return what is public now; of a release that opens or has stopped, nothing."""
    state = api.slot.state
    try:
        service = api.slot.service
        budget, noted = service.budget(), service.noted_sequence()
    except (UnavailableError, IntegrityError):
        return Facts(state, api.meter, api.refusals)
    return Facts(state, api.meter, api.refusals, budget, noted, service.workload())
