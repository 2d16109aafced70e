"""Scikit-learn's interface to a release in memory, without a server.

* ``classifier.py`` is :class:`PrivateQueryClassifier`: parameters, ``fit`` and ``predict``.
* ``memory_release.py`` is the release behind it: charges, recorded answers, and the mechanisms
  that serve, without a ledger.
* ``frame_columns.py`` turns arrays and data frames into public columns and vectors; it reads
  bounds that the caller does not give from the data, with a warning.
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
