"""The HTTP layer: routes, request bodies, replies and refusals; it reads no private row.

* ``application.py`` builds the application; ``routes.py`` lists every route with its role.
* ``route_handling.py`` wraps each route: access first, and every error turned into a problem.
* ``problems.py`` is the one table from errors to statuses and texts.
* ``limits.py`` has every maximum of requests, streams and connections, and counts open streams.
* ``read_routes.py`` has the plain GET routes: budget, outlook, parameters, ledger, classifier,
  schema and probes.
* ``budget_events.py`` streams the budget on every change, as ``GET /budget/events``.
* ``version.py`` has the version of the project and of the interface.
* ``query/`` has the routes that ask, ``protocols/`` those of other servers' clients,
  ``access/`` keys, ``wire/`` bytes and connections, ``monitoring/`` metrics and traces,
  ``openapi/`` the description of it all, ``dashboard/`` the operator's page.
"""
