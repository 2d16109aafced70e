"""A process killed while it opens or switches draws again under the same charge, or trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.crash.clients import Clients, check_ledger, connect
from tests.builders.crash.killing import check_killed, start_to_kill_at
from tests.builders.server.http_release import SmallRelease, agreed, agreed_label
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

CHARGED = ["relabel", "answers"]


@pytest.mark.parametrize(
    ("point", "charged"),
    [
        ("opening:calibrating the answers:3", []),
        ("opening:drawing the labelling hypothesis:1", CHARGED),
        ("opening:fitting learners:1", CHARGED),
    ],
    ids=["before the charge", "before the draw", "while fitting"],
)
def test_an_opening_that_was_killed_is_charged_once(
    tmp_path: Path, point: str, charged: list[str]
) -> None:
    """What was charged and not persisted is drawn again, under one charge, and then serves."""
    release = SmallRelease(tmp_path).write()
    clients = Clients()
    check_killed(release, start_to_kill_at(release, point), clients)
    killed = check_ledger(release, clients)
    assert [share.mechanism for share in killed.charged] == charged
    assert killed.ensemble is None
    with serving(release.config) as process, connect(process.address) as http:
        for number in range(4):
            answer = clients.ask_new(http, agreed)
            assert answer is not None
            assert answer["label"] == agreed_label(number)
        budget = http.get("/budget").json()
    assert [share["mechanism"] for share in budget["charged"]] == CHARGED
    assert [share["mechanism"] for share in budget["reserved"]] == ["classifier"]
    opened = check_ledger(release, clients)
    assert opened.ensemble is not None
    assert killed.release in (None, opened.release)


@pytest.mark.parametrize("point", ["switch:charged", "switch:drawn"])
def test_a_switch_that_was_killed_is_charged_once(opened: OpenedRelease, point: str) -> None:
    """A classifier charged and not published is drawn again, at once, under one charge."""
    release = opened(answers={"queries": "5"})
    clients = Clients()
    process = start_to_kill_at(release, point).wait_until_ready()
    clients.ask_until_the_end(process.address, [agreed])
    check_killed(release, process, clients)
    killed = check_ledger(release, clients)
    assert [share.mechanism for share in killed.charged] == [*CHARGED, "classifier"]
    assert (len(clients.seen), killed.classifier) == (5, None)
    with serving(release.config) as process, connect(process.address) as http:
        clients.repeat_all(process.address)
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert (answer["phase"], answer["query_id"]) == ("classifier", None)
        published = http.get("/classifier").content
        budget = http.get("/budget").json()
    assert [share["mechanism"] for share in budget["charged"]] == [*CHARGED, "classifier"]
    assert budget["reserved"] == []
    switched = check_ledger(release, clients)
    assert switched.classifier is not None
    assert switched.classifier.classifier.encode() == published


@pytest.mark.parametrize("point", ["switch:untrained", "switch:trained"])
def test_a_training_that_was_killed_goes_on_without_a_charge(
    opened: OpenedRelease, point: str
) -> None:
    """A student trained and not published is trained again, at once, and nothing is charged."""
    release = opened(
        answers={"queries": "5", "after": '"student"'},
        shares={"classifier": "0"},
        student={"estimator": '"sklearn.tree.DecisionTreeClassifier"'},
    )
    clients = Clients()
    process = start_to_kill_at(release, point).wait_until_ready()
    clients.ask_until_the_end(process.address, [agreed])
    check_killed(release, process, clients)
    killed = check_ledger(release, clients)
    assert (killed.answered, killed.classifier) == (5, None)
    assert "student" not in killed.private_digests
    with serving(release.config) as process, connect(process.address) as http:
        clients.ask_the_rest(process.address)
        clients.repeat_all(process.address)
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert (answer["phase"], answer["query_id"]) == ("classifier", None)
        published = http.get("/classifier").content
        budget = http.get("/budget").json()
    assert [share["mechanism"] for share in budget["charged"]] == CHARGED
    assert budget["reserved"] == []
    switched = check_ledger(release, clients)
    assert switched.classifier is not None
    assert switched.classifier.classifier.encode() == published
    assert "student" in switched.private_digests
