"""Thresholds and constants by name, weight and frequency."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import logsumexp

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.noise.exact_choice import truncation_variation
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import pearson, unit_tests
from tests.builders.learners.labelings import shatters

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    thresholds = hypothesis_class(
        ClassAsked(kind="thresholds", tests=(CATEGORY,), depth=1, class_count=2)
    )
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
        hypothesis_class(ClassAsked(kind="thresholds", tests=unit_tests(1), depth=1, class_count=3))
    with pytest.raises(ConfigurationError, match="numeric"):
        ThresholdClass(tests=(CATEGORY,))


def test_kinds_by_name() -> None:
    """Stumps are trees of depth 1; without tests every tree is a constant."""
    stumps = hypothesis_class(
        ClassAsked(kind="stumps", tests=unit_tests(3), depth=3, class_count=3)
    )
    assert stumps == TreeClass(tests=unit_tests(3), depth=1, class_count=3)
    trees = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(3), depth=2, class_count=2))
    assert trees == TreeClass(tests=unit_tests(3), depth=2, class_count=2)
    assert hypothesis_class(ClassAsked(kind="trees", tests=(), depth=2, class_count=2)).size == 2
    with pytest.raises(ConfigurationError, match="unknown class 'ovals'"):
        hypothesis_class(ClassAsked(kind="ovals", tests=unit_tests(1), depth=1, class_count=2))


def opposed(count: int) -> NDArray[np.float64]:
    """Return points of two features of which one falls where the other rises."""
    rising = np.arange(count) / max(1, count - 1)
    return np.stack([rising, 1.0 - rising], axis=1)


def test_complementary_cuts_of_two_features_both_stay() -> None:
    """The complement of a threshold is no threshold: dropping one would lose its dichotomy."""
    thresholds = ThresholdClass(tests=unit_tests(2))
    points = thresholds.encode(opposed(2))
    assert points.tolist() == [[0, 1], [1, 0]]
    assert thresholds.restricted_to(points).tests == thresholds.tests
    stumps = TreeClass(tests=unit_tests(2), depth=1, class_count=2)
    assert stumps.restricted_to(points).tests == stumps.tests[:1]


@pytest.mark.parametrize("point_count", [1, 2, 5])
def test_public_points_leave_one_threshold_a_dichotomy(point_count: int) -> None:
    """As many as brute force finds, over cuts of two features and the constants."""
    cuts = tuple(
        BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)
        for feature in range(2)
        for cut in (0.0, 0.1, 0.3, 0.35, 0.8, 1.0)
    )
    thresholds = ThresholdClass(tests=cuts)
    points = thresholds.encode(opposed(point_count))
    found = {tree.predict(points).tobytes() for tree in thresholds.hypotheses}
    restricted = thresholds.restricted_to(points)
    bits = restricted.encode(opposed(point_count))
    kept = [tree.predict(bits).tobytes() for tree in restricted.hypotheses]
    assert len(kept) == len(set(kept))
    assert set(kept) == found


def test_without_public_points_the_thresholds_stay() -> None:
    """Nothing tells cuts apart."""
    assert THRESHOLDS.restricted_to(BITS[:0]) is THRESHOLDS


@pytest.mark.parametrize("feature_count", [1, 2, 3])
def test_the_dimension_of_thresholds_bounds_what_is_shattered(feature_count: int) -> None:
    """On one feature it is 1; of nine points on several, none more than it are shattered."""
    cuts = tuple(
        BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)
        for feature in range(feature_count)
        for cut in (0.2, 0.4, 0.6, 0.8)
    )
    thresholds = ThresholdClass(tests=cuts)
    bits = thresholds.encode(np.random.default_rng(2).random((9, feature_count)))
    labels = np.array([tree.predict(bits) for tree in thresholds.hypotheses])
    assert (thresholds.dimension == 1) is (feature_count == 1)
    assert shatters(labels, 1)
    assert not shatters(labels, thresholds.dimension + 1)


@pytest.mark.parametrize(("depth", "class_count"), [(0, 2), (1, 2), (2, 2)])
def test_the_dimension_of_trees_bounds_what_is_shattered(depth: int, class_count: int) -> None:
    """The logarithm of the number of trees, and of stumps as functions."""
    trees = TreeClass(tests=unit_tests(3), depth=depth, class_count=class_count)
    bits = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    drawn = [
        Tree(test_indices=tests, leaf_labels=leaves).predict(bits)
        for tests in product(range(3), repeat=2**depth - 1)
        for leaves in product(range(class_count), repeat=2**depth)
    ]
    assert not shatters(np.unique(drawn, axis=0), trees.dimension + 1)
    assert trees.dimension == {0: 1, 1: 3, 2: 8}[depth]
