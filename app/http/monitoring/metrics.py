"""The route ``GET /metrics``: public figures in Prometheus' format.

The reply contains only the metrics that this module lists: no processor time, memory, garbage
collection or exact times of the process that answers queries, and no label that distinguishes
clients, unless an operator asks for answers by API key. The release's metrics are the public
quantities of ``GET /budget``; the process's metrics are its requests, its refusals and its waiting
queries. In this module a label is an attribute of a metric, as in Prometheus, and not an answer.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response

from app.answering.hourly_counts import ANSWER_KINDS, Buckets, Workload
from app.answering.service import Budget
from app.answering.service_slot import STATES
from app.errors import IntegrityError, RequestError, UnavailableError
from app.http.openapi.body_declarations import gives
from app.http.openapi.read_models import Metrics
from app.http.problems import INTERNAL_SLUG, KINDS
from app.http.route_handling import Api, CurrentApi, ReadRoute, router_of
from app.http.version import installed_version

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

    from app.http.monitoring.request_ids_and_times import RequestMeter

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
Value = float | Buckets | None
Samples = Iterable[tuple[tuple[str, ...], Value]]


@dataclass(frozen=True, slots=True)
class Facts:
    """The public figures of the server at one moment, from which metrics are made.

    Attributes:
        state: the server's state: opening, open, draining or stopped.
        meter: this process's counters of requests.
        refusals: the number of requests, and of lines of streams, that this process refused, by
            the error's short name.
        budget: the body of ``GET /budget``; None unless the release is open.
        noted_sequence: the number of the newest ledger entry according to the head file, a note
            that the server keeps outside the ledger; None without a head file.
        workload: the queries that wait for an answer, with counters of those answered; None
            unless the release is open.
        key_answers: the number of new answers of each API key, by its name; empty unless an
            operator asked for it.

    """

    state: str
    meter: RequestMeter
    refusals: Mapping[str, int]
    budget: Budget | None = None
    noted_sequence: int | None = None
    workload: Workload | None = None
    key_answers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metric:
    """The declaration of one Prometheus metric.

    Attributes:
        name: the exposed name; the name of a counter ends with ``_total``.
        kind: counter, gauge or histogram.
        help: a short description of the metric.
        read: a function that returns a value for each tuple of label values; None if there is no
            value.
        labels: the names of the labels.

    """

    name: str
    kind: str
    help: str
    read: Callable[[Facts], Samples]
    labels: tuple[str, ...] = ()

    def family(self, facts: Facts) -> Family:
        """Return the metric with its values at one moment, in Prometheus' data type."""
        if self.kind == HISTOGRAM:
            return self._histogram(facts)
        kind = CounterMetricFamily if self.kind == COUNTER else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in self.read(facts):
            if isinstance(value, (int, float)):
                family.add_metric(labels, value)
        return family

    def _histogram(self, facts: Facts) -> HistogramMetricFamily:
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, value in self.read(facts):
            if isinstance(value, Buckets):
                family.add_metric(labels, value.cumulative(), sum_value=value.sum_of_bounds())
        return family


SLUGS: Final = tuple(
    sorted({getattr(kind, "slug", INTERNAL_SLUG) for kind in KINDS if kind is not RequestError})
)


def _refusals(facts: Facts) -> Samples:
    return [((slug,), facts.refusals.get(slug, 0)) for slug in SLUGS]


def _work(read: Callable[[Workload], Value]) -> Callable[[Facts], Samples]:
    """Return what reads one value of the workload, where the release is open."""
    return lambda facts: [] if facts.workload is None else [((), read(facts.workload))]


def _answers_given(facts: Facts) -> Samples:
    work = facts.workload
    if work is None:
        return []
    return [((kind,), work.answers.count(kind)) for kind in ANSWER_KINDS]


def _commits(facts: Facts) -> Samples:
    work = facts.workload
    return [((), work.commit_seconds)] if work is not None and facts.meter.with_times else []


