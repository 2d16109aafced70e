"""The OpenAPI document: FastAPI's, of the routes' models, with every refusal of each.

``declaring.py`` is what a route's module says of it, ``refusal_replies.py`` what is said of
refusals, and ``openapi_document.py`` puts both together.
"""
