"""What neighbours replace: what is refused by person, and how a plan counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.planning.from_settings import plan_settings
from app.planning.output.plan_document import plan_document
from app.release.statistics.statistics_table import statistics_forecasts
from tests.builders.release.rows_of_persons import of_persons
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from pathlib import Path


def test_labellings_of_the_rows_themselves_are_refused(tmp_path: Path) -> None:
    """One line, by its setting, when a release is configured and when it is planned."""
    small = of_persons(tmp_path, hypotheses__grid="private")
    for refuse in (small.configuration, lambda: plan_settings(small.settings(), 100)):
        with pytest.raises(ConfigurationError) as refused:
            refuse()
        line = 'hypotheses.grid: must be "public" where data.person names persons'
        assert str(refused.value) == line


STATISTICS = {"privacy__shares__statistics": "0.1", "privacy__shares__classifier": "0.2"}


@pytest.mark.parametrize(
    "changes",
    [
        *({"classifier__learner": name} for name in ("linear", "kernel", "auto")),
        {"classifier__learner": "grid", "classifier__tests": '{"group": []}'},
        STATISTICS,
        {"privacy__calibration": "paper", "privacy__epsilon": "2", "answers__ensemble": "5"},
    ],
    ids=["linear", "kernel", "auto", "grid", "statistics", "paper"],
)
def test_all_else_is_planned_by_person(tmp_path: Path, changes: dict[str, str]) -> None:
    """And no sentence of the plan says rows where persons are meant."""
    small = of_persons(tmp_path, data__persons="900", **changes)
    document = plan_document(plan_settings(small.settings(), None))
    assert (document["unit"], document["n"]) == ("person", 900)
    told = [document["summary"], document["reasons"], document["advice"], document["notes"]]
    assert " rows" not in str(told)


def test_a_table_of_persons_is_not_proven_to_last(tmp_path: Path) -> None:
    """What they count for is rounded, so that its promise holds where its updates last."""
    proven = []
    for small in (of_persons(tmp_path, **STATISTICS), SmallRelease(tmp_path, STATISTICS)):
        changes = {**small.changes, "statistics__updates": "100"}
        settings = SmallRelease(tmp_path, changes).settings()
        forecasts = statistics_forecasts(settings, row_count=10**6)
        proven.append(any(each.is_proven for each in forecasts))
    assert proven == [False, True]


def test_persons_are_what_is_planned(tmp_path: Path) -> None:
    """N is of persons, in words and for programs."""
    small = of_persons(tmp_path, data__persons="900", answers__ensemble="auto")
    document = plan_document(plan_settings(small.settings(), None))
    assert (document["unit"], document["n"]) == ("person", 900)
    assert "900 persons at epsilon 20" in str(document["summary"])
    assert " rows" not in str(document["summary"])
