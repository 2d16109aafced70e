"""Made-up rules are the best of the public class for labels that every feature moves."""

from __future__ import annotations

import numpy as np
import pytest

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.hypothesis import ClassAsked
from app.learning.learner_seeds import generator
from app.learning.registry import hypothesis_class
from app.planning.trial.made_up_records import (
    ATTEMPTS_MAX,
    ColumnLaw,
    MadeUpRules,
    Population,
    made_up_labels,
)

LAWS = (
    ColumnLaw(edges=(0.0, 1.0, 10.0), shares=(0.25, 0.75)),
    ColumnLaw(edges=None, shares=(0.5, 0.3, 0.2)),
)
TESTS = tuple(
    BinaryTest(feature_index=0, cut=cut, category_code=None, public_frequency=0.5)
    for cut in (1.0, 5.5)
)
PEOPLE = Population(LAWS).rows(4000, b"people")


@pytest.mark.parametrize("kind", ["trees", "stumps", "thresholds", "intervals"])
def test_rules_come_from_the_class_and_tell_people_apart(kind: str) -> None:
    """A rule of any kind of class labels people, and not all of them alike."""
    searched = hypothesis_class(ClassAsked(kind=kind, tests=TESTS, depth=2, class_count=2))
    rules = MadeUpRules(searched, Population(LAWS), 0.1, 2000)
    for index in range(5):
        assert set(rules.labels(index, PEOPLE).tolist()) == {0, 1}


def test_rules_are_the_same_every_time_and_differ_from_one_to_the_next() -> None:
    """Labels are a function of public seeds, and rules of them and of the budget alone."""
    searched = hypothesis_class(ClassAsked(kind="trees", tests=TESTS, depth=2, class_count=2))
    first, again = (MadeUpRules(searched, Population(LAWS), 0.1, 2000) for _ in "12")
    found = [first.labels(index, PEOPLE) for index in range(5)]
    for index, labels in enumerate(found):
        assert np.array_equal(again.labels(index, PEOPLE), labels)
    assert any(not np.array_equal(found[0], other) for other in found[1:])


def test_a_rule_is_right_as_far_as_its_budget_goes() -> None:
    """With a wide budget a rule is seldom the one that a budget of nothing draws."""
    searched = hypothesis_class(ClassAsked(kind="trees", tests=TESTS, depth=2, class_count=2))
    wide, nothing = (
        MadeUpRules(searched, Population(LAWS), epsilon, 2000) for epsilon in (1.0, 1e-9)
    )
    # Without weight a rule is any of 8 x 16 trees; with it, the one with the fewest errors.
    agreed = sum(
        np.array_equal(wide.labels(index, PEOPLE), nothing.labels(index, PEOPLE))
        for index in range(10)
    )
    assert agreed < 8


def test_a_class_of_constants_gives_one() -> None:
    """Without any test there is no other rule, and none is looked for forever."""
    searched = hypothesis_class(ClassAsked(kind="trees", tests=(), depth=2, class_count=2))
    rules = MadeUpRules(searched, Population(LAWS), 0.1, 200)
    assert ATTEMPTS_MAX < 100
    assert len(set(rules.labels(0, PEOPLE).tolist())) == 1


def test_labels_hang_on_the_features() -> None:
    """For most seeds some code or interval has far more of a label than another."""
    codes = PEOPLE[:, 1].astype(int)
    told = 0
    for seed in range(20):
        labels = made_up_labels(PEOPLE, [False, True], 2, generator(b"%d" % seed))
        shares = [labels[codes == code].mean() for code in range(3)]
        shares += [labels[PEOPLE[:, 0] < 3].mean(), labels[PEOPLE[:, 0] > 8].mean()]
        # By chance alone shares of 800 people or more differ by 0.09 at five deviations.
        told += max(shares) - min(shares) > 0.2
    assert told >= 15


def test_more_labels_than_two_all_occur() -> None:
    """Labels of four classes are indices below four, and one seed or another has each."""
    drawn = [made_up_labels(PEOPLE, [False, True], 4, generator(b"%d" % seed)) for seed in range(5)]
    assert set(np.concatenate(drawn).tolist()) == {0, 1, 2, 3}
