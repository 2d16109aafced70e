"""Nested grids: ranks of numbers, cells of ranks, and the level by which a cell answers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import InvariantError
from app.learning.cells.nested_grid import SCALES_ABOVE, Grid, decided, equal_cuts
from tests.builders.mechanisms.gridding import GRID

SCALES = (Fraction(1), Fraction(1))
ABOVE = SCALES_ABOVE + 1
LINE = Grid(features=(0,), cuts=(equal_cuts(0.0, 4.0, parts=4),), sides=(2, 4))


def column(*numbers: int) -> np.ndarray:
    """Return one number a cell."""
    return np.array(numbers, dtype=np.int64)[:, None]


@given(
    bounds=st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
    .map(sorted)
    .filter(lambda both: both[0] < both[1]),
    value=st.floats(allow_nan=False),
    data=st.data(),
)
def test_a_number_has_the_rank_of_the_same_number_clipped(
    bounds: list[float], value: float, data: st.DataObject
) -> None:
    """So a row, which is clipped when it is read, lies where the document puts it."""
    lower, upper = bounds
    cuts = equal_cuts(lower, upper, parts=8)
    assert list(cuts) == sorted(cuts)
    number = data.draw(st.sampled_from([value, lower, upper, *cuts]))
    numbers = np.array([number, min(max(number, lower), upper)])
    first, second = np.searchsorted(cuts, numbers, side="right")
    assert first == second


def test_bounds_that_hold_few_doubles_have_cuts_above_the_lower() -> None:
    """Where intervals are thinner than doubles lie apart, the lower bound has rank 0 still."""
    upper = math.nextafter(1.0, 2.0)
    assert equal_cuts(1.0, upper, parts=4) == (upper,) * 3


@given(
    values=st.lists(
        st.tuples(*[st.one_of(st.floats(0, 1), st.just(math.nan))] * 2), min_size=1, max_size=20
    )
)
def test_a_row_is_read_alone(values: list[tuple[float, float]]) -> None:
    """Rows encoded together have the ranks that each has alone, in whatever order."""
    rows = np.array(values)
    together = GRID.encode(rows)
    alone = np.vstack([GRID.encode(row[None, :]) for row in rows])
    assert np.array_equal(together, alone)
    assert np.array_equal(GRID.encode(rows[::-1]), together[::-1])


def test_a_missing_number_has_rank_zero() -> None:
    """It is at or above no cut, as it meets no test of a tree."""
    assert GRID.encode(np.array([[math.nan, 0.9]])).tolist() == [[0, 3]]


def test_a_cell_answers_by_the_finest_level_that_stands_out() -> None:
    """One cell by its own lead, one by the cell above, one by the coarsest without a lead."""
    coarse, fine = column(-ABOVE, 1), column(ABOVE, SCALES_ABOVE, -SCALES_ABOVE, -ABOVE)
    assert decided(LINE, [coarse, fine], SCALES).tolist() == [1, 0, 1, 0]


def test_several_labels_lead_by_their_count() -> None:
    """The largest count answers, of equal ones the first, once it leads by enough."""
    coarse = np.array([[0, 2, 1], [3, 3, 0]])
    fine = np.array([[0, 0, ABOVE], [9, 9, 9], [0, 9, 9 + SCALES_ABOVE], [9, 9 + ABOVE, 0]])
    assert decided(LINE, [coarse, fine], SCALES).tolist() == [2, 1, 0, 1]


def test_features_span_cells_in_their_order() -> None:
    """The first feature's rank counts most, at every level."""
    ranks = np.array([[3, 0], [0, 3]], dtype=np.uint8)
    assert GRID.cells(ranks, 4).tolist() == [12, 3]
    assert GRID.cells(ranks, 2).tolist() == [2, 1]


def test_a_grid_that_does_not_nest_is_refused() -> None:
    """Levels divide each other, and cuts part the finest, ascending."""
    for changes, claim in (
        ({"sides": (3, 4)}, "levels nest"),
        ({"cuts": (GRID.cuts[0], GRID.cuts[0][::-1])}, "cuts ascend"),
        ({"cuts": (GRID.cuts[0], (0.5,))}, "cuts part the finest level"),
        ({"cuts": ()}, "every number has cuts"),
    ):
        with pytest.raises(InvariantError, match=claim):
            replace(GRID, **changes)
