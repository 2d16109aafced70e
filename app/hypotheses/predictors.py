"""The public names of ``app/learning/predictors``, for predictors written by users.

A ledger binds the digest of a user's predictor file, so the imports in it cannot be edited:
this path stays whatever moves inside.
"""

from app.learning.predictors.own_predictors import (
    FALLBACK_LABEL,
    Predictor,
    PublicFeature,
    Row,
    Value,
)

__all__ = ["FALLBACK_LABEL", "Predictor", "PublicFeature", "Row", "Value"]
