"""``GET /metrics``: the public quantities of ``GET /budget``, for Prometheus.

A registry of its own holds what is listed here and nothing else: no processor time,
memory, garbage or latency of the deciding process, and no label that tells clients
apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response

from app.api.problems import INTERNAL_SLUG, KINDS
from app.errors import RequestError

if TYPE_CHECKING:
    from prometheus_client import Metric as Family
    from starlette.requests import Request

    from app.api.endpoint import Api

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
PHASES: Final = ("ensemble", "classifier", "halted")
SLUGS: Final = tuple(
    sorted({getattr(kind, "slug", INTERNAL_SLUG) for kind in KINDS if kind is not RequestError})
)
Samples = Iterable[tuple[tuple[str, ...], float | None]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public at one moment.

    Attributes:
        budget: the body of ``GET /budget``.
        noted_sequence: the entry that the head file notes; None where none is kept.
        refusals: requests and lines refused by this process, by slug.

    """

    budget: Mapping[str, Any]
    noted_sequence: int | None
    refusals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: as it is exposed; a counter's ends with ``_total``.
        kind: counter or gauge.
        help: what it is, in a clause.
        read: gives a value for each tuple of label values; None where there is none.
        labels: names of the labels.

    """

    name: str
    kind: str
    help: str
    read: Callable[[Facts], Samples]
    labels: tuple[str, ...] = ()

    def family(self, facts: Facts) -> Family:
        """Return the metric with its values."""
        kind = CounterMetricFamily if self.kind == COUNTER else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in self.read(facts):
            if value is not None:
                family.add_metric(labels, value)
        return family


def _plain(*path: str) -> Callable[[Facts], Samples]:
    """Return what reads one number of the budget."""

    def read(facts: Facts) -> Samples:
        found: Any = facts.budget
        for key in path:
            found = found[key]
        return [((), found)]

    return read


def _composed(member: str) -> Callable[[Facts], Samples]:
    """Return what reads one number of the composed budget, where there is one."""

    def read(facts: Facts) -> Samples:
        composed = facts.budget["composed"]
        return [] if composed is None else [((), composed[member])]

    return read


def _shares(member: str, unit: str) -> Callable[[Facts], Samples]:
    """Return what reads the epsilon or delta of every share in a list of the budget."""

    def read(facts: Facts) -> Samples:
        return [((share["mechanism"],), share[unit]) for share in facts.budget[member]]

    return read


def _phase(facts: Facts) -> Samples:
    return [((phase,), phase == facts.budget["phase"]) for phase in PHASES]


def _refusals(facts: Facts) -> Samples:
    return [((slug,), facts.refusals.get(slug, 0)) for slug in SLUGS]


METRICS: Final = (
    Metric(
        "conclave_release_info",
        GAUGE,
        "Always 1, with the name of the release",
        lambda facts: [((facts.budget["release"]["name"],), 1)],
        ("name",),
    ),
    Metric(
        "conclave_phase",
        GAUGE,
        "Whether the release is in the phase, 1 or 0",
        _phase,
        ("phase",),
    ),
    Metric(
        "conclave_switching",
        GAUGE,
        "Whether the published classifier is being made, 1 or 0",
        _plain("switching"),
    ),
    Metric(
        "conclave_student",
        GAUGE,
        "Whether a student answers, or will once it is trained, 1 or 0",
        _plain("student"),
    ),
    Metric("conclave_epsilon_promised", GAUGE, "Epsilon of the whole release", _plain("epsilon")),
    Metric("conclave_delta_promised", GAUGE, "Delta of the whole release", _plain("delta")),
    Metric(
        "conclave_composed_epsilon",
        GAUGE,
        "Epsilon that all releases of the database promise together",
        _composed("epsilon"),
    ),
    Metric(
        "conclave_composed_delta",
        GAUGE,
        "Delta that all releases of the database promise together",
        _composed("delta"),
    ),
    Metric(
        "conclave_composed_releases",
        GAUGE,
        "Releases of the database",
        _composed("releases"),
    ),
    Metric(
        "conclave_epsilon_charged",
        GAUGE,
        "Epsilon that is spent, by mechanism",
        _shares("charged", "epsilon"),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_charged",
        GAUGE,
        "Delta that is spent, by mechanism",
        _shares("charged", "delta"),
        ("mechanism",),
    ),
    Metric(
        "conclave_epsilon_reserved",
        GAUGE,
        "Epsilon that is set aside, by mechanism",
        _shares("reserved", "epsilon"),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_reserved",
        GAUGE,
        "Delta that is set aside, by mechanism",
        _shares("reserved", "delta"),
        ("mechanism",),
    ),
    Metric(
        "conclave_answers_total",
        COUNTER,
        "Fresh answers of the ensemble, stable and unstable, since the release opened",
        _plain("queries", "answered"),
    ),
    Metric(
        "conclave_answers_limit",
        GAUGE,
        "Fresh answers that the ensemble may give",
        _plain("queries", "limit"),
    ),
    Metric(
        "conclave_unstable_total",
        COUNTER,
        "Unstable answers since the release opened; with scores, units of the cutoff",
        _plain("unstable", "count"),
    ),
    Metric(
        "conclave_unstable_cutoff",
        GAUGE,
        "Unstable answers, or units, at which the ensemble ends",
        _plain("unstable", "cutoff"),
    ),
    Metric("conclave_ensemble_size", GAUGE, "Learners of the ensemble", _plain("ensemble", "size")),
    Metric(
        "conclave_ledger_sequence",
        GAUGE,
        "Number of the newest entry of the ledger",
        _plain("ledger", "sequence"),
    ),
    Metric(
        "conclave_ledger_head_info",
        GAUGE,
        "Always 1, with the hash of the newest entry of the ledger",
        lambda facts: [((facts.budget["ledger"]["head"],), 1)],
        ("hash",),
    ),
    Metric(
        "conclave_ledger_head_file_sequence",
        GAUGE,
        "Number of the entry that the head file notes, when this process wrote it last",
        lambda facts: [((), facts.noted_sequence)],
    ),
    Metric(
        "conclave_refusals_total",
        COUNTER,
        "Requests, and lines of streams, that this process refused, by the problem's slug",
        _refusals,
        ("problem",),
    ),
)


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


async def metrics(api: Api, request: Request) -> Response:
    """Give the public quantities to Prometheus."""
    del request
    service = api.slot.service
    facts = Facts(service.budget(), service.noted_sequence(), api.refusals)
    return Response(
        exposition(facts),
        headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4, "cache-control": "no-store"},
    )
