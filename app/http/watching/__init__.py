"""Observability for operators: metrics, request identifiers, log lines, traces.

* ``metrics.py`` is ``GET /metrics``: what a metric is, and the tables of all of them.  Those of the
  release come from the public budget; those of the server are requests, refusals, waiting queries.
* ``observability.py`` says which times, lines and spans of requests are kept, and counts replies.
* ``identity.py`` makes the identifier of a request, and reads that of a client.
* ``tracing.py`` sends spans to a collector by OpenTelemetry.
"""
