"""The battery of mechanisms that count with noise on public grids."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_grid.mechanism import draw
from tests.builders.mechanisms.gridding import ROW_COUNT, grid_parameters, grid_rows


def test_parameters_are_immutable_and_validate_themselves() -> None:
    """They are frozen, and what no claim covers never comes into being."""
    given = grid_parameters()
    for field in fields(given):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(given, field.name, None)
    part = Fraction(1, 2)
    bad: dict[str, dict[str, Any]] = {
        "the levels add up": {"level_epsilons": (part, part + Fraction(1, 10**30))},
        "no level's share is zero": {"level_epsilons": (Fraction(1), Fraction(0))},
        "every level has a share": {"level_epsilons": (Fraction(1),)},
        "noise stays within 64 bits": {"level_epsilons": (part, Fraction(1, 1 << 40))},
        "at least one row": {"row_count": 0},
        "two or more classes": {"class_count": 1},
    }
    for claim, changes in bad.items():
        with pytest.raises(InvariantError, match=claim):
            replace(given, **changes)


@pytest.mark.parametrize("class_count", [2, 3])
def test_a_draw_is_a_function_of_its_noise(class_count: int) -> None:
    """The same words give the same counts, others give others, and rows stay as they are."""
    given = grid_parameters(class_count=class_count)
    rows = grid_rows(class_count=class_count)
    before = copy.deepcopy(rows)
    drawn = [
        np.concatenate(draw(given, rows, ScriptedNoise(seeded_words(seed)))) for seed in (9, 9, 10)
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert np.array_equal(rows[0], before[0])
    assert np.array_equal(rows[1], before[1])


@pytest.mark.parametrize("row_count", [ROW_COUNT - 1, ROW_COUNT + 1])
def test_other_rows_than_the_public_number_are_refused(row_count: int) -> None:
    """Rows of another number raise, and nothing is drawn."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError):
        draw(grid_parameters(row_count=row_count), grid_rows(), noise)
    assert noise.drawn_count == 0
