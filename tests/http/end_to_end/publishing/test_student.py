"""From answers of the ensemble to a student of them, over HTTP and the command line."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from app.cli import run
from app.errors import ConfigurationError
from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from tests.builders.server.http_release import SmallRelease
    from tests.http.end_to_end.conftest import OpenedRelease

LIMIT = 40
SHARES = {"relabel": "0.9", "answers": "0.1", "classifier": "0"}
AFTER = {"after": '"student"'}
ESTIMATORS = {
    "rule": {"rule": '"canonical"'},
    "forest": {
        "estimator": '"sklearn.ensemble.RandomForestClassifier"',
        "params": "{ n_estimators = 10 }",
    },
    "neighbors": {"estimator": '"sklearn.neighbors.KNeighborsClassifier"'},
}


def answered(served: Served, number: int) -> None:
    """Check that the student answers a vector as the ensemble would have."""
    assert served.answer(agreed(number)) == {
        "query_id": None,
        "label": agreed_label(number),
        "stable": True,
        "phase": "classifier",
        "replayed": False,
    }


@pytest.mark.parametrize("student", ESTIMATORS.values(), ids=ESTIMATORS)
def test_a_student_follows_the_last_answer(
    opened: OpenedRelease, capsys: pytest.CaptureFixture[str], student: dict[str, str]
) -> None:
    """It answers without limit and number, survives a restart, and no charge is listed for it."""
    release = opened(answers=AFTER, shares=SHARES, student=student)
    with Served(release.settings()) as served:
        assert served.get("/classifier").status_code == HTTPStatus.NOT_FOUND
        served.answer(agreed(0), key="first")
        replies = served.stream(agreed(number) for number in range(1, LIMIT + 20))
        assert [each["query_id"] for each in replies] == [*range(2, LIMIT + 1), *[None] * 20]
        assert {each["phase"] for each in replies[LIMIT:]} == {"classifier"}
        answered(served, 500)
        budget = served.budget()
        document = served.get("/classifier").content
    assert budget["phase"] == "classifier"
    assert (budget["student"], budget["switching"]) == (True, False)
    assert [share["mechanism"] for share in budget["charged"]] == ["relabel", "answers"]
    assert budget["reserved"] == []
    with Served(release.settings()) as served:
        assert served.budget() == budget
        assert served.get("/classifier").content == document
        answered(served, 501)
        first = served.answer(agreed(0), key="first")
        assert (first["query_id"], first["replayed"]) == (1, True)
        replies = served.stream(agreed(number) for number in range(600, 700))
        assert [each["label"] for each in replies] == [agreed_label(n) for n in range(600, 700)]
    assert json.loads(document)["student"]["labelled_queries"] == LIMIT
    _exported(release, document, capsys)


def test_a_cutoff_can_lead_to_a_student(opened: OpenedRelease) -> None:
    """With on_cutoff = student, the query after unstable answer T is the student's."""
    release = opened(answers={"after": '"halt"', "on_cutoff": '"student"'}, shares=SHARES)
    with Served(release.settings()) as served:
        before = served.stream([*map(agreed, range(6)), *map(split, range(3)), agreed(9)])
        assert [each["stable"] for each in before] == [True] * 6 + [False] * 3 + [True]
        assert [each["query_id"] for each in before] == [*range(1, 10), None]
        document = served.get("/classifier").json()
        kinds = [each["kind"] for each in served.get("/ledger?limit=100").json()["entries"]]
    assert document["student"] == {"labelled_queries": 6, "rule": "canonical"}
    assert kinds[-1] == "StudentPublished"
    assert kinds.count("ShareCharged") == 2


def test_scores_teach_the_class_that_they_stand_for(opened: OpenedRelease) -> None:
    """A student of scores answers with labels: the second class where a score was 1/2 or more."""
    answers = {**AFTER, "output": '"score"', "queries": "10"}
    release = opened(answers=answers, shares={**SHARES, "relabel": "0"})
    with Served(release.settings()) as served:
        given = served.stream(agreed(number) for number in range(10))
        assert [each["score"] >= 0.5 for each in given] == [number % 2 == 0 for number in range(10)]
        for number in range(10, 14):
            answer = served.answer(agreed(number))
            assert (answer["label"], answer["phase"]) == (agreed_label(number), "classifier")
        assert served.get("/classifier").json()["student"]["labelled_queries"] == 10


@pytest.mark.parametrize(
    ("after", "on_cutoff", "query", "kind"),
    [
        ("student", "classifier", agreed, "StudentPublished"),
        ("student", "classifier", split, "ClassifierPublished"),
        ("classifier", "student", agreed, "ClassifierPublished"),
        ("classifier", "student", split, "StudentPublished"),
    ],
)
def test_the_two_limits_may_lead_to_different_classifiers(
    opened: OpenedRelease, after: str, on_cutoff: str, query: object, kind: str
) -> None:
    """The student is trained at its own limit and the classifier drawn, and charged, at its own."""
    answers = {
        "queries": "2",
        "cutoff": "1",
        "after": f'"{after}"',
        "on_cutoff": f'"{on_cutoff}"',
    }
    with Served(opened(answers=answers).settings()) as served:
        served.answer(agreed(1))
        served.answer(query(2))  # type: ignore[operator]  # one of two functions
        assert served.answer(agreed(3))["phase"] == "classifier"
        kinds = [each["kind"] for each in served.get("/ledger?limit=100").json()["entries"]]
        budget = served.budget()
    assert kinds[-1] == kind
    drawn = kind == "ClassifierPublished"
    assert [share["mechanism"] for share in budget["reserved"]] == [] if drawn else ["classifier"]
    assert ("classifier" in {share["mechanism"] for share in budget["charged"]}) is drawn


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"shares": {**SHARES, "answers": "0", "classifier": "1", "relabel": "0"}},
            "privacy.shares.answers",
        ),
        ({"shares": SHARES, "student": {"estimator": '"nowhere.Learner"'}}, "student.estimator"),
        ({"shares": SHARES, "student": {"param": "{}"}}, "student.param"),
    ],
)
def test_a_student_that_cannot_be_had_is_one_line(
    opened: OpenedRelease, changes: dict[str, dict[str, str]], line: str
) -> None:
    """Nothing is opened, and the line names the key."""
    release = opened()
    release.ledger.unlink()
    changed = type(release)(release.folder, {"answers": AFTER, **changes})
    changed.config.write_text(changed.text(), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused, Served(changed.settings()):
        pytest.fail("it serves")
    assert str(refused.value).startswith(f"{line}: ")
    assert "\n" not in str(refused.value)
    assert not release.ledger.exists()


def _exported(release: SmallRelease, document: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the ledger verifies and gives the document that was served."""
    config = str(release.config)
    assert run(["verify", "--config", config]) == 0
    capsys.readouterr()
    assert run(["export", "--config", config, "--format", "json"]) == 0
    assert capsys.readouterr().out.encode() == document
