"""The OpenAPI document of the interface; data without logic, but for its assembly.

* ``openapi_document.py`` assembles the document from routes, operations and refusals.
* ``operation.py`` has the parts of one operation: bodies, parameters, replies.
* ``refusal_replies.py`` lists the refusals of an operation by status.
* ``schemas.py`` has the JSON Schemas of queries, answers, ledger, classifier and statistics.
* ``budget_schema.py`` has those of budget, outlook and parameters.
* ``protocol_paths.py`` has the operations of V2 and MLflow, ``protocol_schemas.py`` their schemas.
* ``components.py`` lists all schemas by the name that they have in the document.
"""
