"""Cells are predicted from public points, and from shares only where one feature parts them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from app.planning.from_settings import plan_settings
from app.planning.trial.planned_answers import with_prediction
from app.settings.settings import load_settings

EXAMPLE = Path(__file__).parents[4] / "examples" / "skin.toml"
# Four cells of two numbers, two of one.
SEVERAL = ["b >= 100", "g >= 100", "", "", "g >= 50", "", ""]
ONE = ["b >= 100", "", ""]
POINTS = np.random.default_rng(5).uniform(0, 255, (300, 3))


@pytest.mark.parametrize(
    ("cells", "with_points", "is_predicted"),
    [(SEVERAL, False, False), (SEVERAL, True, True), (ONE, False, True)],
)
def test_cells_of_several_features_want_public_points(
    cells: list[str], *, with_points: bool, is_predicted: bool
) -> None:
    """Without any the reason names the option that brings them; with them labels are predicted."""
    settings = load_settings(
        EXAMPLE,
        {
            "CONCLAVE_HYPOTHESES__CLASS": "cells",
            "CONCLAVE_HYPOTHESES__CELLS": json.dumps(cells),
            "CONCLAVE_LEARNER__RULE": "canonical",
            "CONCLAVE_ANSWERS__ENSEMBLE": "220000",
        },
    )
    planned = with_prediction(
        settings,
        plan_settings(settings, None),
        points=POINTS if with_points else None,
        hypothesis_count=2,
    )
    assert (planned.prediction is not None) is is_predicted
    assert ("--public" in planned.unpredicted) is not is_predicted
    if planned.prediction is not None:
        # A quarter of 220,000 votes or more is far beyond what is needed.
        assert planned.prediction.own.likely.number == pytest.approx(50_000, rel=0.01)
