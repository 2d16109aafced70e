"""The routes ``POST /query``, ``POST /query/stream`` and ``/statistics``.

* ``query_route.py`` answers one query, and ``statistics_route.py`` hypotheses.
* ``plain_query.py`` answers one query too, where its head is known, past the framework.
* ``query_body.py`` parses the JSON of a query or a line, and refuses what does not fit.
* ``stream.py`` answers a stream of queries, a line for each in order.
* ``line_splitting.py`` cuts bytes into lines, and has the bounded queue between a stream's tasks.
"""
