"""Noisy counts on grids: exact counts, and what one record moves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auditing.hypothesis_draws import grid_bound
from app.errors import InvariantError
from app.learning.encoding.encoded_rows import Tally
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_grid.mechanism import (
    SENSITIVITY,
    draw,
    draw_counted,
    level_counts,
    tally,
)
from tests.builders.mechanisms.gridding import ROW_COUNT, SIDES, grid_parameters, grid_rows

RECORDS = st.tuples(
    st.tuples(st.integers(0, SIDES[-1] - 1), st.integers(0, SIDES[-1] - 1)), st.integers(0, 2)
)


@given(
    others=st.lists(RECORDS, max_size=8),
    pair=st.tuples(RECORDS, RECORDS),
    class_count=st.sampled_from([2, 3]),
)
def test_one_record_moves_a_level_by_two_at_most(
    others: list[tuple[tuple[int, int], int]],
    pair: tuple[tuple[tuple[int, int], int], tuple[tuple[int, int], int]],
    class_count: int,
) -> None:
    """Whatever the other records, the magnitudes of a level's changes add up to two at most."""
    parameters = grid_parameters(class_count=class_count, row_count=len(others) + 1)

    def counted(rows: list[tuple[tuple[int, int], int]]) -> list[np.ndarray]:
        ranks = np.array([ranks for ranks, _ in rows], dtype=np.uint8)
        labels = np.array([label % class_count for _, label in rows], dtype=np.int64)
        return level_counts(parameters, ranks, labels)

    first, second = (counted([*others, record]) for record in pair)
    moved = [np.abs(one - other).sum() for one, other in zip(first, second, strict=True)]
    assert max(moved) <= SENSITIVITY


@pytest.mark.parametrize("class_count", [2, 3])
def test_every_row_is_counted_once_a_level(class_count: int) -> None:
    """Counts add up to the rows; with two labels the differences do, of their signs."""
    ranks, labels = grid_rows(class_count=class_count)
    levels = level_counts(grid_parameters(class_count=class_count), ranks, labels)
    whole = ROW_COUNT if class_count > 2 else 2 * int(labels.sum()) - ROW_COUNT
    assert [int(each.sum()) for each in levels] == [whole] * len(SIDES)
    assert [len(each) for each in levels] == [side**2 for side in SIDES]


def test_a_coarse_cell_holds_its_finest_cells() -> None:
    """The counts of four finest cells add up to those of the cell above them."""
    ranks, labels = grid_rows()
    coarse, fine = level_counts(grid_parameters(), ranks, labels)
    blocks = fine.reshape(2, 2, 2, 2).sum(axis=(1, 3))
    assert np.array_equal(blocks.ravel(), coarse.ravel())


@pytest.mark.parametrize("class_count", [2, 3])
def test_a_tally_draws_what_its_rows_draw(class_count: int) -> None:
    """Tallies of parts add up, and the mechanism does not see who counted."""
    parameters = grid_parameters(class_count=class_count)
    ranks, labels = grid_rows(class_count=class_count)
    halves = (slice(0, 7), slice(7, None))
    total = sum(tally(parameters, ranks[half], labels[half]) for half in halves)
    noise = (ScriptedNoise(seeded_words(1)), ScriptedNoise(seeded_words(1)))
    drawn = draw_counted(parameters, Tally(np.asarray(total), ROW_COUNT), noise[0])
    wanted = draw(parameters, (ranks, labels), noise[1])
    assert all(np.array_equal(one, other) for one, other in zip(drawn, wanted, strict=True))
    with pytest.raises(InvariantError, match="the public n"):
        draw_counted(parameters, Tally(np.asarray(total), ROW_COUNT + 1), noise[0])


@pytest.mark.parametrize("class_count", [2, 5])
def test_the_bound_is_the_whole_share(class_count: int) -> None:
    """A replaced label shows all of epsilon, which two scales a level add up to."""
    parameters = grid_parameters(class_count=class_count, epsilon=Fraction(7, 10))
    assert grid_bound(parameters).epsilon == pytest.approx(0.7)
