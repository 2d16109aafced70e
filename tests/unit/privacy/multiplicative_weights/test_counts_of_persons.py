"""Queries over rows of persons: all rows of one together move a count by one at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.persons import Persons
from app.errors import InvariantError
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.multiplicative_weights import mechanism
from app.privacy.multiplicative_weights.mechanism import draw
from tests.builders.mechanisms.releasing import CELL_COUNT, counts_of, drawn, prescribed, table_of
from tests.builders.release.rows_of_persons import identities

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS_MAX = 50
CELLS = 4


def cells_of(persons: list[list[int]]) -> NDArray[np.float64]:
    """Return what the rows of persons count for in each cell, given the cells of each one's."""
    numbers = np.repeat(np.arange(len(persons)), [len(each) for each in persons])
    weights = Persons(numbers, identities(range(len(persons)))).weights
    places = np.concatenate([np.array(each, dtype=np.int64) for each in persons])
    return np.asarray(np.bincount(places, weights, CELLS), dtype=np.float64)


def some_persons(count: int, *, seed: int) -> list[list[int]]:
    """Return the cells of the rows of persons with up to fifty rows each."""
    generator = np.random.default_rng(seed)
    return [
        generator.integers(0, CELLS, generator.integers(1, ROWS_MAX + 1)).tolist()
        for _ in range(count)
    ]


def most_moved() -> int:
    """Return the most by which one person of up to fifty rows moves a count, of many tried."""
    labels, most = table_of(), 0
    for seed in range(60):
        others, (one, other) = some_persons(5, seed=seed), some_persons(2, seed=1000 + seed)
        for replacing in (other, [0], [3] * ROWS_MAX):
            counts = [
                np.array(mechanism._private_counts(labels, cells_of([*others, each])))
                for each in (one, replacing)
            ]
            most = max(most, int(np.abs(counts[0] - counts[1]).max()))
    return most


def test_a_person_moves_a_count_by_one_at_most() -> None:
    """Rounded to whole persons too, whatever the rows and however many."""
    assert most_moved() == 1


@pytest.mark.parametrize("fault", ["rows that count for one each", "cells rounded one by one"])
def test_rows_that_count_for_too_much_are_caught(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The planted faults move a count by two persons and more."""
    if fault.startswith("rows"):
        monkeypatch.setattr(Persons, "weights", property(lambda each: np.ones(len(each.numbers))))
    else:
        exactly = mechanism._private_counts
        monkeypatch.setattr(
            mechanism, "_private_counts", lambda table, cells: exactly(table, np.ceil(cells))
        )
    assert most_moved() > 1


def test_one_row_a_person_is_a_table_of_rows() -> None:
    """From one seed the tables are the same."""
    tables = [
        draw(drawn(), cells, ScriptedNoise(seeded_words(3)))
        for cells in (counts_of(), counts_of().astype(np.float64))
    ]
    assert tables[0] == tables[1]


def test_the_public_n_is_of_persons() -> None:
    """Weights of more persons than n are refused; a little less is what rounding down leaves."""
    less = cells_of([[0] * 3] * 40)
    assert less.sum() < sum(CELL_COUNT) == 40
    given = prescribed(query_noise=[99] * 4, thresholds=(50,))
    assert draw(given, less, ScriptedNoise([])).row_count == 40
    with pytest.raises(InvariantError, match="count for n persons at most"):
        draw(given, cells_of([[0]] * 41), ScriptedNoise([]))
