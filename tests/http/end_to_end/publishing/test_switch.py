"""From answers of the ensemble to the published classifier, over HTTP."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from tests.builders.server.http_release import SmallRelease, agreed, agreed_label, split
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

LIMIT = 40


@pytest.fixture
def switched(opened: OpenedRelease) -> SmallRelease:
    """Return a release that has given its last answer of the ensemble, keys on the first two."""
    release = opened()
    with Served(release.settings()) as served:
        served.answer(agreed(0), key="first")
        served.answer(split(0), key="second")
        served.stream(agreed(number) for number in range(1, LIMIT - 2))
        assert served.budget()["phase"] == "ensemble"
        last = served.answer(agreed(LIMIT - 2))
        assert (last["phase"], last["query_id"]) == ("ensemble", LIMIT)
        assert served.answer(agreed(1000))["phase"] == "classifier"
    return release


def test_after_the_last_answer_the_classifier_answers(switched: SmallRelease) -> None:
    """The classifier answers everything, without number, and nothing more is written."""
    with Served(switched.settings()) as served:
        before = served.budget()
        for number in (0, 1, 2, 500, 501):
            assert served.answer(agreed(number)) == {
                "query_id": None,
                "label": agreed_label(number),
                "stable": True,
                "phase": "classifier",
                "replayed": False,
            }
        replies = served.stream(split(number) for number in range(100))
        assert {each["phase"] for each in replies} == {"classifier"}
        assert served.budget() == before
    assert before["phase"] == "classifier"
    assert before["queries"] == {"answered": LIMIT, "limit": LIMIT, "left": 0}
    assert before["reserved"] == []
    charged = {share["mechanism"]: share["epsilon"] for share in before["charged"]}
    assert charged == {"relabel": 1.8, "answers": 0.6, "classifier": 3.6}


def test_keys_from_before_the_switch_still_replay(switched: SmallRelease) -> None:
    """A key of the ensemble's time keeps its answer, and a new one gets the classifier's."""
    with Served(switched.settings()) as served:
        before = served.budget()
        first = served.answer(agreed(0), key="first")
        assert (first["query_id"], first["phase"], first["replayed"]) == (1, "ensemble", True)
        second = served.answer(split(0), key="second")
        assert (second["query_id"], second["label"], second["stable"]) == (2, None, False)
        assert served.query(agreed(1), key="first").status_code == HTTPStatus.CONFLICT
        for features in (agreed(0), agreed(1), agreed(2000)):
            answer = served.answer(features, key="later-key")
            assert (answer["query_id"], answer["phase"]) == (None, "classifier")
        assert served.budget() == before


def test_the_published_classifier_predicts_what_is_served(switched: SmallRelease) -> None:
    """The document of GET /classifier gives the labels that the server gives."""
    vectors = [agreed(number) for number in range(8)] + [split(3), [None, "rare"], [70, None]]
    with Served(switched.settings()) as served:
        published = served.get("/classifier")
        assert published.status_code == HTTPStatus.OK
        document = published.json()
        labels = [each["label"] for each in served.stream(vectors)]
    assert document["classes"] == ["no", "yes"]
    assert [_walk(document["tree"], vector) for vector in vectors] == labels


@pytest.mark.parametrize(
    ("after", "on_cutoff", "phase"),
    [("classifier", "halt", "halted"), ("halt", "classifier", "classifier")],
)
def test_on_cutoff_decides_where_both_limits_are_reached(
    opened: OpenedRelease, after: str, on_cutoff: str, phase: str
) -> None:
    """Where one answer is the last of both kinds, what follows is what on_cutoff says."""
    answers = {
        "queries": "2",
        "cutoff": "1",
        "after": f'"{after}"',
        "on_cutoff": f'"{on_cutoff}"',
    }
    with Served(opened(answers=answers).settings()) as served:
        assert served.answer(agreed(0))["stable"] is True
        assert served.answer(split(0))["stable"] is False
        reply = served.query(agreed(1))
        budget = served.budget()
        assert served.get("/readyz").status_code == HTTPStatus.OK
    assert budget["phase"] == phase
    assert budget["queries"]["left"] == budget["unstable"]["left"] == 0
    assert reply.status_code == (HTTPStatus.GONE if phase == "halted" else HTTPStatus.OK)


def test_a_cutoff_can_lead_to_the_classifier(opened: OpenedRelease) -> None:
    """With on_cutoff = classifier, the query after unstable answer T gets the classifier's."""
    with Served(opened(answers={"on_cutoff": '"classifier"'}).settings()) as served:
        replies = served.stream(split(number) for number in range(5))
        assert [each["query_id"] for each in replies] == [1, 2, 3, None, None]
        assert served.budget()["queries"] == {"answered": 3, "limit": LIMIT, "left": LIMIT - 3}


def test_a_release_without_answers_starts_with_the_classifier(opened: OpenedRelease) -> None:
    """With an answers share of 0 the very first query is answered by the classifier."""
    release = opened(shares={"relabel": "0", "answers": "0", "classifier": "1"})
    with Served(release.settings()) as served:
        for number in (1, 2):
            answer = served.answer(agreed(number), key=f"key-{number}")
            assert (answer["query_id"], answer["label"]) == (None, agreed_label(number))
        budget = served.budget()
        assert served.get("/classifier").status_code == HTTPStatus.OK
    assert budget["phase"] == "classifier"
    assert [share["mechanism"] for share in budget["charged"]] == ["classifier"]
    assert budget["reserved"] == []
    assert budget["queries"]["answered"] == 0


def test_a_switch_survives_restarts(switched: SmallRelease, tmp_path: Path) -> None:
    """A restart serves the same classifier, even from a copy in another place."""
    moved = switched.copy_to(tmp_path / "moved")
    with Served(switched.settings()) as served:
        document = served.get("/classifier").content
        budget = served.budget()
    with Served(moved.settings()) as served:
        assert served.get("/classifier").content == document
        assert served.budget() == budget
        assert served.answer(agreed(3))["phase"] == "classifier"


def _walk(node: dict[str, object], vector: list[object]) -> object:
    """Follow the published document, as a reader of its description would."""
    while "label" not in node:
        value = vector[int(str(node["feature"]))]
        if "at_least" in node:
            holds = isinstance(value, int | float) and value >= float(str(node["at_least"]))
        elif "category" in node:
            holds = value == node["category"]
        elif node.get("missing"):
            holds = value is None
        else:
            holds = value not in (None, "common", "rare")
        following = node["true" if holds else "false"]
        assert isinstance(following, dict)
        node = following
    return node["label"]
