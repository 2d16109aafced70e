"""Rows that count for parts of a person: the exact law, and what replacing a person moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.special import logsumexp

from app.data.persons import WEIGHT_UNITS, Persons
from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.encoding.encoded_rows import ROWS_PER_PART, weighed_parts
from app.learning.enumerated.boxes import axes_of, box_class
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.enumeration import all_errors, unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]

TESTS = unit_tests(3)
CLASSES = {
    "stumps": TreeClass(tests=TESTS, depth=1, class_count=2),
    "trees": TreeClass(tests=TESTS, depth=2, class_count=3),
    "deep trees": TreeClass(tests=TESTS[:2], depth=3, class_count=2),
    "thresholds": ThresholdClass(tests=TESTS),
    "rectangles": box_class("rectangles", axes_of(TESTS)),
    "cells": CellClass(splits=CellSplits(TESTS[:2], ((~0, 1), (~1, ~2))), class_count=2),
}
EPSILON = 1.5
SLACK = 1e-9
"""Above 4 eta of every class here, and far below what a fault moves."""


def weights_of(row_counts: list[int]) -> NDArray[np.float64]:
    """Return the weights of rows of persons who have so many, person by person."""
    numbers = np.repeat(np.arange(len(row_counts)), row_counts)
    identities = np.zeros((len(row_counts), 16), dtype=np.uint8)
    return Persons(numbers, identities).weights


def some_rows(row_counts: list[int], *, class_count: int, seed: int = 1) -> Rows:
    """Return random rows of persons with so many each."""
    generator = np.random.default_rng(seed)
    count = sum(row_counts)
    values = generator.integers(0, 2, (count, 3)).astype(np.float64)
    return values, generator.integers(0, class_count, count), weights_of(row_counts)


@pytest.mark.parametrize("name", CLASSES)
def test_one_row_a_person_is_drawn_as_without_persons(name: str) -> None:
    """Every weight is 1 then, and the law is that of rows."""
    searched: Any = CLASSES[name]
    values, labels, weights = some_rows([1] * 60, class_count=searched.class_count)
    assert (weights == 1).all()
    encoded = searched.encode(values)
    plain = searched.log_normaliser(encoded, labels, EPSILON)
    assert searched.log_normaliser(encoded, labels, EPSILON, weights) == plain
    for seed in range(20):
        drawn = [
            searched.draw(encoded, labels, EPSILON, ScriptedNoise(seeded_words(seed)), *given)
            for given in ((), (weights,))
        ]
        assert drawn[0].to_dict() == drawn[1].to_dict()


@pytest.mark.parametrize("name", ["stumps", "trees", "deep trees"])
def test_the_sum_over_trees_is_that_of_every_tree(name: str) -> None:
    """Against a list of all trees, whose errors are added row by row."""
    searched = CLASSES[name]
    assert isinstance(searched, TreeClass)
    values, labels, weights = some_rows([3, 1, 7, 2, 5], class_count=searched.class_count)
    encoded = searched.encode(values)
    shape = {"depth": searched.depth, "class_count": searched.class_count}
    errors = sum(
        weight * all_errors(encoded[row : row + 1], labels[row : row + 1], **shape)
        for row, weight in enumerate(weights.tolist())
    )
    expected = logsumexp(-EPSILON / 2 * np.asarray(errors))
    computed = searched.log_normaliser(encoded, labels, EPSILON, weights)
    assert computed == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_replacing_a_person_moves_every_probability_within_the_claim(name: str) -> None:
    """All rows of one person are replaced by any number of others: the worst is epsilon."""
    searched: Any = CLASSES[name]
    others = some_rows([2, 1, 4], class_count=searched.class_count)
    for count, other_count in ((1, 1), (1, 50), (7, 3), (50, 1)):
        moved = _moved(searched, others, count, other_count, weights_of)
        assert moved <= EPSILON + SLACK


@pytest.mark.parametrize("name", CLASSES)
def test_a_row_that_counts_for_one_is_caught(name: str) -> None:
    """The planted fault: with weight 1 a row, a person of seven rows moves far more."""
    searched: Any = CLASSES[name]
    others = some_rows([2, 1, 4], class_count=searched.class_count)
    moved = _moved(searched, others, 7, 7, lambda counts: np.ones(sum(counts)))
    assert moved > 2 * EPSILON


def test_weights_to_the_nearest_are_caught() -> None:
    """The planted fault: rounded up, the rows of a person may move more than the claim."""
    row_count = 2 * WEIGHT_UNITS // 3  # each would be given 2 units in place of 1
    rounded = np.floor(WEIGHT_UNITS / row_count + 0.5) / WEIGHT_UNITS
    assert row_count * rounded > 1.3
    assert row_count * weights_of([row_count])[0] <= 1


def _moved(searched: Any, others: Rows, count: int, other_count: int, weigh: Any) -> float:
    """Return how far the log probability of the likeliest hypothesis moves, exactly."""
    values, labels, weights = others
    log_shares = []
    for label, rows in ((0, count), (1, other_count)):
        encoded = searched.encode(np.concatenate([values, np.ones((rows, 3))]))
        given = np.concatenate([labels, np.full(rows, label)])
        weighed = np.concatenate([weights, weigh([rows])])
        # The hypothesis that says 0 of every row: its errors, over the sum of all weights.
        errors = float(weighed[given != 0].sum())
        log_sum = searched.log_normaliser(encoded, given, EPSILON, weighed)
        log_shares.append(-EPSILON / 2 * errors - log_sum)
    return float(abs(log_shares[0] - log_shares[1]))


def test_rows_of_one_weight_are_counted_together() -> None:
    """Parts cover every row once, whatever the order of weights; without weights each is 1."""
    count = ROWS_PER_PART + 3
    encoded, labels = np.arange(count)[:, np.newaxis], np.arange(count)
    weights = np.where(labels % 3 == 0, 0.5, 0.25)
    seen = list(weighed_parts(encoded, labels, weights))
    assert [weight for weight, _, _ in seen] == [0.25, 0.5] * 2
    assert sorted(np.concatenate([part for _, _, part in seen]).tolist()) == labels.tolist()
    for weight, rows, row_labels in seen:
        assert (weights[row_labels] == weight).all()
        assert (rows[:, 0] == row_labels).all()
    plain = list(weighed_parts(encoded, labels, None))
    assert [(weight, len(rows)) for weight, rows, _ in plain] == [(1, ROWS_PER_PART), (1, 3)]
