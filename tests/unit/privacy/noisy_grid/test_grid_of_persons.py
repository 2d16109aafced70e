"""Noisy counts of rows of persons: all rows of one together move a level by two at most."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from app.data.persons import WEIGHT_UNITS, Persons
from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_grid.mechanism import SENSITIVITY, Parameters, draw, level_counts
from tests.builders.mechanisms.gridding import SIDES, grid_parameters, grid_rows
from tests.builders.release.rows_of_persons import identities


def weights_of(row_counts: list[int]) -> np.ndarray:
    """Return the weights of rows of persons who have so many, person by person."""
    numbers = np.repeat(np.arange(len(row_counts)), row_counts)
    return Persons(numbers, identities(range(len(row_counts)))).weights


def of_persons(*, class_count: int = 2, count: int = 3) -> Parameters:
    """Return the parameters of counts by person."""
    given = grid_parameters(class_count=class_count, row_count=count)
    return replace(given, unit_count=WEIGHT_UNITS)


@pytest.mark.parametrize("class_count", [2, 3])
@pytest.mark.parametrize("rows", [1, 3, 7, 50])
def test_a_person_moves_a_level_by_two_persons_at_most(class_count: int, rows: int) -> None:
    """With rows in many cells, replaced by one row or as many; rounded cell by cell it is more."""
    parameters = of_persons(class_count=class_count)
    generator = np.random.default_rng(rows)
    ranks = generator.integers(0, SIDES[-1], (rows, 2)).astype(np.uint8)
    labels = generator.integers(0, class_count, rows)
    elsewhere = np.zeros((1, 2), dtype=np.uint8), np.array([class_count - 1])
    one = level_counts(parameters, ranks, labels, weights_of([rows]))
    other = level_counts(parameters, *elsewhere, weights_of([1]))
    for ours, theirs in zip(one, other, strict=True):
        assert np.abs(ours - theirs).sum() <= SENSITIVITY * WEIGHT_UNITS


def test_counts_that_are_rounded_cell_by_cell_are_caught() -> None:
    """The planted fault: in whole persons, one whose rows lie in many cells moves all of them."""
    ranks = np.array([[place, place] for place in range(4)] * 3, dtype=np.uint8)
    labels, weights = np.zeros(12, dtype=np.int64), weights_of([4, 4, 4])
    counts = [
        level_counts(of_persons(), ranks[:rows], labels[:rows], weights[:rows])[-1]
        for rows in (8, 12)
    ]
    assert np.abs(counts[0] - counts[1]).sum() == WEIGHT_UNITS
    rounded = [np.rint(each / WEIGHT_UNITS) for each in counts]  # a half in four cells, then 3/4
    assert np.abs(rounded[0] - rounded[1]).sum() > SENSITIVITY


def test_noise_is_for_parts_of_a_person() -> None:
    """Its scale in persons is that in rows, and a row each counts for all parts of its person."""
    by_rows, by_persons = grid_parameters(), of_persons(count=40)
    assert [scale / WEIGHT_UNITS for scale in by_persons.scales] == list(by_rows.scales)
    ranks, labels = grid_rows()
    counts = level_counts(by_rows, ranks, labels)
    weighed = level_counts(by_persons, ranks, labels, weights_of([1] * 40))
    for ours, theirs in zip(weighed, counts, strict=True):
        np.testing.assert_array_equal(ours, WEIGHT_UNITS * theirs)


def test_weights_and_their_parts_come_together() -> None:
    """Weights in whole records, or of more persons than n, are refused before a draw."""
    ranks, labels = grid_rows()
    weights = weights_of([1] * 40)
    noise = ScriptedNoise(seeded_words(1))
    with pytest.raises(InvariantError, match="weights are counted in their units"):
        draw(grid_parameters(), (ranks, labels), noise, weights)
    with pytest.raises(InvariantError, match="weights are counted in their units"):
        draw(of_persons(count=40), (ranks, labels), noise)
    with pytest.raises(InvariantError, match="for the public n persons at most"):
        draw(of_persons(count=39), (ranks, labels), noise, weights)
    with pytest.raises(InvariantError, match="every row has a weight"):
        draw(of_persons(count=40), (ranks, labels), noise, weights[1:])
    drawn = draw(of_persons(count=40), (ranks, labels), noise, weights)
    assert any((numbers % WEIGHT_UNITS).any() for numbers in drawn)


def test_the_noise_of_a_tiny_share_is_refused() -> None:
    """In parts of a person noise would leave 64 bits sooner than in rows."""
    share = Fraction(1, 10**6)
    rows = grid_parameters(epsilon=share)
    with pytest.raises(InvariantError, match="noise stays within 64 bits"):
        replace(rows, unit_count=WEIGHT_UNITS)
