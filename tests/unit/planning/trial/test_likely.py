"""One number for many: the window of a factor of two either way that holds most of them."""

from __future__ import annotations

import numpy as np
import pytest

from app.planning.trial.forecast import FACTOR, likely

RNG = np.random.default_rng(11)


def test_numbers_that_part_in_two_give_the_larger_part() -> None:
    """Six at the end and four that fell off are the end, with likelihood 0.6, and the rest."""
    found = likely(np.array([15_000.0] * 6 + [200.0, 220.0, 240.0, 230.0]))
    assert (found.number, found.share, found.otherwise) == (15_000, 0.6, 225)
    fell = likely(np.array([15_000.0] * 4 + [200.0] * 6))
    assert (fell.number, fell.share, fell.otherwise) == (200, 0.6, 15_000)


def test_numbers_that_agree_leave_no_rest() -> None:
    """Within a factor of four all are within two of one number, and none is otherwise."""
    found = likely(np.array([100.0, 390.0, 390.0, 400.0]))
    assert (found.number, found.share, found.otherwise) == (200, 1, None)
    assert likely(np.zeros(3)).otherwise is None


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_no_number_is_right_for_more(count: int) -> None:
    """Whatever the numbers, no point of a fine grid is within a factor of two of more of them."""
    for _ in range(20):
        numbers = np.exp(RNG.uniform(0, 10, count))
        best = likely(numbers)
        for point in np.geomspace(0.5, 40_000, 400):
            close = (numbers >= point / FACTOR) & (numbers <= point * FACTOR)
            assert close.mean() <= best.share + 1e-9
