"""What this version does not serve is refused by name, before anything is opened."""

from __future__ import annotations

import pytest

from app.errors import ConfigurationError
from app.planning.from_settings import warn_if_infeasible
from app.release.terms.configuration import configure
from tests.builders.release.small_release import SmallRelease


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"privacy__shares__answers": "0", "answers__after": "halt"},
            (
                "privacy.shares.answers: with 0 nothing would ever answer; "
                'set answers.after = "classifier"'
            ),
        ),
    ],
)
def test_what_is_not_served_is_one_line(
    small_release: SmallRelease, changes: dict[str, str], line: str
) -> None:
    """The line names the setting, what it says and what is served instead."""
    with pytest.raises(ConfigurationError) as refused:
        configure(SmallRelease(small_release.folder, changes).settings())
    assert str(refused.value) == line


def test_an_infeasible_release_is_told_once(small_release: SmallRelease) -> None:
    """What planning calls infeasible is served with one line; what it calls feasible without."""
    told: list[str] = []
    warn_if_infeasible(small_release.settings(), 60, told.append)
    (line,) = told
    assert line.startswith("this release is infeasible as planned: ")
    assert "\n" not in line


def test_an_estimator_that_cannot_be_had_is_refused(small_release: SmallRelease) -> None:
    """A learner is imported before a row is read."""
    changes = {"learner__estimator": "sklearn.nowhere.Classifier"}
    with pytest.raises(ConfigurationError, match=r"learner\.estimator"):
        configure(SmallRelease(small_release.folder, changes).settings())
