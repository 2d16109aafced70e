"""Observability for operators: metrics, request identifiers, log lines, traces.

* ``metrics.py`` is ``GET /metrics``, with the declarations of all metrics. The release's metrics
  are figures of ``GET /budget``; the server's metrics are requests, refusals and waiting queries.
* ``monitoring_options.py`` defines the options: which times, log lines and trace spans are
  recorded.
* ``request_ids_and_times.py`` makes the identifier of a request, or reads the client's identifier,
  and counts requests and the times of their replies.
* ``tracing.py`` sends trace spans to a collector by OpenTelemetry.
"""
