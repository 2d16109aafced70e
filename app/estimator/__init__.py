"""A scikit-learn estimator around a private release in memory, without a server.

* ``classifier.py`` is :class:`PrivateQueryClassifier`: parameters, ``fit`` and ``predict``.
* ``memory_release.py`` is the release behind it: charges, recorded answers, and the mechanisms
  that serve, without a ledger.
* ``frame_columns.py`` turns arrays and data frames into public columns and vectors; it reads
  bounds that the caller does not give from the data, with a warning.
* ``parameter_tables.py`` turns parameters into a configuration, and a configuration into
  parameters.
* ``public_classifier.py`` is the published classifier, which may be copied.
"""

from app.estimator.classifier import (
    OPENED,
    HopelessReleaseWarning,
    PrivateQueryClassifier,
    QueryAnswer,
    UnchargedDataWarning,
)
from app.estimator.public_classifier import PublicClassifier

__all__ = [
    "OPENED",
    "HopelessReleaseWarning",
    "PrivateQueryClassifier",
    "PublicClassifier",
    "QueryAnswer",
    "UnchargedDataWarning",
]
