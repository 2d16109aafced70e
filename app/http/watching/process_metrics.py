"""The metrics of the process: what it was asked, what it refused, what waits.

No processor time, no memory, no garbage and no raw time: those could tell of the rows.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Final

from app.answering.current_service import STATES
from app.answering.workload import Workload
from app.errors import RequestError
from app.http.problems import INTERNAL_SLUG, KINDS
from app.http.version import installed_version
from app.http.watching.metric import COUNTER, GAUGE, HISTOGRAM, Facts, Metric, Samples, Value

SLUGS: Final = tuple(
    sorted({getattr(kind, "slug", INTERNAL_SLUG) for kind in KINDS if kind is not RequestError})
)


def _refusals(facts: Facts) -> Samples:
    return [((slug,), facts.refusals.get(slug, 0)) for slug in SLUGS]


def _work(read: Callable[[Workload], Value]) -> Callable[[Facts], Samples]:
    """Return what reads one value of the workload, where the release is open."""
    return lambda facts: [] if facts.workload is None else [((), read(facts.workload))]


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
