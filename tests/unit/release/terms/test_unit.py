"""What neighbours replace: what is refused by person, and how a plan counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.planning.from_settings import plan_settings
from app.planning.telling.plan_document import plan_document
from tests.builders.release.rows_of_persons import of_persons

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"classifier__learner": "linear"}, 'classifier.learner: must be "exponential"'),
        ({"classifier__learner": "kernel"}, 'classifier.learner: must be "exponential"'),
        ({"classifier__learner": "grid"}, 'classifier.learner: must be "exponential"'),
        ({"classifier__learner": "auto"}, 'classifier.learner: must be "exponential"'),
        ({"hypotheses__grid": "private"}, 'hypotheses.grid: must be "public"'),
        ({"privacy__calibration": "paper"}, 'privacy.calibration: must be "profile"'),
        (
            {"privacy__shares__statistics": "0.1", "privacy__shares__classifier": "0.2"},
            "privacy.shares.statistics: must be 0",
        ),
    ],
    ids=["linear", "kernel", "grid", "auto", "private grid", "paper", "statistics"],
)
def test_what_is_not_served_by_person_is_refused(
    tmp_path: Path, changes: dict[str, str], line: str
) -> None:
    """One line, by its setting, when a release is configured and when it is planned."""
    small = of_persons(tmp_path, **changes)
    for refuse in (small.configuration, lambda: plan_settings(small.settings(), 100)):
        with pytest.raises(ConfigurationError) as refused:
            refuse()
        assert str(refused.value) == f"{line} where data.person names persons"


def test_persons_are_what_is_planned(tmp_path: Path) -> None:
    """N is of persons, in words and for programs."""
    small = of_persons(tmp_path, data__persons="900", answers__ensemble="auto")
    document = plan_document(plan_settings(small.settings(), None))
    assert (document["unit"], document["n"]) == ("person", 900)
    assert "900 persons at epsilon 20" in str(document["summary"])
    assert " rows" not in str(document["summary"])
