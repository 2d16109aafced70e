"""Rows whose chunks are split on purpose, and an estimator that keeps their labels."""

from __future__ import annotations

import numpy as np

from app.estimator import PrivateQueryClassifier

ROW_COUNT = 600
ENSEMBLE = 30
CLASSES = ["no", "yes"]


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Return one feature on [0, 1] and labels that follow it less and less to the right."""
    generator = np.random.default_rng(5)
    values = generator.random((ROW_COUNT, 1))
    return values, np.where(generator.random(ROW_COUNT) < values[:, 0] * 0.8, "yes", "no")


def estimator(**changes: object) -> PrivateQueryClassifier:
    """Return an estimator of 30 stumps without relabelling, not fitted; it may be hopeless."""
    usual: dict[str, object] = {
        "epsilon": 2.0,
        "delta": 1e-3,
        "bounds": (0, 1),
        "classes": CLASSES,
        "shares": {"answers": 0.7, "classifier": 0.3},
        "hypotheses": "stumps",
        "bins": 8,
        "ensemble": ENSEMBLE,
        "queries": 1000,
        "cutoff": 4,
        "even_if_hopeless": True,
    }
    return PrivateQueryClassifier(**{**usual, **changes})  # type: ignore[arg-type]  # a test names real ones


def fitted(**changes: object) -> PrivateQueryClassifier:
    """Return that estimator, fitted."""
    return estimator(**changes).fit(*rows())
