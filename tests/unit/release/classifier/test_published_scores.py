"""Scores of a document: sums of whole numbers, for one vector or for many together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis.strategies as st
from hypothesis import given

from app.release.classifier.classifier_document import (
    FeatureDocument,
    LiteralDocument,
    NumbersDocument,
    ScoresDocument,
    TermDocument,
)
from app.release.classifier.published_scores import (
    ROWS_AT_ONCE,
    SUM_MAX,
    PublishedScores,
    whole_steps_of,
)

if TYPE_CHECKING:
    from app.data.vectors import Vector

FEATURES = (
    FeatureDocument("age", "numeric", bounds=(0.0, 90.0)),
    FeatureDocument("work", "categorical", categories=("none", "own", "state")),
    FeatureDocument("hours", "numeric", bounds=(-1.0, 1.0)),
)
MISSING = ("?",)
SMALL = st.integers(-50, 50)
HUGE = st.sampled_from([SUM_MAX - 1, -SUM_MAX, 3 * SUM_MAX, 7])
AGE_CUTS = (18.0, 40.0, 65.0)
HOUR_CUTS = (-0.5, 0.0)


def literals() -> st.SearchStrategy[LiteralDocument]:
    """Return tests of any feature, which must succeed or fail."""
    return st.one_of(
        st.builds(LiteralDocument, st.just(0), st.sampled_from(AGE_CUTS), fails=st.booleans()),
        st.builds(LiteralDocument, st.just(2), st.sampled_from(HOUR_CUTS), fails=st.booleans()),
        st.builds(
            LiteralDocument,
            st.just(1),
            category=st.sampled_from(["none", "state"]),
            fails=st.booleans(),
        ),
        st.builds(LiteralDocument, st.just(1), other=st.sampled_from([True]), fails=st.booleans()),
        st.builds(
            LiteralDocument, st.just(1), missing=st.sampled_from([True]), fails=st.booleans()
        ),
    )


@st.composite
def documents(draw: st.DrawFn) -> ScoresDocument:
    """Return scores of one to three classes, with terms of none to four tests, and numbers."""
    count = draw(st.integers(1, 3))
    weights = st.tuples(*[st.one_of(SMALL, HUGE) if draw(st.booleans()) else SMALL] * count)
    terms = st.builds(TermDocument, st.lists(literals(), max_size=4).map(tuple), weights)
    numbers = NumbersDocument((0,), ((10.0, 60.0),), 100, (draw(st.tuples(*[SMALL] * count)),))
    return ScoresDocument(
        unit=1,
        intercepts=draw(weights),
        terms=tuple(draw(st.lists(terms, max_size=6))),
        numbers=numbers if draw(st.booleans()) else None,
    )


def vectors() -> st.SearchStrategy[Vector]:
    """Return vectors at thresholds and beyond bounds, with missing and unknown values."""
    ages = st.sampled_from([None, -5.0, 17.9, *AGE_CUTS, 200.0])
    works = st.sampled_from([None, "", "?", "none", "own", "state", "elsewhere"])
    hours = st.sampled_from([None, -2.0, -0.0, *HOUR_CUTS, 5.0])
    return st.tuples(ages, works, hours)


def holds(literal: LiteralDocument, vector: Vector) -> bool:
    """Evaluate one test as the page of the format describes it."""
    value = vector[literal.feature]
    if literal.at_least is not None:
        lower, upper = FEATURES[literal.feature].bounds or (0.0, 0.0)
        passed = isinstance(value, float) and min(max(value, lower), upper) >= literal.at_least
    elif literal.category is not None:
        passed = value == literal.category
    elif literal.missing:
        passed = value in (None, "", *MISSING)
    else:
        passed = value not in (None, "", *MISSING, *(FEATURES[1].categories or ()))
    return passed != literal.fails


def summed(document: ScoresDocument, vector: Vector) -> list[int]:
    """Add up a document's scores term by term, in Python's whole numbers."""
    scores = list(document.intercepts)
    rows = [
        term.weights
        for term in document.terms
        if all(holds(literal, vector) for literal in term.tests)
    ]
    if document.numbers is not None:
        bounds, steps = document.numbers.bounds[0], document.numbers.steps
        place = whole_steps_of(vector[0], bounds, steps)
        rows.append(tuple(place * weight for weight in document.numbers.weights[0]))
    return [score + sum(row[index] for row in rows) for index, score in enumerate(scores)]


@given(documents(), st.lists(vectors(), max_size=8))
def test_scores_are_the_sums_of_the_terms_that_hold(
    document: ScoresDocument, asked: list[Vector]
) -> None:
    """One vector or many: each score is the exact sum of its terms, beyond 64 bits too."""
    published = PublishedScores(document, features=FEATURES, missing=MISSING)
    expected = [summed(document, vector) for vector in asked]
    assert [published.scores(vector) for vector in asked] == expected
    assert published.scores_many(asked) == expected
    labels = [published.class_index(vector) for vector in asked]
    assert published.class_indices(asked) == labels


@given(documents(), st.lists(vectors(), min_size=1, max_size=4))
def test_more_vectors_than_fit_at_once_have_the_scores_of_each(
    document: ScoresDocument, asked: list[Vector]
) -> None:
    """Where many vectors are cut into parts, every part is in its place."""
    published = PublishedScores(document, features=FEATURES, missing=MISSING)
    many = asked * (ROWS_AT_ONCE // len(asked) + 2)
    alone = {vector: published.scores(vector) for vector in asked}
    assert published.scores_many(many) == [alone[vector] for vector in many]
