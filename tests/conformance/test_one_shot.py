"""The battery that every one-shot mechanism passes."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.mechanisms.drawing import ROW_COUNT, parameters, private_rows, small_class
from tests.conformance.cases import BAD_DRAW_PARAMETERS, ONE_SHOT_CASES, OneShotCase

SEEDS = range(40)

pytestmark = pytest.mark.parametrize(
    "case", ONE_SHOT_CASES, ids=[case.name for case in ONE_SHOT_CASES]
)


def test_parameters_are_immutable_and_validate_themselves(case: OneShotCase) -> None:
    """They are frozen, and what no claim covers never comes into being."""
    given = case.given(parameters())
    for field in fields(given):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(given, field.name, None)
    for make in BAD_DRAW_PARAMETERS:
        with pytest.raises(InvariantError):
            make()
    assert case.name in case.draw.__module__.split(".")


def test_a_draw_is_a_function_of_its_noise(case: OneShotCase) -> None:
    """The same words give the same hypothesis: nothing else is drawn."""
    drawn = [
        case.tree_of(
            case.draw(case.given(parameters()), private_rows(), ScriptedNoise(seeded_words(9)))
        )
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]


def test_other_noise_gives_other_draws(case: OneShotCase) -> None:
    """Over 40 seeds more than one hypothesis comes: the draw is random."""
    drawn = {
        case.tree_of(
            case.draw(case.given(parameters()), private_rows(), ScriptedNoise(seeded_words(seed)))
        )
        for seed in SEEDS
    }
    assert len(drawn) > 1


def test_rows_are_only_read(case: OneShotCase) -> None:
    """Arrays that cannot be written will do, and hold the same values afterwards."""
    bits, labels = private_rows()
    before = copy.deepcopy((bits, labels))
    case.draw(case.given(parameters()), (bits, labels), ScriptedNoise(seeded_words(1)))
    assert np.array_equal(bits, before[0])
    assert np.array_equal(labels, before[1])


def test_a_drawn_hypothesis_is_one_of_the_class(case: OneShotCase) -> None:
    """Every test and label of the tree is one that the class has."""
    hypotheses = small_class()
    for seed in SEEDS:
        noise = ScriptedNoise(seeded_words(seed))
        tree = case.tree_of(case.draw(case.given(parameters()), private_rows(), noise))
        assert tree.depth == hypotheses.depth
        assert max(tree.test_indices) < len(hypotheses.tests)
        assert max(tree.leaf_labels) < hypotheses.class_count


@pytest.mark.parametrize("row_count", [ROW_COUNT - 1, ROW_COUNT + 1])
def test_other_rows_than_the_public_number_are_refused(case: OneShotCase, row_count: int) -> None:
    """Rows of another number raise, and nothing is drawn."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError):
        case.draw(case.given(parameters(row_count=row_count)), private_rows(), noise)
    assert noise.drawn_count == 0


def test_noise_that_ends_is_told(case: OneShotCase) -> None:
    """Without enough words the draw fails loudly instead of making some up."""
    with pytest.raises(InvariantError, match="the scripted noise has ended"):
        case.draw(case.given(parameters()), private_rows(), ScriptedNoise([1]))
