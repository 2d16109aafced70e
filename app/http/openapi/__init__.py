"""The OpenAPI document: models of request and reply bodies, added to FastAPI's own document.

* ``body_declarations.py`` has the base of all models, and how a route declares its bodies and
  replies.
* ``query_models.py`` has the bodies of queries, answers and statistics.
* ``read_models.py`` has those of outlook, parameters, ledger, schema, classifier and probes.
* ``protocol_models.py`` has those of V2 and MLflow.
* ``refusal_replies.py`` lists the refusals of a route by status.
* ``openapi_document.py`` puts FastAPI's document and these refusals together.
* ``swagger_page.py`` makes the replies below ``/docs``: Swagger UI's two files, and ours of
  ``swagger/``, which start it.
"""
