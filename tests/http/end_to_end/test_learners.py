"""Every learner of this version serves a release, and survives its restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.server.http_release import agreed, agreed_label, split
from tests.builders.server.serving import Served

if TYPE_CHECKING:
    from tests.http.end_to_end.conftest import OpenedRelease

LEARNERS = {
    "canonical": {"rule": '"canonical"'},
    "halving": {"rule": '"halving"'},
    "decision tree": {
        "estimator": '"sklearn.tree.DecisionTreeClassifier"',
        "params": "{ max_depth = 2 }",
    },
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_a_learner_answers_before_and_after_a_restart(
    opened: OpenedRelease, learner: dict[str, str]
) -> None:
    """What the rule decides is answered right, and answers stay what they were."""
    release = opened(learner=learner)
    vectors = [agreed(number) for number in range(6)]
    with Served(release.settings()) as served:
        before = served.stream(vectors)
        assert [each["label"] for each in before] == [agreed_label(number) for number in range(6)]
        assert all(each["stable"] for each in before)
    with Served(release.settings()) as served:
        assert served.stream(vectors) == [each | {"replayed": True} for each in before]
        assert served.answer(agreed(7))["label"] == agreed_label(7)
        assert served.answer(split(0))["query_id"] == 8


def test_rows_may_keep_their_labels(opened: OpenedRelease) -> None:
    """With a relabel share of 0 nothing is charged for relabelling, and answers are right."""
    release = opened(shares={"relabel": "0"})
    with Served(release.settings()) as served:
        charged = [share["mechanism"] for share in served.budget()["charged"]]
        assert charged == ["answers"]
        for number in range(6):
            assert served.answer(agreed(number))["label"] == agreed_label(number)
        assert served.answer(split(0))["stable"] is False
