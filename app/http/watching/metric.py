"""What a metric is: a name, a help text, and what reads its values from public facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)

from app.answering.workload import Buckets, Workload

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

    from app.answering.types import Budget
    from app.http.watching.observability import RequestMeter

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
Value = float | Buckets | None
Samples = Iterable[tuple[tuple[str, ...], Value]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is public at one moment.

    Attributes:
        state: of the server: opening, open, draining or stopped.
        meter: what this process counted of requests.
        refusals: requests and lines refused by this process, by slug.
        budget: the body of ``GET /budget``; None unless the release is open.
        noted_sequence: the entry that the head file notes; None where none is kept.
        workload: what waits for the writer, and what it counted; None with ``budget``.

    """

    state: str
    meter: RequestMeter
    refusals: Mapping[str, int]
    budget: Budget | None = None
    noted_sequence: int | None = None
    workload: Workload | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: as it is exposed; a counter's ends with ``_total``.
        kind: counter, gauge or histogram.
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
