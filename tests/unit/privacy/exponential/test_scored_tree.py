"""A tree with noisy counts in its leaves: its weights, its counts, and the scores that follow."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.auditing.event_bounds import ROUNDING
from app.auditing.hypothesis_draws import rows_wanted, scored_tree_bound
from app.errors import InvariantError
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential import scored_tree
from app.privacy.exponential.scored_tree import (
    SCORE_UNIT,
    SENSITIVITY,
    WEIGHT_UNITS,
    Division,
    Parameters,
    balancing_weights,
    draw,
    histogram,
    leaf_scores,
    weighed_rows,
)
from tests.builders.learners.enumeration import unit_tests

ROW_COUNT = 40
COUNTS = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=4)


def parameters(
    *, class_count: int = 2, depth: int = 2, row_count: int = ROW_COUNT, epsilon: int = 1
) -> Parameters:
    """Return the parameters of a draw from trees over three tests."""
    return Parameters(
        epsilon=Fraction(epsilon),
        delta_truncation=Fraction(1, 10**9),
        row_count=row_count,
        hypotheses=TreeClass(tests=unit_tests(3), depth=depth, class_count=class_count),
    )


def rows_of(class_count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return bits (n, 3) and labels (n,)."""
    generator = np.random.default_rng(class_count)
    bits = generator.integers(0, 2, (ROW_COUNT, 3)).astype(np.uint8)
    return bits, generator.integers(0, class_count, ROW_COUNT)


@given(counts=COUNTS)
def test_no_label_counts_for_more_than_one(counts: list[int]) -> None:
    """Weights are whole units from 0 to 1, of the second label too, whatever the noise was."""
    weights = balancing_weights(parameters(class_count=len(counts)), counts)
    assert all(0 <= each <= WEIGHT_UNITS for each in weights)
    assert sum(each == WEIGHT_UNITS for each in weights) >= len(counts) - 1


