"""A client of a Conclave server, and an evaluator of published classifiers.

``Client`` and ``AsyncClient`` send queries to a server; ``load_classifier`` reads a published
classifier, which predicts without a server. The package imports nothing from the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conclave_client.answers import Answer, Bin, Budget, Schema, Statistics
from conclave_client.client import AsyncClient, Client
from conclave_client.errors import (
    AccessError,
    ConclaveError,
    InvalidRequestError,
    LimitReachedError,
    NotConclaveError,
    NotPublishedError,
    ServerFailedError,
    UnavailableError,
)
from conclave_client.requests import Features, Value
from conclave_client.retries import Retries

if TYPE_CHECKING:
    from conclave_client.classifier import (
        Classifier,
        UnsupportedClassifierError,
        load_classifier,
    )

__version__ = "0.1.0"
__all__ = [
    "AccessError",
    "Answer",
    "AsyncClient",
    "Bin",
    "Budget",
    "Classifier",
    "Client",
    "ConclaveError",
    "Features",
    "InvalidRequestError",
    "LimitReachedError",
    "NotConclaveError",
    "NotPublishedError",
    "Retries",
    "Schema",
    "ServerFailedError",
    "Statistics",
    "UnavailableError",
    "UnsupportedClassifierError",
    "Value",
    "load_classifier",
]


def __getattr__(name: str) -> object:
    """Import what needs numpy when it is asked for: a program that only asks starts faster."""
    if name in {"Classifier", "UnsupportedClassifierError", "load_classifier"}:
        from conclave_client import classifier

        return getattr(classifier, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
