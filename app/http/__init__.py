"""HTTP: routes, bodies, replies, problems.  A request enters and leaves here.

Start at ``application.py`` (the application and its routes) and ``query/query_route.py``
(``POST /query``).  ``problems.py`` is the one table from errors to statuses.  This row
knows the web framework; it asks ``answering`` for answers and never reads a private row.
"""
