"""What a student learns by: refused before anything is opened, inherited, and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.release.terms.configuration import configure
from tests.builders.release.opened_release import changed
from tests.builders.release.student_release import NEIGHBORS, STUDENT, TREE

if TYPE_CHECKING:
    from tests.builders.release.small_release import SmallRelease


@pytest.fixture
def taught_release(small_release: SmallRelease) -> SmallRelease:
    """Return a release that a student follows, without a classifier's share."""
    return changed(small_release, **STUDENT)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"student__estimator": "sklearn.nowhere.Classifier"},
            "student.estimator: sklearn.nowhere.Classifier cannot be imported",
        ),
        (
            {**TREE, "student__params": '{"max_depth": -1}'},
            "student.params: sklearn.tree.DecisionTreeClassifier: ",
        ),
        (
            {
                "student__estimator": "sklearn.ensemble.RandomForestClassifier",
                "student__params": '{"verbose": 1}',
            },
            "student.params: verbose would print what the queries give; leave it out",
        ),
        (
            {"student__rule": "canonical", **NEIGHBORS},
            "student.estimator: give a rule or an estimator, not both",
        ),
        (
            {"student__params": '{"max_depth": 1}'},
            "student.params: are for an estimator; a rule takes none",
        ),
        (
            {"privacy__shares__answers": "0", "privacy__shares__classifier": "0.3"},
            (
                "privacy.shares.answers: with 0 no answer would teach a student; "
                'set answers.after = "classifier"'
            ),
        ),
        (
            {
                "privacy__shares__answers": "0",
                "privacy__shares__relabel": "0",
                "privacy__shares__statistics": "0.9",
            },
            "privacy.shares.answers: with 0 no answer would teach a student",
        ),
    ],
)
def test_a_student_that_cannot_be_had_is_refused(
    taught_release: SmallRelease, changes: dict[str, str], line: str
) -> None:
    """One line names the key, before a ledger is touched."""
    with pytest.raises(ConfigurationError) as refused:
        configure(changed(taught_release, **changes).settings())
    assert str(refused.value).startswith(line)


def test_without_a_student_its_section_is_free(small_release: SmallRelease) -> None:
    """What cannot follow is not checked, nor is the release bound to it."""
    given = changed(small_release, student__estimator="sklearn.nowhere.Classifier")
    assert configure(given.settings()).bound == configure(small_release.settings()).bound


def test_a_student_learns_as_the_chunks_do_unless_told(taught_release: SmallRelease) -> None:
    """An estimator of [learner] is the student's too; whatever rule there is, its is canonical."""
    as_chunks = changed(taught_release, learner__estimator=TREE["student__estimator"])
    assert as_chunks.configuration().student == as_chunks.configuration().learner
    told = changed(as_chunks, student__rule="canonical").configuration().student
    assert (told.estimator, told.rule) == (None, "canonical")
    halving = changed(taught_release, learner__rule="halving").configuration().student
    assert (halving.estimator, halving.rule) == (None, "canonical")


def test_the_students_learner_is_bound(taught_release: SmallRelease) -> None:
    """A release that a student follows is bound to what it will learn by."""
    bound = taught_release.configuration().bound
    assert bound["student.rule"] == '"canonical"'
    other = changed(taught_release, **TREE).configuration().bound
    assert {key for key in other if bound.get(key) != other[key]} == {
        "student.estimator",
        "student.params.max_depth",
    }
