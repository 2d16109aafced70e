"""The student's fit: the canonical hypothesis, an estimator, or a constant that says why."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from app.errors import ConfigurationError
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner
from app.learning.enumerated.enumerated_class import EnumeratedHypothesis
from app.learning.hypothesis import ClassAsked
from app.learning.learner_seeds import student_seed
from app.learning.registry import hypothesis_class
from app.learning.student import ConstantStudent, EstimatorStudent, check_student, fit_student
from app.learning.trees.tree import Tree

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(bounds=(0.0, 1.0)))
TESTS = tuple(
    BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=1 - cut)
    for feature in (0, 1)
    for cut in (0.25, 0.5, 0.75)
)
ODD = "tests.builders.learners.odd_estimators"
SEED = student_seed("0f" * 16)


def learner(
    kind: str = "trees", *, depth: int = 2, classes: int = 2, estimator: str | None = None
) -> Learner:
    """Return a learner over two numbers in [0, 1]."""
    return Learner(
        hypothesis_class=hypothesis_class(
            ClassAsked(kind=kind, tests=TESTS, depth=depth, class_count=classes, columns=COLUMNS)
        ),
        estimator=estimator,
        columns=COLUMNS,
    )


def examples(count: int = 60, *, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return queries with labels by a tree of depth 2, a tenth of them wrong."""
    generator = np.random.default_rng(4)
    values = generator.random((count, 2))
    labels = np.where(values[:, 0] >= 0.5, 1, np.where(values[:, 1] >= 0.25, classes - 1, 0))
    wrong = generator.random(count) < 0.1
    return values, np.where(wrong, (labels + 1) % classes, labels).astype(np.int64)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_rule_gives_the_tree_of_least_errors(classes: int) -> None:
    """No tree of the class disagrees with fewer labels, by brute force."""
    values, labels = examples(classes=classes)
    student = fit_student(learner(classes=classes), values, labels, seed=SEED)
    assert isinstance(student, Tree)
    bits = learner(classes=classes).hypothesis_class.encode(values)
    errors = np.count_nonzero(student.predict(bits) != labels)
    least = min(
        np.count_nonzero(Tree(test_indices=inner, leaf_labels=leaves).predict(bits) != labels)
        for inner in product(range(len(TESTS)), repeat=3)
        for leaves in product(range(classes), repeat=4)
    )
    assert errors == least


@pytest.mark.parametrize("kind", ["rectangles", "stumps", "halfspaces"])
def test_a_rule_gives_a_hypothesis_of_the_class_itself(kind: str) -> None:
    """Of a listed class it is the first in canonical order with the least errors."""
    values, labels = examples()
    chosen = learner(kind, depth=1)
    student = fit_student(chosen, values, labels, seed=SEED)
    assert isinstance(student, Tree | EnumeratedHypothesis)
    again = fit_student(chosen, values, labels, seed=b"")
    encoded = chosen.hypothesis_class.encode(values)
    predicted = student.predict(encoded)
    assert isinstance(again, Tree | EnumeratedHypothesis)
    assert predicted.tolist() == again.predict(encoded).tolist()
    if isinstance(student, EnumeratedHypothesis):
        listed = chosen.hypothesis_class.hypotheses  # type: ignore[attr-defined]  # it is a list
        errors = listed.error_counts(encoded, labels)
        assert np.count_nonzero(predicted != labels) == errors.min()


def test_an_estimator_is_the_same_after_storage() -> None:
    """Bytes give the same predictions, and the same seed the same bytes."""
    values, labels = examples()
    forest = learner(estimator="sklearn.ensemble.RandomForestClassifier")
    student, again, other = (
        fit_student(forest, values, labels, seed=seed) for seed in (SEED, SEED, b"other")
    )
    assert isinstance(student, EstimatorStudent)
    assert isinstance(again, EstimatorStudent)
    assert isinstance(other, EstimatorStudent)
    body = student.to_bytes()
    assert body == again.to_bytes()
    assert body != other.to_bytes()
    restored = EstimatorStudent.from_bytes(COLUMNS, body, fallback=student.fallback)
    queries = np.random.default_rng(5).random((50, 2))
    assert restored.predict(queries).tolist() == student.predict(queries).tolist()
    assert restored.to_bytes() == body


def test_what_an_estimator_cannot_say_of_a_query_is_the_most_frequent_label() -> None:
    """A label outside, NaN and an exception on later queries give the fallback."""
    values = np.array([[0.9, 0.0], [0.8, 0.0], [0.1, 0.0]])
    odd = learner(classes=3, estimator=f"{ODD}.PredictsOddly")
    student = fit_student(odd, values, np.array([2, 2, 1]), seed=SEED)
    assert isinstance(student, EstimatorStudent)
    queries = np.array([[0.25, 0.0], [0.5, 0.0], [0.75, 0.0], [0.6, 0.0]])
    assert student.predict(queries).tolist() == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("name", "failure"),
    [("FailsToFit", "ValueError"), ("PredictsOddly", "InvariantError")],
)
def test_a_failure_is_named_by_its_class(name: str, failure: str) -> None:
    """The most frequent label stands in, the first of those that tie."""
    values = np.array([[0.5, 0.0], [0.25, 0.0], [0.1, 0.0], [0.2, 0.0]])
    odd = learner(estimator=f"{ODD}.{name}")
    student = fit_student(odd, values, np.array([1, 1, 0, 0]), seed=SEED)
    assert student == ConstantStudent(0, failure=failure)


@pytest.mark.parametrize("estimator", [None, "sklearn.tree.DecisionTreeClassifier"])
@pytest.mark.parametrize(("labels", "label"), [([], 0), ([1], 1), ([2, 2], 2)])
def test_with_one_label_or_none_nothing_is_fitted(
    estimator: str | None, labels: list[int], label: int
) -> None:
    """It is that label, and class 0 without an example."""
    chosen = learner(classes=3, estimator=estimator)
    values = np.zeros((len(labels), 2))
    given = np.array(labels, dtype=np.int64)
    assert fit_student(chosen, values, given, seed=SEED) == ConstantStudent(label)


def test_the_seed_is_the_releases() -> None:
    """Each release has a seed of its own, and the same one each time."""
    assert student_seed("0f" * 16) == SEED
    assert student_seed("0e" * 16) != SEED


def test_a_student_that_would_print_is_refused_under_its_own_name() -> None:
    """A setting of the student that tells how its fit goes is named as the student's."""
    loud = Learner(
        hypothesis_class=learner().hypothesis_class,
        estimator="sklearn.ensemble.RandomForestClassifier",
        params={"verbose": 1},
        columns=COLUMNS,
    )
    with pytest.raises(ConfigurationError) as refusal:
        check_student(loud)
    assert refusal.value.key == "student.params"
    assert "what the queries give" in refusal.value.problem
