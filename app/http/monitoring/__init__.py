"""Observability for operators: metrics, request identifiers, log lines, traces.

* ``metrics.py`` is ``GET /metrics``: what a metric is, and the tables of all of them.  Those of the
  release come from the public budget; those of the server are requests, refusals, waiting queries.
* ``observability.py`` has the options: which times, lines and spans of requests are kept.
* ``request_ids_and_times.py`` makes the identifier of a request, or reads the client's, and counts
  requests and the times of their replies.
* ``tracing.py`` sends spans to a collector by OpenTelemetry.
"""
