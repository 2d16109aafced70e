"""A descent over rows of persons: all rows of one together move a sum as one row does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvariantError
from app.learning.linear.integer_vectors import HALF, score_count, shared_out
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.noisy_gradient import mechanism
from app.privacy.noisy_gradient.mechanism import (
    REPLACED,
    draw,
    gradient_sum,
    squared_sensitivity,
    whole_weights,
)
from tests.builders.mechanisms.descending import TERM_COUNT, descent_parameters, descent_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.privacy.noisy_gradient.mechanism import Parameters

    Divide = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]

ROWS_MAX = 50


def undivided(missed: NDArray[np.int64], _: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return residuals as they are: the planted fault of rows that count for one each."""
    return missed


def away_from_zero(missed: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return residuals divided and rounded up in magnitude: the other planted fault."""
    return np.sign(missed) * -(-np.abs(missed) // counts[:, None])


def to_the_nearest(missed: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return residuals divided and rounded to the nearest: a third."""
    return np.rint(missed / counts[:, None]).astype(np.int64)


@cache
def parameters_of(class_count: int) -> Parameters:
    """Return the parameters of a descent, made once."""
    return descent_parameters(class_count=class_count)


def part_of(rows: int, label: int, *, class_count: int, seed: int) -> NDArray[np.int64]:
    """Return what a person adds whose rows all have the longest vector, at an iterate of a seed."""
    features = parameters_of(class_count).features
    weights = np.random.default_rng(seed).normal(size=(features.width, score_count(class_count)))
    weights *= [0.0, 0.01, 5.0][seed % 3]
    vectors = np.zeros((rows, features.width), dtype=np.int16)
    vectors[:, 0] = features.norm_bound
    labels, counts = np.full(rows, label, dtype=np.int64), np.full(rows, rows)
    return gradient_sum(features, vectors, labels, whole_weights(weights), counts)


def squared(part: NDArray[np.int64]) -> int:
    """Return the squared length, in integers of any size."""
    return int((part.astype(object) ** 2).sum())


@settings(max_examples=40, deadline=None)
@given(
    rows=st.tuples(st.integers(1, ROWS_MAX), st.integers(1, ROWS_MAX)),
    class_count=st.sampled_from([2, 3]),
    seed=st.integers(0, 20),
)
def test_a_person_moves_a_sum_as_a_row_does(
    rows: tuple[int, int], class_count: int, seed: int
) -> None:
    """Whatever number of rows is replaced by whatever number, the squared length is in bounds."""
    one, other = (
        part_of(count, label, class_count=class_count, seed=seed)
        for label, count in enumerate(rows)
    )
    bound = squared_sensitivity(parameters_of(class_count).features, class_count=class_count)
    assert squared(one - other) <= bound
    assert REPLACED**2 * max(squared(one), squared(other)) <= bound


@pytest.mark.parametrize("fault", [undivided, away_from_zero, to_the_nearest])
def test_rows_that_count_for_too_much_are_caught(
    monkeypatch: pytest.MonkeyPatch, fault: Divide
) -> None:
    """The planted faults: for some number of rows up to fifty a person adds more than a row may."""
    assert all(within(rows) for rows in range(1, ROWS_MAX + 1))
    monkeypatch.setattr(mechanism, "shared_out", fault)
    assert not all(within(rows) for rows in range(1, ROWS_MAX + 1))


def within(rows: int) -> bool:
    """Whether what the worst person of so many rows adds is no longer than a row's may be."""
    bound = squared_sensitivity(parameters_of(2).features, class_count=2)
    return REPLACED**2 * squared(part_of(rows, 0, class_count=2, seed=0)) <= bound


@settings(max_examples=60, deadline=None)
@given(missed=st.integers(-HALF, HALF), rows=st.integers(1, 2 * HALF))
def test_a_residual_is_divided_toward_zero(missed: int, rows: int) -> None:
    """It changes no sign, and so many of it come back to no more; less than one each is lost."""
    (part,) = shared_out(np.array([[missed]]), np.array([rows]))[0].tolist()
    assert part * missed >= 0
    assert 0 <= abs(missed) - rows * abs(part) < rows


@pytest.mark.parametrize("class_count", [2, 3])
def test_one_row_a_person_descends_as_rows_do(class_count: int) -> None:
    """From one seed the weights are the same, to the last bit."""
    parameters = descent_parameters(class_count=class_count)
    rows = descent_rows(class_count=class_count)
    ones = np.ones(len(rows[1]), dtype=np.int64)
    found = [
        draw(parameters, rows, ScriptedNoise(seeded_words(5)), *given).values
        for given in ((), (ones,))
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_the_public_n_is_of_persons() -> None:
    """Rows of another number of persons are refused, and so is a row that nobody has."""
    parameters = descent_parameters(row_count=3)
    bits, labels = descent_rows(row_count=6)
    counts = np.array([2, 3, 3, 2, 3, 1])
    weights = draw(parameters, (bits, labels), ScriptedNoise(seeded_words(1)), counts)
    assert weights.values.shape == (TERM_COUNT + 1, 1)
    for wrong in (np.array([2, 2, 2, 2, 1, 1]), counts[:-1]):
        with pytest.raises(InvariantError, match="person"):
            draw(parameters, (bits, labels), ScriptedNoise([]), wrong)
