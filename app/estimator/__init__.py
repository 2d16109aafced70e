"""Scikit-learn's interface to a release in memory, without a server.

``classifier.py`` is :class:`PrivateQueryClassifier`; ``memory_release.py`` answers by the
mechanisms that serve; ``columns.py`` turns arrays and frames into rows.
"""

from app.estimator.classifier import (
    OPENED,
    HopelessReleaseWarning,
    PrivateQueryClassifier,
    QueryAnswer,
    UnchargedDataWarning,
)

__all__ = [
    "OPENED",
    "HopelessReleaseWarning",
    "PrivateQueryClassifier",
    "QueryAnswer",
    "UnchargedDataWarning",
]