def test_the_two_most_frequent_labels_count_alike() -> None:
    """A label of nine times as many rows has a ninth of the weight, rounded down."""
    weights = balancing_weights(parameters(class_count=3), [9000, 1000, 500])
    assert weights == [WEIGHT_UNITS // 9, WEIGHT_UNITS, WEIGHT_UNITS]


def test_a_number_within_its_noise_is_raised() -> None:
    """Below two scales, 80 rows at a twentieth of epsilon 1, it counts as 80."""
    weights = balancing_weights(parameters(), [800, -7])
    assert weights == [WEIGHT_UNITS // 10, WEIGHT_UNITS]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, WEIGHT_UNITS))
def test_a_persons_rows_count_for_one_at_most(row_counts: list[int], weight: int) -> None:
    """Their own weights times those of labels stay below one, on the grid of exact sums."""
    own = np.concatenate([np.full(count, WEIGHT_UNITS // count) for count in row_counts])
    labels = np.arange(len(own)) % 2
    found = weighed_rows([weight, WEIGHT_UNITS], labels, own / WEIGHT_UNITS)
    assert np.array_equal(found * WEIGHT_UNITS, np.floor(found * WEIGHT_UNITS))
    ends = np.cumsum(row_counts)[:-1]
    assert all(float(part.sum()) <= 1 for part in np.split(found, ends))


@given(
    others=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=6),
    pair=st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 2))] * 2),
)
def test_one_record_moves_a_histogram_by_two_at_most(
    others: list[tuple[int, int]], pair: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """Whatever the other records, the magnitudes of the changes add up to two at most."""
    counted = []
    for record in pair:
        cells, labels = np.array([*others, record]).T
        counted.append(histogram(parameters(class_count=3), cells, labels, None, cell_count=4))
    assert np.abs(counted[0] - counted[1]).sum() <= SENSITIVITY
    assert counted[0].sum() == len(others) + 1


@pytest.mark.parametrize("class_count", [2, 3])
def test_counts_are_those_of_the_leaves_and_their_noise(
    monkeypatch: pytest.MonkeyPatch, class_count: int
) -> None:
    """Without noise every leaf counts its own rows; noise is drawn once for each count."""
    scales: list[Fraction] = []

    class Silent:
        def __init__(self, scale: Fraction) -> None:
            self.scale = scale

        def draw(self, _: object) -> int:
            scales.append(self.scale)
            return 0

    monkeypatch.setattr(scored_tree, "DiscreteLaplace", Silent)
    given_parameters, (bits, labels) = parameters(class_count=class_count), rows_of(class_count)
    drawn = draw(given_parameters, (bits, labels), ScriptedNoise(seeded_words(1)))
    expected = np.zeros((4, class_count), dtype=np.int64)
    np.add.at(expected, (drawn.tree.leaves(bits), labels), 1)
    assert np.array_equal(drawn.counts, expected)
    of_labels, of_leaves = Fraction(2 * 20), Fraction(2 * 20, 7)
    assert scales == [of_labels] * class_count + [of_leaves] * 4 * class_count


def test_scores_are_shares_and_few_rows_say_little() -> None:
    """The difference of shares of two labels, drawn to that of all rows by four scales."""
    counts = np.array([[90, 10], [10, 90], [-3, 0], [900, 900]])
    scores = leaf_scores(counts, Fraction(1))
    shares = [score / SCORE_UNIT for (score,) in scores]
    assert shares == pytest.approx([-80 / 104, 80 / 104, 0, 0], abs=1e-4)
    three = leaf_scores(np.array([[1, 2, 7], [10, 10, 10]]), Fraction(1, 100))
    assert [each / SCORE_UNIT for each in three[0]] == pytest.approx([0.1, 0.2, 0.7], abs=0.03)


@given(
    counts=st.lists(st.tuples(*[st.integers(-(10**9), 10**12)] * 3), min_size=1, max_size=4),
    scale=st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=100),
)
def test_shares_add_up_to_one(counts: list[tuple[int, int, int]], scale: Fraction) -> None:
    """Whatever the noise was, shares lie between 0 and 1 and lose a unit each at most."""
    for leaf in leaf_scores(np.array(counts), scale):
        assert all(0 <= each <= SCORE_UNIT for each in leaf)
        assert SCORE_UNIT - 3 < sum(leaf) <= SCORE_UNIT


def test_parts_that_are_no_division_are_refused() -> None:
    """More than epsilon in sum, a part of nothing, and noise beyond 64 bits."""
    valid, half = parameters(), Fraction(1, 2)
    bad = {
        "the parts add up": Division(half, half, Fraction(1, 10**30)),
        "no part's share is zero": Division(Fraction(0), half, half),
        "noise stays within 64 bits": Division(Fraction(1, 1 << 41), half, Fraction(1, 4)),
    }
    for claim, division in bad.items():
        with pytest.raises(InvariantError, match=claim):
            replace(valid, division=division)


def test_a_draw_that_is_no_tree_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leaves could not be counted; nothing of it is released."""
    monkeypatch.setattr("app.privacy.exponential.mechanism.draw", lambda *_: object())
    bits, labels = rows_of()
    with pytest.raises(InvariantError, match="a class of trees draws a tree"):
        draw(parameters(), (bits, labels), ScriptedNoise(seeded_words(1)))


def test_truncation_is_paid_at_the_whole_epsilon() -> None:
    """The tree's draw, a part of the release, knows what all of it costs."""
    given_parameters = parameters()
    assert given_parameters.tree.account_epsilon == given_parameters.epsilon
    joint = replace(given_parameters, account_epsilon=Fraction(3))
    assert joint.tree.account_epsilon == 3


@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_bound_is_nearly_the_whole_share(epsilon: int) -> None:
    """A replaced label shows all three parts, and never more than epsilon."""
    point = np.array([1.0, 0.0, 1.0])
    rows = rows_wanted(0.6 * epsilon)
    shown = scored_tree_bound(parameters(epsilon=epsilon, row_count=rows), point).epsilon
    assert 0.95 * epsilon < shown <= epsilon + ROUNDING
