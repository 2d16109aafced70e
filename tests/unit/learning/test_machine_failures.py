"""The machine's failures in fits and votes: no vote stands for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import MachineError
from app.learning.chunks import chunk_offsets
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_ensemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.learning.student import fit_student
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble

STARVED = "tests.builders.learners.plain_estimators:Starved"
TREES = hypothesis_class(ClassAsked(kind="trees", tests=unit_tests(1), depth=1, class_count=2))
ROWS = 40
WANTS = ["memory", "file", "thread", "wrapped"]


def learner(**params: str) -> Learner:
    """Return the choice of learners that are starved by a row above 0.85."""
    columns = (PublicColumn(bounds=(0.0, 1.0)),)
    return Learner(hypothesis_class=TREES, estimator=STARVED, params=params, columns=columns)


def fitted(choice: Learner, *, largest: float) -> Ensemble:
    """Fit four learners; one chunk holds the largest value."""
    values = np.resize(np.array([0.1, 0.6]), ROWS)
    values[ROWS - 1] = largest
    labels = (values >= 0.5).astype(np.int64)
    return fit_ensemble(
        choice,
        values[:, np.newaxis],
        labels,
        permutation=np.arange(ROWS),
        offsets=chunk_offsets(ROWS, 4),
        secret=b"e",
    )


@pytest.mark.parametrize("wants", WANTS)
def test_a_fit_that_the_machine_fails_ends_the_opening(wants: str) -> None:
    """Three chunks fit and one is refused: there is no ensemble, rather than one with a class 0."""
    choice = learner(at="fit", wants=wants)
    assert fitted(choice, largest=0.7).size == 4
    with pytest.raises(MachineError):
        fitted(choice, largest=0.9)


@pytest.mark.parametrize("wants", WANTS)
def test_a_vote_that_the_machine_fails_is_none(wants: str) -> None:
    """Votes and scores of a batch with such a query are not given, and those of others are."""
    ensemble = fitted(learner(at="predict", wants=wants), largest=0.7)
    queries: NDArray[np.float64] = np.array([[0.1], [0.9]])
    assert ensemble.vote_counts(queries[:1]).sum() == 4
    for ask in (ensemble.vote_counts, ensemble.scores):
        with pytest.raises(MachineError):
            ask(queries)


def test_no_student_is_made_of_a_failure_of_the_machine() -> None:
    """What memory there is depends on the ensemble: no constant is published in its place."""
    values, labels = np.array([[0.1], [0.9]]), np.array([0, 1])
    with pytest.raises(MachineError):
        fit_student(learner(at="fit"), values, labels, seed=b"s")
