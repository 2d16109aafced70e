"""The padding of replies is a public constant of configuration and ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.release.terms.answer_time_padding import padding_seconds
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from collections.abc import Mapping

TREE = {"learner__estimator": "sklearn.tree.DecisionTreeClassifier"}
LINEAR = {"learner__estimator": "sklearn.linear_model.LogisticRegression"}
SCORES = {"answers__output": "score", "privacy__shares__relabel": "0"}


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 0.0),
        ({"learner__rule": "halving"}, 0.0),
        ({"answers__reply_padding_milliseconds": "250"}, 0.25),
        (TREE, 0.4),
        (LINEAR, 0.0),
        ({**LINEAR, **SCORES}, 0.4),
        ({**TREE, "answers__reply_padding_milliseconds": "0"}, 0.0),
        ({**TREE, "answers__reply_padding_milliseconds": "7"}, 0.007),
    ],
)
def test_replies_are_padded_by_rule(
    small_release: SmallRelease, changes: Mapping[str, str], seconds: float
) -> None:
    """What works alike on every query is not padded, the rest is, and the setting beats both."""
    settings = SmallRelease(small_release.folder, changes).settings()
    assert padding_seconds(settings, 800) == seconds
