"""The OpenAPI document: FastAPI's, of the routes' models, with every refusal of each.

A route's module declares it with ``declaring.py``, the models and ``refusal_replies.py``;
``openapi_document.py`` puts the document together.
"""
