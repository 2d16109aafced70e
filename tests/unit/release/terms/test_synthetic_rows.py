"""Made-up rows lie in the public schema, and repeated ensembles vote so many times."""

from __future__ import annotations

import numpy as np
import pytest

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.release.terms.answer_time import synthetic_rows

COLUMNS = (PublicColumn(bounds=(-3.0, 5.0)), PublicColumn(category_count=2))
TESTS = (
    BinaryTest(feature_index=0, cut=0.0, category_code=None, public_frequency=0.5),
    BinaryTest(feature_index=0, cut=2.0, category_code=None, public_frequency=0.5),
)


def test_rows_lie_within_public_bounds_and_codes() -> None:
    """Numbers fill their bounds, categories all of their codes, labels all classes."""
    values, labels = synthetic_rows(COLUMNS, row_count=5000, class_count=3)
    assert -3.0 <= values[:, 0].min() < -2.9 < 4.9 < values[:, 0].max() <= 5.0
    assert sorted(set(values[:, 1])) == [0.0, 1.0, 2.0, 3.0]
    assert sorted(set(labels.tolist())) == [0, 1, 2]


def test_rows_are_the_same_every_time() -> None:
    """What is measured is a function of public choices."""
    first, second = (synthetic_rows(COLUMNS, row_count=9, class_count=2) for _ in "12")
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_bounds_at_the_ends_of_doubles_give_numbers() -> None:
    """Their distance is no double."""
    most = np.finfo(np.float64).max
    values, _ = synthetic_rows((PublicColumn(bounds=(-most, most)),), row_count=9, class_count=2)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("kind", ["trees", "intervals", "estimator"])
def test_a_repeated_ensemble_votes_so_many_times(kind: str, *, scored: bool) -> None:
    """Counts are thrice those of the ensemble, and scores come thrice."""
    searched = hypothesis_class(
        ClassAsked(
            kind="trees" if kind == "estimator" else kind, tests=TESTS, depth=1, class_count=2
        )
    )
    estimator = "sklearn.linear_model.LogisticRegression" if kind == "estimator" else None
    learner = Learner(
        hypothesis_class=searched, estimator=estimator, columns=COLUMNS, scored=scored
    )
    values, labels = synthetic_rows(COLUMNS, row_count=120, class_count=2)
    ensemble = fit_ensemble(
        learner,
        values,
        labels,
        permutation=np.arange(120),
        offsets=np.arange(0, 121, 30),
        secret=b"s" * 32,
    )
    again = ensemble.repeated(3)
    assert again.size == 12
    assert np.array_equal(again.vote_counts(values), 3 * ensemble.vote_counts(values))
    if scored:
        assert np.array_equal(again.scores(values), np.tile(ensemble.scores(values), (1, 3)))
