"""The part of ``app/learning/predictors`` that users import in files of their own predictors.

A predictor is a function from a row to a label, written in Python.

The ledger of a release records the digest of the user's file, so the imports in that file cannot be
edited later. Therefore this import path stays the same when the code moves.
"""

from app.learning.predictors.own_predictors import (
    FALLBACK_LABEL,
    Predictor,
    PublicFeature,
    Row,
    Value,
)

__all__ = ["FALLBACK_LABEL", "Predictor", "PublicFeature", "Row", "Value"]