PROCESS_METRICS: Final = (
    Metric(
        "conclave_build_info",
        GAUGE,
        "Always 1, with the versions of Python and of Conclave",
        lambda _: [((platform.python_version(), installed_version()), 1)],
        ("python", "version"),
    ),
    Metric(
        "conclave_start_time_seconds",
        GAUGE,
        "When this process began to serve, in whole seconds since 1970",
        lambda facts: [((), facts.meter.started)],
    ),
    Metric(
        "conclave_server_state",
        GAUGE,
        "Whether the server is in the state, 1 or 0",
        lambda facts: [((state,), state == facts.state) for state in STATES],
        ("state",),
    ),
    Metric(
        "conclave_requests_in_flight",
        GAUGE,
        "Requests whose reply has not begun",
        lambda facts: [((), facts.meter.in_flight)],
    ),
    Metric(
        "conclave_request_duration_seconds",
        HISTOGRAM,
        "Time until a reply began, in coarse buckets, by route and status",
        lambda facts: facts.meter.times(),
        ("method", "route", "status"),
    ),
    Metric(
        "conclave_streams_open",
        GAUGE,
        "Open streams of events and of queries",
        lambda facts: [((kind,), count) for kind, count in facts.meter.streams.items()],
        ("kind",),
    ),
    Metric(
        "conclave_answers_given_total",
        COUNTER,
        "Answers that this process gave, by kind: fresh, repeated, classified",
        _answers_given,
        ("kind",),
    ),
    Metric(
        "conclave_refusals_total",
        COUNTER,
        "Requests, and lines of streams, that this process refused, by the problem's slug",
        _refusals,
        ("problem",),
    ),
    Metric(
        "conclave_pending_queries",
        GAUGE,
        "Queries that wait for the writer, or for the switch",
        _work(lambda work: work.waiting),
    ),
    Metric(
        "conclave_pending_queries_limit",
        GAUGE,
        "Queries that may wait for the writer",
        _work(lambda work: work.waiting_max),
    ),
    Metric(
        "conclave_batch_queries",
        HISTOGRAM,
        "Queries that the writer decided together, in coarse buckets",
        _work(lambda work: work.batch_queries),
    ),
    Metric(
        "conclave_commit_duration_seconds",
        HISTOGRAM,
        "Time of a commit to the ledger, in coarse buckets",
        _commits,
    ),
)

PHASES: Final = ("ensemble", "waiting", "classifier", "halted")
STANDINGS: Final = ("waiting", "active", "retired")


def _number(read: Callable[[Budget], Value]) -> Callable[[Facts], Samples]:
    """Return a reader of one number of the budget."""
    return lambda facts: [((), read(facts.budget))] if facts.budget else []


def _each(read: Callable[[Budget], Iterable[tuple[str, Value]]]) -> Callable[[Facts], Samples]:
    """Return a reader of numbers, one for each value of a label."""
    return lambda facts: (
        [((label,), value) for label, value in read(facts.budget)] if facts.budget else []
    )


def _generations(budget: Budget) -> Iterable[tuple[str, Value]]:
    """Yield the number of generations in each state; nothing of a fixed release."""
    states = [each.state for each in budget.generations]
    return [(state, states.count(state)) for state in STANDINGS if states]


def _joins_at(budget: Budget) -> Iterable[tuple[str, Value]]:
    """Yield the time at which each generation that waits joins, by its number."""
    return [(str(each.number), each.joins_at) for each in budget.generations]


def _unstable_left(budget: Budget) -> Iterable[tuple[str, Value]]:
    """Yield what each generation that votes has left, by its number."""
    active = [each for each in budget.generations if each.state == "active"]
    return [(str(each.number), each.unstable.left) for each in active]


