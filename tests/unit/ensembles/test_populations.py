"""Made-up people follow the public shares, and made-up rules the public class."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.ensembles.populations import ColumnLaw, Population, made_up_hypothesis
from app.hypotheses.binary_tests import BinaryTest
from app.hypotheses.registry import hypothesis_class

LAWS = (
    ColumnLaw(edges=(0.0, 1.0, 10.0), shares=(0.25, 0.75)),
    ColumnLaw(edges=None, shares=(0.5, 0.3, 0.2)),
)
TESTS = tuple(
    BinaryTest(feature_index=0, cut=cut, category_code=None, public_frequency=0.5)
    for cut in (1.0, 5.5)
)


def test_people_follow_the_shares() -> None:
    """Every interval and every code has its share, and numbers are uniform within."""
    people = Population(LAWS).rows(40_000, b"seed")
    # Five standard errors of a share of a half are missed once in 1.7 million seeds.
    error = 5 * math.sqrt(0.25 / 40_000)
    assert (people[:, 0] < 1).mean() == pytest.approx(0.25, abs=error)
    assert (people[:, 0] >= 5.5).mean() == pytest.approx(0.375, abs=error)
    for code, share in enumerate(LAWS[1].shares):
        assert (people[:, 1] == code).mean() == pytest.approx(share, abs=error)


def test_people_are_the_same_every_time() -> None:
    """Who is made up is a function of the public seed, and another seed makes others."""
    first, second, other = (Population(LAWS).rows(50, seed) for seed in (b"a", b"a", b"b"))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_public_points_stand_for_people() -> None:
    """With points every person is one of them, whatever the shares say."""
    points = np.array([[3.0, 1.0], [7.0, 2.0]])
    people = Population(LAWS, points).rows(200, b"seed")
    assert {tuple(person) for person in people.tolist()} == {(3.0, 1.0), (7.0, 2.0)}


@pytest.mark.parametrize("kind", ["trees", "stumps", "thresholds", "intervals"])
def test_rules_come_from_the_class_and_tell_people_apart(kind: str) -> None:
    """A rule of any kind of class labels people, and not all of them alike."""
    searched = hypothesis_class(kind, TESTS, depth=2, class_count=2)
    people = searched.encode(Population(LAWS).rows(200, b"seed"))
    for index in range(20):
        rule = made_up_hypothesis(searched, people, b"rule %d" % index)
        assert set(rule.predict(people).tolist()) == {0, 1}


def test_every_rule_is_as_likely() -> None:
    """Over a class of four stumps that differ, each is drawn about a quarter of the time."""
    searched = hypothesis_class("stumps", TESTS, depth=1, class_count=2)
    people = searched.encode(Population(LAWS).rows(200, b"seed"))
    draws = 2000
    drawn = [made_up_hypothesis(searched, people, b"%d" % index) for index in range(draws)]
    _, counts = np.unique([rule.predict(people) for rule in drawn], axis=0, return_counts=True)
    assert len(counts) == 4
    # Five standard errors each.
    assert np.abs(counts / draws - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / draws)


def test_a_class_of_constants_gives_one() -> None:
    """Without any test there is no other rule, and none is looked for forever."""
    searched = hypothesis_class("trees", (), depth=2, class_count=2)
    people = searched.encode(Population(LAWS).rows(10, b"seed"))
    assert len(set(made_up_hypothesis(searched, people, b"rule").predict(people).tolist())) == 1
