"""Made-up people follow the public shares, and made-up rules the public class."""

from __future__ import annotations

import math

import numpy as np
import pytest

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.planning.trial.made_up_records import ColumnLaw, Population, column_laws

LAWS = (
    ColumnLaw(edges=(0.0, 1.0, 10.0), shares=(0.25, 0.75)),
    ColumnLaw(edges=None, shares=(0.5, 0.3, 0.2)),
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


def test_nobody_asks_twice() -> None:
    """Who asks differs from everybody else who does, of points and of made-up people alike."""
    points = np.array([[3.0, 1.0], [7.0, 2.0], [3.0, 1.0]])
    assert len(Population(LAWS, points).distinct(10, b"seed")) == 2
    made_up = Population(LAWS[1:]).distinct(50, b"seed")
    assert sorted(made_up[:, 0].tolist()) == [0.0, 1.0, 2.0]
    assert len(Population(LAWS).distinct(50, b"seed")) == 50


def test_laws_are_the_public_shares() -> None:
    """A feature without shares is uniform, one with shares has them, and the rest is other."""
    categories = ("a", "b")
    schema = Schema(
        features=(
            NumericFeature(name="plain", lower=0.0, upper=4.0),
            NumericFeature(
                name="cut", lower=0.0, upper=4.0, thresholds=(1.0,), threshold_shares=(0.25,)
            ),
            CategoricalFeature(name="even", categories=categories),
            CategoricalFeature(name="known", categories=categories, category_shares=(0.5, 0.25)),
        ),
        classes=("no", "yes"),
        label="label",
    )
    assert column_laws(schema) == (
        ColumnLaw(edges=(0.0, 4.0), shares=(1.0,)),
        ColumnLaw(edges=(0.0, 1.0, 4.0), shares=(0.75, 0.25)),
        ColumnLaw(edges=None, shares=(1.0, 1.0, 1.0)),
        ColumnLaw(edges=None, shares=(0.5, 0.25, 0.25)),
    )