RELEASE_METRICS: Final = (
    Metric(
        "conclave_release_info",
        GAUGE,
        "Always 1, with the name of the release",
        _each(lambda budget: [(budget.release.name, 1)]),
        ("name",),
    ),
    Metric(
        "conclave_phase",
        GAUGE,
        "Whether the release is in the phase, 1 or 0",
        _each(lambda budget: [(phase, phase == budget.phase) for phase in PHASES]),
        ("phase",),
    ),
    Metric(
        "conclave_switching",
        GAUGE,
        "Whether the published classifier is being made, 1 or 0",
        _number(lambda budget: budget.switching),
    ),
    Metric(
        "conclave_student",
        GAUGE,
        "Whether a student answers, or will once it is trained, 1 or 0",
        _number(lambda budget: budget.student),
    ),
    Metric(
        "conclave_epsilon_promised",
        GAUGE,
        "Epsilon of the whole release",
        _number(lambda budget: budget.epsilon),
    ),
    Metric(
        "conclave_delta_promised",
        GAUGE,
        "Delta of the whole release",
        _number(lambda budget: budget.delta),
    ),
    Metric(
        "conclave_composed_epsilon",
        GAUGE,
        "Epsilon that all releases of the database promise together",
        _number(lambda budget: budget.composed.epsilon if budget.composed else None),
    ),
    Metric(
        "conclave_composed_delta",
        GAUGE,
        "Delta that all releases of the database promise together",
        _number(lambda budget: budget.composed.delta if budget.composed else None),
    ),
    Metric(
        "conclave_composed_releases",
        GAUGE,
        "Releases of the database",
        _number(lambda budget: budget.composed.releases if budget.composed else None),
    ),
    Metric(
        "conclave_epsilon_charged",
        GAUGE,
        "Epsilon that is spent, by mechanism",
        _each(lambda budget: [(share.mechanism, share.epsilon) for share in budget.charged]),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_charged",
        GAUGE,
        "Delta that is spent, by mechanism",
        _each(lambda budget: [(share.mechanism, share.delta) for share in budget.charged]),
        ("mechanism",),
    ),
    Metric(
        "conclave_epsilon_reserved",
        GAUGE,
        "Epsilon that is set aside, by mechanism",
        _each(lambda budget: [(share.mechanism, share.epsilon) for share in budget.reserved]),
        ("mechanism",),
    ),
    Metric(
        "conclave_delta_reserved",
        GAUGE,
        "Delta that is set aside, by mechanism",
        _each(lambda budget: [(share.mechanism, share.delta) for share in budget.reserved]),
        ("mechanism",),
    ),
    Metric(
        "conclave_answers_total",
        COUNTER,
        "Fresh answers of the ensemble, stable and unstable, since the release opened",
        _number(lambda budget: budget.queries.answered),
    ),
    Metric(
        "conclave_answers_limit",
        GAUGE,
        "Fresh answers that the ensemble may give",
        _number(lambda budget: budget.queries.limit),
    ),
    Metric(
        "conclave_unstable_total",
        COUNTER,
        "Unstable answers since the release opened; with scores, units of the cutoff",
        _number(lambda budget: budget.unstable.count),
    ),
    Metric(
        "conclave_unstable_cutoff",
        GAUGE,
        "Unstable answers, or units, at which the ensemble ends",
        _number(lambda budget: budget.unstable.cutoff),
    ),
    Metric(
        "conclave_ensemble_size",
        GAUGE,
        "Learners of the ensemble",
        _number(lambda budget: budget.ensemble.size),
    ),
    Metric(
        "conclave_generations",
        GAUGE,
        "Generations of a release that takes them, by their state",
        _each(_generations),
        ("state",),
    ),
    Metric(
        "conclave_generations_quorum",
        GAUGE,
        "Least number of generations that vote",
        _number(lambda budget: budget.quorum),
    ),
    Metric(
        "conclave_generations_tick_seconds",
        GAUGE,
        "Seconds from tick to tick, at which generations join",
        _number(lambda budget: budget.tick),
    ),
    Metric(
        "conclave_generation_joins_timestamp_seconds",
        GAUGE,
        "The tick at which each generation that waits joins, in seconds since 1970",
        _each(_joins_at),
        ("generation",),
    ),
    Metric(
        "conclave_erased_total",
        COUNTER,
        "Records that were forgotten, in a release that publishes their count",
        _number(lambda budget: budget.erased),
    ),
    Metric(
        "conclave_generation_unstable_left",
        GAUGE,
        "Unstable answers that each generation that votes can still pay for",
        _each(_unstable_left),
        ("generation",),
    ),
    Metric(
        "conclave_ledger_sequence",
        GAUGE,
        "Number of the newest entry of the ledger",
        _number(lambda budget: budget.ledger.sequence),
    ),
    Metric(
        "conclave_ledger_head_info",
        GAUGE,
        "Always 1, with the hash of the newest entry of the ledger",
        _each(lambda budget: [(budget.ledger.head, 1)]),
        ("hash",),
    ),
    Metric(
        "conclave_ledger_head_file_sequence",
        GAUGE,
        "Number of the entry that the head file notes, when this process wrote it last",
        lambda facts: [((), facts.noted_sequence)],
    ),
    Metric(
        "conclave_key_answers_total",
        COUNTER,
        "Fresh answers of each key by its name, with `server.key_metrics`",
        lambda facts: [((name,), count) for name, count in facts.key_answers.items()],
        ("key",),
    ),
)
METRICS: Final = (*RELEASE_METRICS, *PROCESS_METRICS)
router = router_of(ReadRoute)


class _Public(Collector):
    """Gives the metrics of one moment."""

    def __init__(self, facts: Facts) -> None:
        """Keep the public quantities to be exported."""
        self._facts = facts

    def collect(self) -> Iterator[Family]:
        """Yield every Prometheus metric."""
        return (metric.family(self._facts) for metric in METRICS)


def exposition(facts: Facts) -> bytes:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Public(facts))
    return generate_latest(registry)


@router.get("/metrics", response_class=Response, responses=gives({"text/plain": Metrics}))
async def metrics(api: CurrentApi) -> Response:
    """Return all metrics to Prometheus, in any state of the server."""
    facts = _facts(api)
    if api.watching.key_metrics:
        facts = replace(facts, key_answers=await _key_answers(api))
    return Response(
        exposition(facts),
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


async def _key_answers(api: Api) -> dict[str, int]:
    """Return the answers of each key that has some or is in the file; none while nobody knows."""
    try:
        counts = await api.slot.service.key_counts()
    except (UnavailableError, IntegrityError):
        return {}
    listed = () if api.keys is None else api.keys.listed()
    known = {key.name: 0 for key in listed}
    return known | {name: answered for name, (answered, _) in sorted(counts.items())}
