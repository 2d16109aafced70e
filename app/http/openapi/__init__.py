"""The OpenAPI document: models of request and reply bodies, added to FastAPI's own document.

* ``body_declarations.py`` defines the base of all models, and how a route declares its bodies and
  replies.
* ``query_models.py`` defines the bodies of queries, answers and statistics.
* ``read_models.py`` defines the bodies of outlook, parameters, ledger, schema, classifier and
  probes.
* ``protocol_models.py`` defines the bodies of the V2 and MLflow protocols.
* ``refusal_replies.py`` lists the refusals of a route by HTTP status.
* ``openapi_document.py`` combines FastAPI's document with these refusals.
* ``swagger_page.py`` makes the replies below ``/docs``: two files of Swagger UI, and the files of
  ``swagger/``, which start it.
"""
