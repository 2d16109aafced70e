"""The routes ``POST /query``, ``POST /query/stream`` and ``/statistics``.

* ``query_route.py`` answers one query, and ``statistics_route.py`` questions about statistics.
* ``fast_query.py`` also answers one query, without the web framework, if its headers are known.
* ``query_body.py`` parses the JSON of a query or of a stream's line, and refuses invalid ones.
* ``stream.py`` answers a stream of queries: one reply line for each query, in order.
* ``line_splitting.py`` splits bytes into lines, and contains the bounded queue between the tasks of
  a stream.
"""
