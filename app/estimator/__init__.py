"""A scikit-learn estimator around a private release in memory, without a server.

* ``classifier.py`` defines :class:`PrivateQueryClassifier`: its parameters, ``fit`` and
  ``predict``.
* ``memory_release.py`` is the release that the estimator opens: charges, recorded answers, and the
  server's mechanisms, without a ledger.
* ``frame_columns.py`` turns arrays and data frames into public columns and feature vectors; if the
  caller gives no bounds, it reads them from the data, with a warning.
* ``parameter_tables.py`` converts the estimator's parameters to a configuration, and a
  configuration to parameters.
* ``public_classifier.py`` gives the published classifier, after it is drawn, scikit-learn's methods
  ``predict`` and ``predict_proba``.
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
