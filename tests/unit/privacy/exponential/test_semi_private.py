"""The semi-private learner: its class is fixed by public points alone."""

from __future__ import annotations

import numpy as np
import pytest

from app.learning.encoding.binary_tests import distinct_cuts
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential import semi_private
from tests.builders.mechanisms.drawing import parameters, private_rows


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        # One row a test: its outcome on each public point.
        ([[0, 1], [1, 0], [0, 0], [1, 1]], (0, 2)),
        ([[0, 1, 1], [0, 1, 1], [1, 0, 1]], (0, 2)),
        ([[1, 1, 1], [0, 0, 0]], (0,)),
        ([[0, 0, 1], [0, 1, 0], [1, 0, 0]], (0, 1, 2)),
        ([[1], [0], [1]], (0,)),
    ],
)
def test_one_test_is_kept_for_each_distinct_cut(
    columns: list[list[int]], kept: tuple[int, ...]
) -> None:
    """Of tests that cut the public points alike, complements included, the first stays."""
    assert distinct_cuts(np.array(columns, dtype=np.uint8).T, complements=True) == kept


def test_without_public_points_every_test_stays() -> None:
    """No point tells two tests apart, so none is dropped."""
    assert distinct_cuts(np.empty((0, 5), dtype=np.uint8), complements=True) == (0, 1, 2, 3, 4)


def test_no_test_gives_no_representative() -> None:
    """A class without tests keeps none."""
    assert distinct_cuts(np.empty((3, 0), dtype=np.uint8), complements=True) == ()


def test_distinct_cuts_are_told_apart_by_every_point() -> None:
    """Tests that differ on one of 70 points, in any byte of their packing, both stay."""
    bits = np.zeros((70, 70), dtype=np.uint8)
    np.fill_diagonal(bits[:, 1:], 1)
    assert len(distinct_cuts(bits, complements=True)) == 70


def test_it_draws_what_the_exponential_mechanism_draws() -> None:
    """With the same noise the classifier is the exponential mechanism's own."""
    rows = private_rows()
    drawn = semi_private.draw(parameters(), rows, ScriptedNoise(seeded_words(2)))
    assert drawn == exponential.draw(parameters(), rows, ScriptedNoise(seeded_words(2)))
