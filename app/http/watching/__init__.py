"""What operators watch: metrics, request identifiers, log lines of requests, traces.

``metrics.py`` is the endpoint; ``release_metrics.py`` the table of the release's metrics,
all of them functions of public counters.
"""
