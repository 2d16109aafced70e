"""Classifiers of every learner over rows of persons: one row each is as rows, copies are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.data.rows import PrivateRows
from app.release.classifier.learner_table import chosen_learner, classifier_draw
from app.release.classifier.published_classifier import draw_published
from tests.builders.release.rows_of_persons import of_persons, rows_of
from tests.builders.release.small_release import SmallRelease, seeded_noise

if TYPE_CHECKING:
    from pathlib import Path

PERSON_COUNT = 60
ONE_EACH = [1] * PERSON_COUNT
COPIES = 8
ALONE = {
    "privacy__shares__relabel": "0",
    "privacy__shares__answers": "0",
    "privacy__shares__classifier": "1",
}
POINTS = rows_of([1] * 20).values + 0.25
LEARNERS = ("exponential", "linear", "kernel", "grid", "scored-tree")


def drawn(small: SmallRelease, rows: PrivateRows) -> bytes:
    """Return the document of the classifier that one seed draws."""
    configuration = small.configuration()
    prepared = classifier_draw(configuration, POINTS, row_count=rows.count)
    return draw_published(configuration, prepared, rows, seeded_noise(4)).json


def changes(learner: str) -> dict[str, str]:
    """Return the settings of a release whose whole epsilon is its classifier's."""
    more = {"classifier__tests": '{"group": []}'} if learner == "grid" else {}
    return {**ALONE, **more, "classifier__learner": learner}


@pytest.mark.parametrize("learner", ["exponential", "linear", "kernel", "auto"])
def test_one_row_a_person_is_a_classifier_of_rows(tmp_path: Path, learner: str) -> None:
    """From one seed the documents are the same, to the byte."""
    rows = rows_of(ONE_EACH)
    plain = PrivateRows(values=rows.values, labels=rows.labels)
    by_rows = drawn(SmallRelease(tmp_path, changes(learner)), plain)
    assert drawn(of_persons(tmp_path, **changes(learner)), rows) == by_rows


@pytest.mark.parametrize("learner", LEARNERS)
def test_rows_of_persons_give_a_classifier(tmp_path: Path, learner: str) -> None:
    """However many each has, the rule of the rows is found again."""
    small = of_persons(tmp_path, **changes(learner))
    rows = rows_of([1 + number % 12 for number in range(300)])
    prepared = classifier_draw(small.configuration(), POINTS, row_count=rows.count)
    assert " 300 persons" in prepared.worth("by points")
    assert " rows:" not in prepared.worth("by points")
    found = draw_published(small.configuration(), prepared, rows, seeded_noise(4))
    asked = [(float(margin), "a") for margin in (-45, -30, 30, 45)]
    assert found.predict_many(asked) == ["no", "no", "yes", "yes"]


@pytest.mark.parametrize("learner", ["exponential", "grid", "scored-tree"])
def test_copies_of_a_row_are_one(tmp_path: Path, learner: str) -> None:
    """A person with eight copies of a row counts as with one: the weights add up to the same."""
    small = of_persons(tmp_path, **changes(learner))
    one = drawn(small, rows_of(ONE_EACH))
    assert drawn(small, rows_of([*ONE_EACH[:9], COPIES, *ONE_EACH[10:]])) == one


def test_auto_counts_persons(tmp_path: Path) -> None:
    """The rule goes by persons in place of rows, and says so."""
    small = of_persons(tmp_path, **changes("auto"), data__persons="900")
    found = [
        chosen_learner(small.settings(), row_count=count, opened=None) for count in (40, 40_000)
    ]
    assert [each.row.learner.name for each in found] == ["exponential", "linear"]
    assert "40,000 persons at epsilon 20" in found[1].reason
    assert "rows" not in found[1].reason
