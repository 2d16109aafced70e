"""The OpenAPI document: one module for each part, put together by ``document.py``."""
