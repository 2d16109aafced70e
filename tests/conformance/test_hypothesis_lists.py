"""The battery that every list of hypotheses passes: rows stand alone, blocks change nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.encoding.public_columns import PublicColumn
from app.learning.enumerated.boxes import axes_of, box_class
from app.learning.enumerated.hypothesis_list import count_errors, distinct_on
from app.learning.halfspaces.halfspaces import grid_halfspaces
from app.learning.hypothesis import ClassAsked
from app.learning.predictors.own_predictors import PublicFeature
from app.learning.predictors.predictor_classes import PredictorSource, predictor_class
from app.learning.registry import dichotomy_class
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.unit.learning.enumerated.test_boxes import TESTS, rows

if TYPE_CHECKING:
    from app.learning.enumerated.enumerated_class import EnumeratedClass
    from app.learning.enumerated.hypothesis_list import HypothesisList
    from app.learning.hypothesis import Hypothesis, HypothesisClass

COLUMNS = (
    PublicColumn(bounds=(-2.0, 9.0)),
    PublicColumn(category_count=1),
    PublicColumn(bounds=(-2.0, 9.0)),
)
VALUES = rows(50, seed=31)
CLASSES = {
    "thresholds": box_class("thresholds", axes_of(TESTS)),
    "intervals": box_class("intervals", axes_of(TESTS)),
    "rectangles": box_class("rectangles", axes_of(TESTS)),
    "halfspaces": grid_halfspaces(TESTS, COLUMNS),
    "trees": dichotomy_class(
        ClassAsked(kind="trees", columns=COLUMNS, depth=2, class_count=2), VALUES[:3]
    ),
    "stumps of three labels": dichotomy_class(
        ClassAsked(kind="stumps", columns=COLUMNS, depth=1, class_count=3), VALUES[:4]
    ),
    "predictors of one's own": predictor_class(
        PredictorSource(
            section="hypotheses",
            kind="tests.builders.learners.own_predictors:Steps",
            features=(
                PublicFeature(name="age", bounds=(-2.0, 9.0)),
                PublicFeature(name="home", categories=("town",)),
                PublicFeature(name="hours", bounds=(-2.0, 9.0)),
            ),
            classes=("no", "yes"),
        )
    ),
}

pytestmark = pytest.mark.parametrize("listed", CLASSES.values(), ids=CLASSES)


def test_a_class_is_what_its_protocols_say(listed: EnumeratedClass) -> None:
    """The type checker reads these lines; labels are class indices, frequencies are shares."""
    hypothesis_class: HypothesisClass = listed
    hypotheses: HypothesisList = listed.hypotheses
    assert hypothesis_class.size == len(hypotheses) == len(hypotheses.public_frequencies)
    assert 0.0 <= hypotheses.public_frequencies.min() <= hypotheses.public_frequencies.max() <= 1.0
    predicted = hypotheses.predict(hypotheses.encode(VALUES))
    assert predicted.shape == (len(hypotheses), len(VALUES))
    assert predicted.max() < hypotheses.class_count == hypothesis_class.class_count


def test_a_row_is_read_and_labelled_alone(listed: EnumeratedClass) -> None:
    """Its code and its labels do not depend on the rows beside it."""
    hypotheses = listed.hypotheses
    together = hypotheses.encode(VALUES)
    for index in range(len(VALUES)):
        alone = hypotheses.encode(VALUES[index : index + 1])
        assert np.array_equal(alone, together[index : index + 1], equal_nan=True)
        labels = hypotheses.predict(alone)[:, 0]
        assert np.array_equal(labels, hypotheses.predict(together)[:, index])


def test_parts_predict_as_the_whole(listed: EnumeratedClass) -> None:
    """A sublist keeps its order and its repeats."""
    hypotheses, encoded = listed.hypotheses, listed.encode(VALUES)
    indices = np.random.default_rng(1).integers(0, len(hypotheses), 12)
    part = hypotheses.take(indices)
    assert np.array_equal(part.predict(encoded), hypotheses.predict(encoded)[indices])
    assert np.array_equal(part.public_frequencies, hypotheses.public_frequencies[indices])
    assert [part.describe(index) for index in range(12)] == [
        hypotheses.describe(index) for index in indices.tolist()
    ]
    assert len(hypotheses.take(indices[:0])) == 0


def test_errors_are_counted_exactly(listed: EnumeratedClass) -> None:
    """The fast path, the blocks and the predictions agree, without rows too."""
    hypotheses, encoded = listed.hypotheses, listed.encode(VALUES)
    labels = np.random.default_rng(2).integers(0, hypotheses.class_count, len(VALUES))
    for count in (0, 1, len(VALUES)):
        expected = (hypotheses.predict(encoded[:count]) != labels[:count]).sum(axis=1)
        for counted in (
            hypotheses.error_counts(encoded[:count], labels[:count]),
            count_errors(hypotheses, encoded[:count], labels[:count]),
        ):
            assert counted.tolist() == expected.tolist()


def test_one_record_moves_every_count_by_one_at_most(listed: EnumeratedClass) -> None:
    """So no probability of a draw moves by more than e^epsilon, computed for all hypotheses."""
    encoded, epsilon = listed.encode(VALUES), 1.5
    labels = np.random.default_rng(3).integers(0, listed.class_count, len(VALUES))
    other, other_labels = encoded.copy(), labels.copy()
    other[7], other_labels[7] = encoded[23], (labels[7] + 1) % listed.class_count
    log_probabilities = [
        -0.5 * epsilon * listed.hypotheses.error_counts(*data)
        - listed.log_normaliser(*data, epsilon)
        for data in ((encoded, labels), (other, other_labels))
    ]
    difference = np.abs(log_probabilities[0] - log_probabilities[1])
    assert difference.max() <= epsilon + 1e-12


def test_a_draw_is_one_of_the_list(listed: EnumeratedClass) -> None:
    """It predicts as the hypothesis at its index, and is plain in private state."""
    encoded = listed.encode(VALUES)
    labels = np.random.default_rng(4).integers(0, listed.class_count, len(VALUES))
    drawn = listed.draw(encoded, labels, 2.0, ScriptedNoise(seeded_words(5)))
    hypothesis: Hypothesis = drawn
    expected = listed.hypotheses.predict(encoded)[drawn.index]
    assert hypothesis.predict(encoded).tolist() == expected.tolist()
    assert json.loads(json.dumps(hypothesis.to_dict())) == hypothesis.to_dict()


@pytest.mark.parametrize("point_count", [1, 6, 50])
def test_public_points_keep_the_first_of_each_dichotomy(
    listed: EnumeratedClass, point_count: int
) -> None:
    """No two that are kept agree on all points, and none that is left out differs from all."""
    points = listed.encode(VALUES[:point_count])
    seen: dict[bytes, int] = {}
    for index, labels in enumerate(listed.hypotheses.predict(points)):
        seen.setdefault(labels.tobytes(), index)
    assert distinct_on(listed.hypotheses, points).tolist() == list(seen.values())
    assert listed.restricted_to(points).size == len(seen)


def test_without_public_points_the_class_stays(listed: EnumeratedClass) -> None:
    """Nothing tells hypotheses apart."""
    assert listed.restricted_to(listed.encode(VALUES[:0])).size == listed.size
