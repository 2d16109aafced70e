"""The battery of mechanisms that descend by noisy sums."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_gradient.mechanism import draw
from tests.builders.mechanisms.descending import ROW_COUNT, STEPS, descent_parameters, descent_rows


def test_parameters_are_immutable_and_validate_themselves() -> None:
    """They are frozen, and what no claim covers never comes into being."""
    given = descent_parameters()
    for field in fields(given):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(given, field.name, None)
    louder = replace(given.calibration, step_weights=(2, 2, 3))
    quieter = replace(given.calibration, variance_ratio=given.calibration.variance_ratio * 99 / 100)
    bad: dict[str, dict[str, Any]] = {
        "the noise covers every step": {"calibration": quieter},
        "covers every step": {"calibration": louder},
        "there is a step": {"calibration": replace(given.calibration, step_weights=())},
        "every step has a weight": {"calibration": replace(given.calibration, step_weights=(6, 0))},
        "a step goes somewhere": {"rate": 0.0},
        "at least one row": {"row_count": 0},
        "two or more classes": {"class_count": 1},
        "sums over all rows are exact": {"row_count": 2**40},
    }
    for claim, changes in bad.items():
        with pytest.raises(InvariantError, match=claim):
            replace(given, **changes)


@pytest.mark.parametrize("class_count", [2, 3])
def test_a_draw_is_a_function_of_its_noise(class_count: int) -> None:
    """The same words give the same weights, and others give others."""
    given = descent_parameters(class_count=class_count)
    rows = descent_rows(class_count=class_count)
    before = copy.deepcopy(rows)
    drawn = [draw(given, rows, ScriptedNoise(seeded_words(seed))).values for seed in (9, 9, 10)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(rows[0], before[0])
    assert np.array_equal(rows[1], before[1])


@pytest.mark.parametrize("row_count", [ROW_COUNT - 1, ROW_COUNT + 1])
def test_other_rows_than_the_public_number_are_refused(row_count: int) -> None:
    """Rows of another number raise, and nothing is drawn."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError):
        draw(descent_parameters(row_count=row_count), descent_rows(), noise)
    assert noise.drawn_count == 0


def test_noise_that_ends_is_told() -> None:
    """Without enough words the draw fails loudly instead of making some up."""
    with pytest.raises(InvariantError, match="the scripted noise has ended"):
        draw(descent_parameters(), descent_rows(), ScriptedNoise([1] * STEPS))
