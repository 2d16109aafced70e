"""For operators: metrics, identifiers of requests, log lines of requests, traces.

* ``metrics.py`` is ``GET /metrics``; ``metric.py`` is the type of one metric.
* ``release_metrics.py`` is the table of the release's metrics, from the public budget.
* ``process_metrics.py`` is the table of the server's metrics: requests, refusals, waiting queries.
* ``observability.py`` says which times, lines and spans of requests are kept, and counts replies.
* ``identity.py`` makes the identifier of a request, and reads that of a client.
* ``tracing.py`` sends spans to a collector by OpenTelemetry.
"""
