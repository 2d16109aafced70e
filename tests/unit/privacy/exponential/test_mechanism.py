"""The exponential mechanism: its charge, its refusals, and where its draw leans."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.encoded_rows import Tally
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.trees.cell_counts import CountedRows
from app.learning.trees.tree import Tree
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.exponential import mechanism as exponential
from tests.builders.mechanisms.drawing import (
    DELTA,
    ROW_COUNT,
    parameters,
    private_rows,
    small_class,
)

CUT = BinaryTest(feature_index=0, cut=0.5, category_code=None, public_frequency=0.5)


def test_it_runs_below_its_share_by_four_errors() -> None:
    """The weights' parameter is the share less 4 eta, and never above it."""
    given = parameters()
    eta = Fraction(given.hypotheses.log_weight_error(ROW_COUNT, 1.0))
    assert Fraction(given.mechanism_epsilon) <= Fraction(1) - 4 * eta
    assert given.mechanism_epsilon > 0.999


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(1, 10**40)])
def test_a_share_that_numerical_error_uses_up_is_refused(epsilon: Fraction) -> None:
    """No share, and one below the numerical error, raise."""
    with pytest.raises(InvariantError):
        parameters(epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(600), Fraction(1000), Fraction(10**6)])
def test_a_share_at_which_truncation_costs_too_much_is_refused(epsilon: Fraction) -> None:
    """Where (1 + e^epsilon) v exceeds the delta withheld, or is no double, it raises."""
    with pytest.raises(InvariantError, match=r"truncation|range of doubles"):
        parameters(epsilon)


def test_no_rows_are_refused() -> None:
    """The public n is at least one."""
    with pytest.raises(InvariantError, match="at least one row"):
        parameters(row_count=0)


def test_other_rows_than_the_public_n_are_refused_before_a_draw() -> None:
    """A table of another length raises and draws nothing."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError, match="the public n rows"):
        exponential.draw(parameters(row_count=ROW_COUNT + 1), private_rows(), noise)


def test_counts_of_other_rows_or_for_another_class_are_refused_before_a_draw() -> None:
    """Counts are of the public n rows, and weigh the class whose they are."""
    noise = ScriptedNoise([])
    few = CountedRows(np.zeros((2, 3)), ROW_COUNT - 1)
    with pytest.raises(InvariantError, match="the public n"):
        exponential.draw_counted(parameters(), few, noise)
    cuts = ThresholdClass(tests=(CUT,))
    listed = replace(parameters(), hypotheses=cuts)
    with pytest.raises(InvariantError, match="the class that counted them"):
        exponential.draw_counted(listed, CountedRows(np.zeros((2, 3)), ROW_COUNT), noise)
    with pytest.raises(InvariantError, match="the class that counted them"):
        exponential.draw_counted(parameters(), Tally(np.zeros(3, np.int64), ROW_COUNT), noise)


def test_a_tally_draws_what_its_rows_draw() -> None:
    """The mechanism asks counts, and does not see who counted."""
    cuts = ThresholdClass(tests=(CUT,))
    listed = replace(parameters(), hypotheses=cuts)
    bits, labels = private_rows()
    tally = Tally(cuts.tally(bits[:, :1], labels), len(labels))
    wanted = exponential.draw(listed, (bits[:, :1], labels), ScriptedNoise(seeded_words(2)))
    assert exponential.draw_counted(listed, tally, ScriptedNoise(seeded_words(2))) == wanted


def test_a_large_share_draws_the_best_hypothesis() -> None:
    """At epsilon 30 the least errors win, but for a probability below e^-30."""
    bits, labels = private_rows()
    tree = exponential.draw(
        parameters(Fraction(30)), (bits, labels), ScriptedNoise(seeded_words(1))
    )
    assert int((tree.predict(bits) != labels).sum()) == 4


def test_the_drawn_law_is_that_of_the_weights() -> None:
    """Drawn trees follow exp(-epsilon errors / 2), by chi-square."""
    # With 12 trees and 4,000 draws from a fixed seed the statistic has 11
    # degrees of freedom; 45 is exceeded with probability 5e-6.
    bits, labels = private_rows()
    given = parameters(Fraction(1, 4))
    noise = ScriptedNoise(seeded_words(5))
    draws = 4000
    drawn = Counter(exponential.draw(given, (bits, labels), noise) for _ in range(draws))
    weights = {
        tree: math.exp(-int((tree.predict(bits) != labels).sum()) / 8)
        for tree in (
            Tree(test_indices=(test,), leaf_labels=leaves)
            for test in range(3)
            for leaves in product((0, 1), repeat=2)
        )
    }
    expected = {tree: draws * weight / sum(weights.values()) for tree, weight in weights.items()}
    assert drawn.keys() <= expected.keys()
    assert sum((drawn[tree] - count) ** 2 / count for tree, count in expected.items()) < 45


def test_truncation_grows_with_the_class() -> None:
    """The delta withheld has to cover a larger class's truncation as well."""
    large = small_class(100, depth=2)
    small = small_class()
    assert large.truncation_variation > small.truncation_variation
    assert 2 * float(small.truncation_variation) < float(DELTA)
