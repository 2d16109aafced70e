"""Noisy counts of a generation's labels, their sums, and the one labelling made of them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.persons import WEIGHT_UNITS
from app.errors import InvariantError
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.generations.pooled_labels import (
    NoisyCounts,
    Parameters,
    draw,
    private_counts,
    running_sum,
)
from app.privacy.noisy_grid.mechanism import SENSITIVITY

CELLS = 4


def parameters(**changes: Any) -> Parameters:
    """Return the parameters of two labels in four cells, ten slots."""
    given_ones: dict[str, Any] = {
        "cell_count": CELLS,
        "class_count": 2,
        "slot_count": 10,
        "epsilon": Fraction(1, 10),
    }
    return Parameters(**(given_ones | changes))


def rows(records: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return cells and labels of records."""
    table = np.array(records, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def of(*counts: list[int]) -> NoisyCounts:
    """Return noisy counts of cells."""
    return NoisyCounts(np.array(counts, dtype=np.int64))


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"cell_count": 0}, "at least one cell"),
        ({"class_count": 1}, "two or more classes"),
        ({"slot_count": 0}, "at least one slot"),
        ({"epsilon": Fraction(0)}, "above zero"),
        ({"epsilon": Fraction(1, 1 << 40)}, "within 64 bits"),
    ],
)
def test_parameters_that_no_claim_covers_are_refused(changes: dict[str, Any], claim: str) -> None:
    """They validate themselves."""
    with pytest.raises(InvariantError, match=claim):
        parameters(**changes)


def test_parameters_are_immutable() -> None:
    """No field is assigned twice, and the numbers of three labels are three a cell."""
    for field in fields(parameters()):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(parameters(), field.name, None)
    assert parameters().shape == (CELLS, 1)
    assert parameters(class_count=3).shape == (CELLS, 3)


RECORD = st.tuples(st.integers(0, CELLS - 1), st.integers(0, 2))


@given(
    others=st.lists(RECORD, max_size=8),
    pair=st.tuples(RECORD, RECORD),
    count=st.sampled_from([2, 3]),
)
def test_one_record_moves_the_counts_by_two_at_most(
    others: list[tuple[int, int]], pair: tuple[tuple[int, int], tuple[int, int]], count: int
) -> None:
    """Replaced it moves them by two in sum, and taken away by one."""
    public = parameters(class_count=count)
    one, other = (
        private_counts(public, rows([(cell, min(label, count - 1)) for cell, label in records]))
        for records in ([*others, pair[0]], [*others, pair[1]])
    )
    none = private_counts(public, rows([(cell, min(label, count - 1)) for cell, label in others]))
    assert np.abs(one - other).sum() <= SENSITIVITY
    assert np.abs(one - none).sum() == 1


def test_a_person_with_many_rows_moves_them_by_two_persons_at_most() -> None:
    """Rows of a person in all cells count for one person together, in parts."""
    public = parameters(unit_count=WEIGHT_UNITS)
    weights = np.full(8, (WEIGHT_UNITS // 8) / WEIGHT_UNITS)
    many = private_counts(public, rows([(cell, 0) for cell in range(CELLS)] * 2), weights)
    one = private_counts(public, rows([(0, 1)]), np.ones(1))
    assert np.abs(many - one).sum() <= SENSITIVITY * WEIGHT_UNITS


def test_a_draw_adds_the_law_of_its_scale_to_every_cell() -> None:
    """Cells without rows have noise too, word for word that of the exact law."""
    public, records = parameters(), rows([(0, 1), (0, 1), (2, 0)])
    drawn = draw(public, records, ScriptedNoise(seeded_words(3)))
    law, noise = DiscreteLaplace(Fraction(20)), ScriptedNoise(seeded_words(3))
    expected = [count + law.draw(noise) for count in (2, 0, -1, 0)]
    assert drawn.private_noisy_counts[:, 0].tolist() == expected


def test_rows_beyond_the_public_slots_are_refused_before_a_draw() -> None:
    """Fewer are holes, and are taken."""
    silent = ScriptedNoise([])
    with pytest.raises(InvariantError, match="slots at most"):
        draw(parameters(slot_count=2), rows([(0, 0)] * 3), silent)
    with pytest.raises(InvariantError, match="a cell and a label"):
        draw(parameters(), (np.zeros(2, np.int64), np.zeros(1, np.int64)), silent)
    with pytest.raises(InvariantError, match="in their units"):
        draw(parameters(), rows([(0, 0)]), silent, np.ones(1))
    with pytest.raises(InvariantError, match="every row has a weight"):
        draw(parameters(unit_count=4), rows([(0, 0)]), silent, np.ones(2))
    with pytest.raises(InvariantError, match="slots at most"):
        draw(parameters(unit_count=4, slot_count=1), rows([(0, 0)] * 2), silent, np.ones(2))


def test_labels_are_the_largest_sums_and_ties_go_to_the_smallest() -> None:
    """With two labels by sign, with more by the largest number."""
    assert of([1], [0], [-3]).labels().tolist() == [1, 0, 0]
    assert of([1, 1, 0], [0, 2, 2], [-1, -2, 0]).labels().tolist() == [0, 1, 2]


def test_a_labelling_follows_the_sums_of_all_generations() -> None:
    """A later generation may turn a cell's label, and adds to the sums of earlier ones."""
    sums = running_sum([of([3], [-1]), of([-4], [-1])])
    assert sums.private_noisy_counts.tolist() == [[-1], [-2]]
    assert sums.labels().tolist() == [0, 0]
    with pytest.raises(InvariantError, match="one generation at least"):
        running_sum([])
    with pytest.raises(InvariantError, match="same public cells"):
        running_sum([of([1]), of([1], [2])])


def test_counts_are_read_as_they_were_written() -> None:
    """Private state keeps integers of any sign, and refuses another number of them."""
    counts = of([3], [-(1 << 50)])
    again = NoisyCounts.from_bytes(counts.to_bytes(), shape=(2, 1))
    assert again.private_noisy_counts.tolist() == counts.private_noisy_counts.tolist()
    for body in (b"", counts.to_bytes()[1:], counts.to_bytes() * 2):
        with pytest.raises(InvariantError, match="of the public cells"):
            NoisyCounts.from_bytes(body, shape=(2, 1))


def test_the_same_words_give_the_same_counts_and_others_give_others() -> None:
    """A draw is a function of its noise, and leaves the rows as they are."""
    public, records = replace(parameters(), class_count=3), rows([(0, 2), (3, 1)])
    before = [each.copy() for each in records]
    drawn = [
        draw(public, records, ScriptedNoise(seeded_words(seed))).to_bytes() for seed in (5, 5, 6)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(np.array_equal(a, b) for a, b in zip(records, before, strict=True))
