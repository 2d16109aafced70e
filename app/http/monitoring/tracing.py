"""Trace spans sent to a collector by OpenTelemetry; off unless a setting names a collector.

A span is the record of one timed piece of work. There is a span for every request, for every batch
of queries that are answered together, for the batch's votes, and for its commit to the ledger. A
span contains times, which are rounded outwards to a coarse grid; the time of an answer is outside
the privacy guarantee (``docs/guarantee.md``). The attributes of a span are the route, the status,
the kind of refusal and the request's id; the content of queries and answers is left out.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from app.answering.answer_query import Edge, Observer, Step
from app.errors import ConfigurationError
from app.http.version import installed_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.id_generator import IdGenerator as Ids
    from opentelemetry.trace import Span

    from app.http.monitoring.request_ids_and_times import Identity
    from app.settings.server_sections import TelemetrySettings

NANOSECONDS: Final = 1_000_000_000
EXPORT_SECONDS_MAX: Final = 2.0
CLOSE_SECONDS_MAX: Final = 3.0
NOT_INSTALLED: Final = (
    "needs the extra `telemetry`, which is not installed; install it, or remove the setting"
)
_SPAN_OF: Final = {Step.VOTE: "vote", Step.COMMIT: "commit"}


class Tracing:
    """A maker of trace spans that passes them to an OpenTelemetry processor."""

    def __init__(
        self,
        processor: SpanProcessor,
        *,
        secret: Callable[[int], bytes],
        resolution_seconds: float,
        service_name: str,
    ) -> None:
        """Send spans to ``processor``.

        Args:
            processor: OpenTelemetry's processor of completed spans.
            secret: a function that returns random bytes, for the ids of traces and spans.
            resolution_seconds: times are rounded outwards to multiples of this time.
            service_name: the name of the service that a collector shows.

        """
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 -- an extra's
        from opentelemetry.sdk.trace import TracerProvider, sampling  # noqa: PLC0415 -- an extra's

        version = installed_version()
        self._provider = TracerProvider(
            sampler=sampling.ParentBased(sampling.ALWAYS_ON),
            # No detector: what the environment or the machine says of itself stays here.
            resource=Resource({"service.name": service_name, "service.version": version}),
            id_generator=_ids(secret),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("conclave", version)
        self._grid = max(1, round(resolution_seconds * NANOSECONDS))
        self._batch: Span | None = None
        self._steps: dict[Step, Span] = {}
        self._last = 0

    def begin_request(self, name: str, identity: Identity) -> Span:
        """Begin the trace span of a request, and give the request the span's ids."""
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 -- loaded by now

        span = self._tracer.start_span(
            name, _parent(identity), SpanKind.SERVER, start_time=self._begun()
        )
        context = span.get_span_context()
        identity.trace_id = f"{context.trace_id:032x}"
        identity.span_id = f"{context.span_id:016x}"
        identity.flags = f"{context.trace_flags & 1:02x}"
        return span

    def end(self, span: Span, attributes: Mapping[str, str | int], *, failed: bool) -> None:
        """End a trace span with its public attributes."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- loaded by now

        span.set_attributes(attributes)
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self._ended())

    def observe(self, step: Step, edge: Edge) -> None:
        """Record trace spans of a batch of queries, one for each step of answering them.

        An error in tracing is ignored: it must not end a batch whose votes may have been counted
        already.
        """
        if step in (Step.REPLAY, Step.VOTE, Step.COMMIT):
            with suppress(Exception):
                self._note(step, edge)

    def _note(self, step: Step, edge: Edge) -> None:
        if step is Step.REPLAY:
            if edge is Edge.BEFORE:
                self._begin_batch()
        elif edge is Edge.BEFORE:
            self._steps[step] = self._tracer.start_span(
                _SPAN_OF[step], _within(self._batch), start_time=self._begun()
            )
        else:
            self.end(self._steps.pop(step), {}, failed=False)
            if step is Step.COMMIT and self._batch is not None:
                self.end(self._batch, {}, failed=False)
                self._batch = None
        self._last = time.time_ns()

    def _begin_batch(self) -> None:
        """Begin the span of a batch; one that is open has failed, when it was last heard of."""
        failed = [*self._steps.values(), *([self._batch] if self._batch is not None else [])]
        self._steps.clear()
        for span in failed:
            self._fail(span)
        self._batch = self._tracer.start_span("batch", start_time=self._begun())

    def _fail(self, span: Span) -> None:
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- loaded by now

        span.set_status(Status(StatusCode.ERROR))
        span.end(-(-self._last // self._grid) * self._grid)

    def _begun(self) -> int:
        """Return the time, in nanoseconds since 1970, rounded down."""
        return time.time_ns() // self._grid * self._grid

    def _ended(self) -> int:
        """Return the time, in nanoseconds since 1970, rounded up."""
        return -(-time.time_ns() // self._grid) * self._grid

    def close(self) -> None:
        """Send the remaining trace spans within a time limit, since a collector may hang."""
        ending = threading.Thread(target=self._provider.shutdown, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS_MAX)


def open_tracing(settings: TelemetrySettings, secret: Callable[[int], bytes]) -> Tracing | None:
    """Return the tracer for the configured collector; None if none is configured.

    Args:
        settings: the section ``[telemetry]``.
        secret: a function that returns the given number of random bytes.

    Raises:
        ConfigurationError: OpenTelemetry's libraries are not installed.

    """
    if settings.traces_endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 -- an extra's
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 -- an extra's
    except ImportError:
        raise ConfigurationError("telemetry.traces_endpoint", NOT_INSTALLED) from None
    exporter = OTLPSpanExporter(endpoint=settings.traces_endpoint, timeout=EXPORT_SECONDS_MAX)
    return Tracing(
        BatchSpanProcessor(exporter),
        secret=secret,
        resolution_seconds=settings.resolution_seconds,
        service_name=settings.service_name,
    )


def observing(first: Observer, tracing: Tracing | None) -> Observer:
    """Return a function, called at each step of a batch, that calls ``first`` and records spans."""
    if tracing is None:
        return first

    def observe(step: Step, edge: Edge) -> None:
        first(step, edge)
        tracing.observe(step, edge)

    return observe


def _ids(secret: Callable[[int], bytes]) -> Ids:
    """Return what draws the ids of traces and spans."""
    from opentelemetry.sdk.trace.id_generator import IdGenerator  # noqa: PLC0415 -- an extra's

    class DrawnIds(IdGenerator):
        """A generator of random, nonzero span ids and trace ids."""

        def generate_span_id(self) -> int:
            return int.from_bytes(secret(8), "big") or 1

        def generate_trace_id(self) -> int:
            return int.from_bytes(secret(16), "big") or 1

    return DrawnIds()


def _parent(identity: Identity) -> Context | None:
    """Return the context of the client's span; None where it sent none."""
    if identity.trace_id is None or identity.parent_id is None:
        return None
    from opentelemetry.trace import (  # noqa: PLC0415 -- loaded by now
        NonRecordingSpan,
        SpanContext,
        TraceFlags,
    )

    context = SpanContext(
        int(identity.trace_id, 16),
        int(identity.parent_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(identity.flags, 16)),
    )
    return _within(NonRecordingSpan(context))


def _within(span: Span | None) -> Context | None:
    """Return the context of what happens within a span."""
    from opentelemetry.trace import set_span_in_context  # noqa: PLC0415 -- loaded by now

    return None if span is None else set_span_in_context(span)
