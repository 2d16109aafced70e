"""The HTTP layer: routes, request bodies, replies and refusals; it reads no private row.

* ``application.py`` builds the application; ``routes.py`` lists every route with its role.
* ``route_handling.py`` wraps each route: it checks access first, and turns every error into a
  JSON body that describes it (a problem).
* ``problems.py`` is the one table from errors to HTTP statuses and texts.
* ``limits.py`` defines every maximum of requests, streams and connections, and counts open streams.
* ``read_routes.py`` defines the plain GET routes: budget, outlook (a forecast of when the budget is
  used up), parameters, ledger, classifier, schema and health probes.
* ``budget_events.py`` streams the budget after every change, as ``GET /budget/events``.
* ``version.py`` contains the version of the project and of the interface.
* ``query/`` contains the routes that answer queries, and ``protocols/`` routes for the same queries
  in the protocols of other model servers.
* ``access/`` contains API keys and tokens, ``wire/`` the reading and writing of bytes on
  connections, ``monitoring/`` metrics and traces, ``openapi/`` the OpenAPI document of all routes,
  and ``dashboard/`` the operator's web page.
"""
