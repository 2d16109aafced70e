"""Cells are predicted from public points, and from shares only where one feature parts them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.data.schema import CategoricalFeature, Schema
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.planning.from_settings import plan_settings
from app.planning.trial.trial_from_settings import (
    asked_by_tests,
    planned_answer_time,
    with_prediction,
)
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


def test_a_learner_that_takes_too_long_is_not_tried_out() -> None:
    """The plan says so in place of a prediction."""
    tests = {name: [*range(15, 210, 15)] for name in "rgb"}
    settings = load_settings(
        EXAMPLE,
        {"CONCLAVE_HYPOTHESES__DEPTH": "4", "CONCLAVE_HYPOTHESES__TESTS": json.dumps(tests)},
    )
    planned = with_prediction(settings, plan_settings(settings, None))
    assert planned.unpredicted == "its learners take too long to be tried out"


def test_without_a_share_for_answers_nothing_is_predicted_or_timed() -> None:
    """The plan says why, and no answer is measured; nor is one of an unknown number of rows."""
    shares = {
        "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0",
        "CONCLAVE_PRIVACY__SHARES__RELABEL": "0",
        "CONCLAVE_PRIVACY__SHARES__CLASSIFIER": "1",
    }
    settings = load_settings(EXAMPLE, shares)
    planned = with_prediction(settings, plan_settings(settings, None))
    assert planned.unpredicted == "answers have no share"
    assert planned_answer_time(settings, planned) is None


def test_labels_from_a_private_grid_are_not_predicted() -> None:
    """The plan says that its made-up learners do not search such a grid."""
    settings = load_settings(
        EXAMPLE,
        {
            "CONCLAVE_HYPOTHESES__GRID": "private",
            "CONCLAVE_HYPOTHESES__DEPTH": "1",
            "CONCLAVE_DATA__ROWS": "500",
            "CONCLAVE_PRIVACY__EPSILON": "20",
            "CONCLAVE_ANSWERS__ENSEMBLE": "50",
        },
    )
    planned = with_prediction(settings, plan_settings(settings, None))
    assert planned.unpredicted == "labels come from a private grid, which learners do not search"


def test_an_answer_of_unknown_rows_is_not_timed() -> None:
    """Where the number of rows is not given no learner can be made up."""
    settings = load_settings(EXAMPLE, {})
    planned = plan_settings(settings, None)
    unknown = replace(planned, request=replace(planned.request, row_count=None))
    assert planned_answer_time(settings, unknown) is None


def test_tests_of_categories_have_names() -> None:
    """A leaf at risk is named by what its tests ask, of categories and of any other string."""
    schema = Schema(
        features=(CategoricalFeature(name="work", categories=("office", "field")),),
        classes=("no", "yes"),
        label="label",
    )
    tests = tuple(
        BinaryTest(feature_index=0, cut=None, category_code=code, public_frequency=share)
        for code, share in enumerate((0.7, 0.2, 0.1))
    )
    trees = hypothesis_class(ClassAsked(kind="trees", tests=tests, depth=1, class_count=2))
    names, shares = zip(*asked_by_tests(schema, trees), strict=True)
    assert names == ("work = office", "work = field", "work = another")
    assert shares == pytest.approx((0.3, 0.2, 0.1))
