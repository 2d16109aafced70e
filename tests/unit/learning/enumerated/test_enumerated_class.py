"""Exact weights over a list: normaliser, draws, representatives and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.special import logsumexp

from app.errors import ConfigurationError, InvariantError
from app.learning.enumerated.boxes import axes_of, box_class
from app.learning.enumerated.enumerated_class import (
    SIZE_MAX,
    EnumeratedClass,
    refuse_labels,
    refuse_size,
)
from app.noise.exact_choice import truncation_variation
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import pearson
from tests.unit.learning.enumerated.test_boxes import TESTS, rows

if TYPE_CHECKING:
    from app.learning.enumerated.hypothesis_list import HypothesisList

VALUES = rows(30, seed=11)
LABELS = np.random.default_rng(12).integers(0, 2, 30)
KINDS = ("intervals", "rectangles")


def listed(kind: str) -> EnumeratedClass:
    """Return a class of boxes over a few cuts of two features."""
    return box_class(kind, axes_of(TESTS))


def counted_errors(hypotheses: HypothesisList) -> list[int]:
    """Count errors by predicting."""
    predicted = hypotheses.predict(hypotheses.encode(VALUES))
    return [int((labels != LABELS).sum()) for labels in predicted]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.01, 0.7, 30.0])
def test_the_normaliser_is_the_sum_of_all_weights(kind: str, epsilon: float) -> None:
    """Within 1e-9 of one exponential a hypothesis."""
    hypotheses = listed(kind)
    expected = logsumexp(
        [-epsilon * errors / 2 for errors in counted_errors(hypotheses.hypotheses)]
    )
    computed = hypotheses.log_normaliser(hypotheses.encode(VALUES), LABELS, epsilon)
    assert computed == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_frequencies_follow_the_weights(kind: str) -> None:
    """16 or 61 hypotheses: Pearson's statistic stays below its mean by ten deviations; seeded."""
    hypotheses = listed(kind)
    encoded, trial_count = hypotheses.encode(VALUES), 4000
    noise = ScriptedNoise(seeded_words(4))
    seen = np.zeros(hypotheses.size)
    for _ in range(trial_count):
        seen[hypotheses.draw(encoded, LABELS, 0.5, noise).index] += 1
    weights = np.exp(-0.25 * np.array(counted_errors(hypotheses.hypotheses)))
    statistic, freedom = pearson(seen, trial_count * weights / weights.sum())
    assert freedom == hypotheses.size - 1
    assert statistic < freedom + 10 * np.sqrt(2 * freedom)


def test_a_drawn_hypothesis_predicts_and_is_described() -> None:
    """It is the one at its index, alone."""
    hypotheses = listed("rectangles")
    encoded = hypotheses.encode(VALUES)
    drawn = hypotheses.draw(encoded, LABELS, 1.0, ScriptedNoise(seeded_words(1)))
    predicted = hypotheses.hypotheses.predict(encoded)[drawn.index]
    assert drawn.predict(encoded).tolist() == predicted.tolist()
    described = hypotheses.hypotheses.describe(drawn.index)
    assert drawn.to_dict() == {"index": drawn.index, "description": described}


def test_the_error_of_weights_and_draws_is_that_of_one_choice() -> None:
    """Bounds are those of a single choice, and grow with epsilon and n."""
    hypotheses = listed("intervals")
    assert hypotheses.truncation_variation == truncation_variation(hypotheses.size)
    assert 0 < hypotheses.log_weight_error(1000, 0.1) < hypotheses.log_weight_error(1000, 1.0)
    assert hypotheses.log_weight_error(1000, 0.1) < 1e-12
    assert hypotheses.class_count == 2


@pytest.mark.parametrize("kind", KINDS)
def test_public_points_leave_one_hypothesis_a_dichotomy(kind: str) -> None:
    """As many as brute force finds, and none that agree on all points."""
    hypotheses, points = listed(kind), rows(6, seed=3)
    restricted = hypotheses.restricted_to(hypotheses.encode(points))
    labels = hypotheses.hypotheses.predict(hypotheses.encode(points))
    assert restricted.size == len(np.unique(labels, axis=0)) < hypotheses.size
    kept = restricted.hypotheses.predict(restricted.encode(points))
    assert len(np.unique(kept, axis=0)) == restricted.size
    assert restricted.dimension <= restricted.size.bit_length() - 1


def test_without_public_points_the_class_stays() -> None:
    """Nothing tells hypotheses apart."""
    hypotheses = listed("intervals")
    assert hypotheses.restricted_to(hypotheses.encode(VALUES[:0])) is hypotheses


def test_alike_points_leave_the_constants_behaviours() -> None:
    """One point has two labels."""
    hypotheses = listed("rectangles")
    restricted = hypotheses.restricted_to(hypotheses.encode(VALUES[:1]))
    assert (restricted.size, restricted.dimension) == (2, 1)


def test_what_cannot_be_listed_is_refused_by_its_size() -> None:
    """The line has the number, or its order of magnitude, and what to change."""
    refuse_size(SIZE_MAX, "boxes")
    with pytest.raises(ConfigurationError, match=r"boxes number 1048577, .*: lower bins, list"):
        refuse_size(SIZE_MAX + 1, "boxes")
    with pytest.raises(ConfigurationError, match=r"boxes number about 10\^6021, "):
        refuse_size(1 << 20_000, "boxes")


def test_two_sides_take_two_labels() -> None:
    """A third could never be given."""
    refuse_labels("intervals", 2)
    with pytest.raises(ConfigurationError, match="intervals need two classes, not 3: use trees"):
        refuse_labels("intervals", 3)


def test_an_empty_list_is_no_class() -> None:
    """There would be nothing to draw."""
    with pytest.raises(InvariantError, match="a class has a hypothesis"):
        EnumeratedClass(listed("intervals").hypotheses.take(np.array([], dtype=np.int64)), 1)
