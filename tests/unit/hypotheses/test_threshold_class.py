"""Thresholds and constants by name, weight and frequency."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from app.errors import ConfigurationError
from app.hypotheses.binary_tests import BinaryTest
from app.hypotheses.registry import hypothesis_class
from app.hypotheses.threshold_class import ThresholdClass
from app.hypotheses.tree_class import TreeClass
from app.hypotheses.trees import Tree
from app.noise.choice import truncation_variation
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.unit.hypotheses.enumeration import pearson, unit_tests

BITS = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, 0]], dtype=np.uint8)
LABELS = np.array([0, 1, 1, 1, 0])
THRESHOLDS = ThresholdClass(tests=unit_tests(2))
CATEGORY = BinaryTest(feature_index=0, cut=None, category_code=0, public_frequency=0.5)


def test_errors_are_those_of_every_hypothesis() -> None:
    """Each count equals the one made by predicting."""
    hypotheses = ThresholdClass(tests=unit_tests(2)).hypotheses
    counted = [int((tree.predict(BITS) != LABELS).sum()) for tree in hypotheses]
    assert THRESHOLDS.error_counts(BITS, LABELS).tolist() == counted
    assert len(hypotheses) == 4


def test_the_normaliser_is_the_sum_of_weights() -> None:
    """Four hypotheses, four weights."""
    expected = logsumexp(-0.25 * THRESHOLDS.error_counts(BITS, LABELS))
    computed = ThresholdClass(tests=unit_tests(2)).log_normaliser(BITS, LABELS, 0.5)
    assert computed == pytest.approx(expected, abs=1e-12)


def test_frequencies_follow_the_weights() -> None:
    """Three degrees of freedom: above 42 has probability below 5e-9; seeded words."""
    trial_count = 4000
    thresholds = ThresholdClass(tests=unit_tests(2))
    noise = ScriptedNoise(seeded_words(4))
    seen = np.zeros(4)
    for _ in range(trial_count):
        seen[thresholds.hypotheses.index(thresholds.draw(BITS, LABELS, 1.0, noise))] += 1
    weights = np.exp(-0.5 * THRESHOLDS.error_counts(BITS, LABELS))
    statistic, freedom = pearson(seen, trial_count * weights / weights.sum())
    assert freedom == 3
    assert statistic < 42


def test_without_cuts_the_constants_are_left() -> None:
    """Public points that are all alike leave two hypotheses of depth 0."""
    thresholds = hypothesis_class("thresholds", (CATEGORY,), depth=1, class_count=2)
    assert isinstance(thresholds, ThresholdClass)
    assert (thresholds.depth, thresholds.size, thresholds.class_count) == (0, 2, 2)
    assert thresholds.hypotheses == (
        Tree(test_indices=(), leaf_labels=(0,)),
        Tree(test_indices=(), leaf_labels=(1,)),
    )


def test_one_draw_costs_one_truncation_and_a_small_error() -> None:
    """Bounds are those of a single choice."""
    thresholds = ThresholdClass(tests=unit_tests(2))
    assert thresholds.truncation_variation == truncation_variation(4)
    assert 0 < thresholds.log_weight_error(1000, 0.1) < 1e-12


def test_thresholds_refuse_what_they_cannot_be() -> None:
    """Three classes and categorical tests have no threshold."""
    with pytest.raises(ConfigurationError, match="two classes"):
        hypothesis_class("thresholds", unit_tests(1), depth=1, class_count=3)
    with pytest.raises(ConfigurationError, match="numeric"):
        ThresholdClass(tests=(CATEGORY,))


def test_kinds_by_name() -> None:
    """Stumps are trees of depth 1; without tests every tree is a constant."""
    stumps = hypothesis_class("stumps", unit_tests(3), depth=3, class_count=3)
    assert stumps == TreeClass(tests=unit_tests(3), depth=1, class_count=3)
    trees = hypothesis_class("trees", unit_tests(3), depth=2, class_count=2)
    assert trees == TreeClass(tests=unit_tests(3), depth=2, class_count=2)
    assert hypothesis_class("trees", (), depth=2, class_count=2).size == 2
    with pytest.raises(ConfigurationError, match="unknown class 'ovals'"):
        hypothesis_class("ovals", unit_tests(1), depth=1, class_count=2)
