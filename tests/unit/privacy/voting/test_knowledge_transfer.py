"""A training set out of what was released, and out of nothing else."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from app.errors import InvariantError
from app.privacy.voting.knowledge_transfer import training_set

if TYPE_CHECKING:
    from numpy.typing import NDArray


def queries(count: int, *, width: int = 2) -> NDArray[np.float64]:
    """Return distinct queries that cannot be written to."""
    values = np.arange(count * width, dtype=np.float64).reshape(count, width)
    values.flags.writeable = False
    return values


def test_queries_without_a_label_are_left_out() -> None:
    """The labelled queries come out in their order, each with its own label."""
    given = queries(5)
    made = training_set(given, [1, None, 0, None, 2])
    assert made.values.tolist() == given[[0, 2, 4]].tolist()
    assert made.labels.tolist() == [1, 0, 2]
    assert made.labels.dtype == np.int64


@pytest.mark.parametrize("labels", [[None, None], []])
def test_without_a_label_there_is_no_row(labels: list[int | None]) -> None:
    """Where nothing was labelled the set is empty, and as wide as the queries."""
    made = training_set(queries(len(labels), width=3), labels)
    assert made.values.shape == (0, 3)
    assert made.labels.shape == (0,)


def test_nothing_but_queries_and_released_labels_goes_in() -> None:
    """The claim that it charges nothing is visible in its arguments."""
    assert list(signature(training_set).parameters) == ["query_values", "released_labels"]


def test_a_student_of_any_library_learns_from_it() -> None:
    """A classifier that has never heard of privacy fits the set as it is."""
    values = np.linspace(0.0, 1.0, 40)[:, None]
    labels = [None if index % 7 == 0 else int(index >= 20) for index in range(40)]
    made = training_set(values, labels)
    student = DecisionTreeClassifier(random_state=0).fit(made.values, made.labels)
    assert student.predict([[0.1], [0.9]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "labels", "claim"),
    [
        (queries(3), [1, 0], "a label or none"),
        (queries(2), [1, 0, None], "a label or none"),
        (queries(2), [1, -1], "class index"),
        (queries(2)[0], [1, 0], "rows of a table"),
    ],
)
def test_what_is_no_training_set_is_refused(
    values: NDArray[np.float64], labels: list[int | None], claim: str
) -> None:
    """Other numbers of labels, negative ones, and what is no table raise."""
    with pytest.raises(InvariantError, match=claim):
        training_set(values, labels)
