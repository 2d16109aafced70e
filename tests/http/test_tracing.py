"""Spans of requests and batches: what they name, how coarse they are, and where they go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from app.answering.answer_query import Edge, Step
from app.errors import ConfigurationError
from app.http.monitoring import tracing as tracing_module
from app.http.monitoring.monitoring_options import Watching
from app.http.monitoring.tracing import CLOSE_SECONDS_MAX, Tracing, open_tracing
from app.noise.system import SystemNoise
from app.settings.server_sections import TelemetrySettings
from tests.http.collector import collecting
from tests.http.doubles import Http
from tests.http.test_identity import PARENT, TRACE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

RESOLUTION_SECONDS = 0.01
GRID = 10_000_000


class Traced:
    """Traces that are kept in memory."""

    def __init__(self) -> None:
        """Start with no span."""
        self.exporter = InMemorySpanExporter()
        self.tracing = Tracing(
            SimpleSpanProcessor(self.exporter),
            secret=SystemNoise().secret,
            resolution_seconds=RESOLUTION_SECONDS,
            service_name="conclave",
        )

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that ended."""
        return list(self.exporter.get_finished_spans())

    def http(self) -> Http:
        """Return an application that is traced."""
        return Http(watching=Watching(tracing=self.tracing))

    def walk(self, *steps: Step) -> None:
        """Tell of steps, each on both sides."""
        for step in steps:
            for edge in Edge:
                self.tracing.observe(step, edge)


def test_a_request_is_a_span_of_its_route() -> None:
    """Name, kind, status and id, and the ids that the reply tells; no path, host or agent."""
    traced = Traced()
    with traced.http() as http:
        reply = http.get("/ledger?limit=1", headers={"X-Request-Id": "mine"})
    (span,) = traced.spans
    assert (span.name, span.kind) == ("GET /ledger", SpanKind.SERVER)
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.route": "/ledger",
        "http.response.status_code": 200,
        "conclave.request_id": "mine",
    }
    assert span.context is not None
    ids = f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
    assert reply.headers["traceresponse"] == f"00-{ids}-01"
    assert span.parent is None
    assert span.status.status_code is StatusCode.UNSET
    assert span.resource.attributes.keys() == {"service.name", "service.version"}


def test_a_request_is_a_child_of_the_clients_span() -> None:
    """The trace is the client's, and so is the parent; one that is not recorded stays so."""
    traced = Traced()
    with traced.http() as http:
        http.ask([20, None], traceparent=PARENT)
        unrecorded = http.ask([20, None], traceparent=PARENT.removesuffix("01") + "00")
    (span,) = traced.spans
    assert span.context is not None
    assert span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (
        TRACE,
        PARENT[36:52],
    )
    assert unrecorded.headers["traceresponse"].startswith(f"00-{TRACE}-")
    assert unrecorded.headers["traceresponse"].endswith("-00")


def test_only_a_failure_of_ours_is_an_error() -> None:
    """A client's mistake is not; a release that stopped is."""
    traced = Traced()
    with traced.http() as http:
        http.ask(["old", None])
        http.slot.stop()
        http.ask([20, None])
    codes = [span.status.status_code for span in traced.spans]
    assert codes == [StatusCode.UNSET, StatusCode.ERROR]


def test_a_batch_has_its_votes_and_its_commit_within() -> None:
    """Three spans of one trace, without an attribute, in the order in which they end."""
    traced = Traced()
    traced.walk(Step.REPLAY, Step.VOTE, Step.STEP, Step.COMMIT, Step.RESPOND)
    vote, commit, batch = traced.spans
    assert [span.name for span in (vote, commit, batch)] == ["vote", "commit", "batch"]
    assert vote.parent == commit.parent == batch.context
    assert all(not span.attributes for span in traced.spans)
    assert all(span.status.status_code is StatusCode.UNSET for span in traced.spans)


def test_a_batch_that_was_not_committed_is_an_error() -> None:
    """The batch and the commit that was under way end, as errors, once the next one begins."""
    traced = Traced()
    traced.walk(Step.REPLAY, Step.VOTE)
    traced.tracing.observe(Step.COMMIT, Edge.BEFORE)
    traced.tracing.observe(Step.REPLAY, Edge.BEFORE)
    found = {span.name: span.status.status_code for span in traced.spans}
    assert found == {
        "vote": StatusCode.UNSET,
        "commit": StatusCode.ERROR,
        "batch": StatusCode.ERROR,
    }


def test_times_are_rounded_outwards() -> None:
    """Begin and end are multiples of the resolution, and nothing is shorter than it was."""
    traced = Traced()
    traced.tracing.observe(Step.REPLAY, Edge.BEFORE)
    began = time.time_ns()
    traced.walk(Step.VOTE)
    ended = time.time_ns()
    (vote,) = traced.spans
    assert vote.start_time is not None
    assert vote.end_time is not None
    assert vote.start_time % GRID == vote.end_time % GRID == 0
    assert vote.start_time <= began <= ended <= vote.end_time + GRID


def test_a_trace_that_fails_reaches_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes are cast between the steps: whatever the library does stays in the trace."""
    traced = Traced()
    monkeypatch.setattr(traced.tracing, "_note", lambda *_: 1 / 0)
    traced.walk(Step.REPLAY, Step.VOTE, Step.COMMIT)


def test_spans_reach_a_collector_by_otlp_over_http() -> None:
    """What was traced is sent, at the latest when the server closes."""
    with collecting() as collector:
        settings = TelemetrySettings(traces_endpoint=collector.endpoint, service_name="adult")
        tracing = open_tracing(settings, SystemNoise().secret)
        assert tracing is not None
        with Http(watching=Watching(tracing=tracing)) as http:
            http.ask([20, None])
        tracing.close()
        assert [span.name for span in collector.spans] == ["POST /query"]
        assert b"adult" in collector.bodies[0]


def test_a_collector_that_is_gone_holds_nothing_up() -> None:
    """Requests are answered, and closing gives up in time."""
    settings = TelemetrySettings(traces_endpoint="http://127.0.0.1:9/v1/traces")
    tracing = open_tracing(settings, SystemNoise().secret)
    assert tracing is not None
    with Http(watching=Watching(tracing=tracing)) as http:
        assert http.ask([20, None]).status_code == 200
    began = time.monotonic()
    tracing.close()
    assert time.monotonic() - began < CLOSE_SECONDS_MAX + 10


def test_no_traces_unless_a_collector_is_named() -> None:
    """The default makes nothing, whatever the environment says to OpenTelemetry."""
    assert open_tracing(TelemetrySettings(), SystemNoise().secret) is None


def test_the_extra_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its libraries one line names the setting and the extra."""
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.sdk.trace.export", None)
    settings = TelemetrySettings(traces_endpoint="http://127.0.0.1:4318/v1/traces")
    with pytest.raises(ConfigurationError, match=r"telemetry\.traces_endpoint: needs the extra"):
        open_tracing(settings, SystemNoise().secret)
    assert tracing_module.NOT_INSTALLED.endswith("remove the setting")
