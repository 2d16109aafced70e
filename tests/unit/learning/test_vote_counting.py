"""Votes are counted alike in a row alone and among others."""

from __future__ import annotations

import numpy as np
import pytest

from app.learning.vote_counting import count_votes


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("width", [8, 64, 4096])
def test_every_row_has_its_count(rows: int, width: int) -> None:
    """As many as are true, whether one word holds them or many."""
    flags = np.random.default_rng(width).random((rows, width)) < 0.5
    assert count_votes(flags).tolist() == flags.sum(axis=1).tolist()
    assert count_votes(np.ones((rows, width), dtype=np.bool_)).tolist() == [width] * rows
