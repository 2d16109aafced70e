"""The public names of ``app/learning/predictors``, for files of predictors that users write.

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
