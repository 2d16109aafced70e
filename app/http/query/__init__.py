"""``POST /query``, ``POST /query/stream`` and ``/statistics``: bodies in, answers out.

* ``query_route.py`` answers one query, and ``statistics_route.py`` hypotheses.
* ``query_body.py`` reads and checks the body of a query and a line of a stream.
* ``stream.py`` answers a stream of queries, a line for each in order.
* ``lines.py`` cuts bytes into lines, and has the bounded queue between a stream's tasks.
"""
