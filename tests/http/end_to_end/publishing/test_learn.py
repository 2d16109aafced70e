"""A classifier that is learned before, beside and instead of an ensemble, with real processes."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.cli import run
from tests.builders.server.http_learning import learn, learned, public_points
from tests.builders.server.http_release import SmallRelease, agreed, agreed_label, split
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

LIMIT = 40
CHARGED = ["relabel", "answers", "classifier"]
REPLY_SECONDS_MAX = 60.0


class Client:
    """A client of a server in another process."""

    def __init__(self, http: httpx.Client) -> None:
        """Talk through an open client."""
        self._http = http

    def ask(self, features: object) -> httpx.Response:
        """Ask one vector."""
        return self._http.post("/query", json={"features": features})

    def answer(self, features: object) -> dict[str, Any]:
        """Ask one vector, which must be answered."""
        response = self.ask(features)
        assert response.status_code == HTTPStatus.OK, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def budget(self) -> dict[str, Any]:
        """Return the body of ``GET /budget``."""
        budget: dict[str, Any] = self._http.get("/budget").json()
        return budget

    def classifier(self) -> bytes | None:
        """Return the published document, or None where there is none."""
        response = self._http.get("/classifier")
        return None if response.status_code == HTTPStatus.NOT_FOUND else response.content

    def kinds(self) -> list[str]:
        """Return the kinds of all entries."""
        entries = self._http.get("/ledger", params={"after": 0, "limit": 1000}).json()["entries"]
        return [entry["kind"] for entry in entries]


@contextmanager
def served(release: SmallRelease, **options: Any) -> Iterator[Client]:
    """Serve a release in a process of its own, and yield a client of it."""
    with (
        serving(release.config, **options) as process,
        httpx.Client(base_url=process.address, timeout=REPLY_SECONDS_MAX) as http,
    ):
        yield Client(http)


def wait_for_charge(client: Client) -> None:
    """Wait until the server has charged for the classifier, which it does as it begins to draw."""
    deadline = time.monotonic() + REPLY_SECONDS_MAX
    while mechanisms(client.budget(), "charged") != CHARGED:
        assert time.monotonic() < deadline, "the share was not charged"
        time.sleep(0.05)


def mechanisms(budget: dict[str, Any], key: str) -> list[str]:
    """Return the mechanisms of the shares charged or reserved."""
    return [share["mechanism"] for share in budget[key]]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[SmallRelease]:
    """Return a release that nobody has opened; afterwards its ledger must verify."""
    release = SmallRelease(tmp_path).write()
    yield release
    assert run(["verify", "--config", str(release.config)]) == 0


def test_a_server_serves_what_was_learned_before_it(fresh: SmallRelease) -> None:
    """The ensemble is drawn under the charges made, answers, and gives way without a draw."""
    document = learned(fresh, "--public", public_points(fresh))
    with served(fresh) as client:
        assert client.classifier() == document
        budget = client.budget()
        assert (budget["phase"], budget["ensemble"]["size"]) == ("ensemble", 2400)
        assert (mechanisms(budget, "charged"), budget["reserved"]) == (CHARGED, [])
        answers = [client.answer(agreed(number)) for number in range(LIMIT)]
        assert [each["query_id"] for each in answers] == list(range(1, LIMIT + 1))
        assert {each["phase"] for each in answers} == {"ensemble"}
        after = client.answer(agreed(LIMIT))
        assert (after["phase"], after["label"]) == ("classifier", agreed_label(LIMIT))
        assert client.classifier() == document
        assert client.kinds().count("ClassifierPublished") == 1
        assert mechanisms(client.budget(), "charged") == CHARGED


def test_a_running_server_adopts_it_with_its_next_batch(opened: OpenedRelease) -> None:
    """Answers go on where they were; the document is there at once, the budget follows."""
    release = opened()
    with served(release) as client:
        first = client.answer(agreed(0))
        document = learned(release)
        assert client.classifier() == document
        assert mechanisms(client.budget(), "reserved") == ["classifier"]
        second = client.answer(agreed(1))
        assert (first["query_id"], second["query_id"], second["phase"]) == (1, 2, "ensemble")
        budget = client.budget()
        assert (mechanisms(budget, "charged"), budget["reserved"]) == (CHARGED, [])
        assert client.answer(split(0))["label"] is None
        for number in range(3, LIMIT):
            client.answer(agreed(number))
        assert client.answer(agreed(LIMIT))["phase"] == "classifier"
        kinds = client.kinds()
    assert kinds.count("ClassifierPublished") == 1
    assert kinds.index("ClassifierPublished") < len(kinds) - 1
    refused = learn(release)
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert run(["verify", "--config", str(release.config)]) == 0


def test_learning_under_load_loses_no_answer(opened: OpenedRelease) -> None:
    """While clients ask on and on, one process publishes: every answer is given and numbered."""
    release = opened(answers={"queries": "4000"})
    with served(release) as client, ThreadPoolExecutor(3) as pool:
        learning = pool.submit(learned, release, "--public", public_points(release))
        asking = [pool.submit(_ask_until, learning.done, client, one) for one in (0, 1)]
        answers = [answer for each in asking for answer in each.result()]
        document = learning.result()
        client.answer([99.5, "common"])
        assert client.classifier() == document
        assert client.budget()["queries"]["answered"] == len(answers) + 1
    assert sorted(each["query_id"] for each in answers) == list(range(1, len(answers) + 1))
    assert run(["verify", "--config", str(release.config)]) == 0


def test_beside_a_server_that_draws_nothing_else_does(opened: OpenedRelease) -> None:
    """Learning is refused while a switch is under way, and then publishes under its charge."""
    release = opened(answers={"queries": "1"})
    marks = str(release.folder / "marks")
    script = ("-m", "tests.builders.crash.killing_server", "--at", "switch:held", "--marks", marks)
    with served(release, script=script) as client:
        client.answer(agreed(0))
        wait_for_charge(client)
        refused = learn(release)
        assert (refused.returncode, refused.stdout) == (1, b"")
        assert refused.stderr.endswith(
            b"conclave: another process draws what is published; try again\n"
        )
    document = learned(release)
    with served(release) as client:
        assert client.classifier() == document
        assert client.answer(agreed(1))["phase"] == "classifier"
        assert client.kinds()[-2:] == ["ShareCharged", "ClassifierPublished"]
        assert mechanisms(client.budget(), "charged") == CHARGED


def test_a_halted_release_publishes_what_it_has_a_share_for(opened: OpenedRelease) -> None:
    """After the T-th unstable answer nothing new is answered, and the document is there."""
    release = opened()
    with served(release) as client:
        for number in range(3):
            assert client.answer(split(number))["stable"] is False
        assert client.classifier() is None
        document = learned(release)
        assert client.classifier() == document
    with served(release) as client:
        assert client.classifier() == document
        assert client.budget()["phase"] == "halted"
        assert client.ask(agreed(0)).status_code == HTTPStatus.GONE


def test_without_answers_it_serves_from_the_first_query(tmp_path: Path) -> None:
    """The whole budget is the classifier's; a server finds it published and draws nothing."""
    shares = {"relabel": "0", "answers": "0", "classifier": "1"}
    release = SmallRelease(tmp_path, {"shares": shares}).write()
    target = tmp_path / "classifier.json"
    assert learned(release, "-o", target) == b""
    with served(release) as client:
        assert client.classifier() == target.read_bytes()
        for number in (1, 2):
            answer = client.answer(agreed(number))
            assert (answer["query_id"], answer["phase"]) == (None, "classifier")
            assert answer["label"] == agreed_label(number)
        assert client.kinds() == [
            "ReleaseOpened",
            "ShareReserved",
            "ShareCharged",
            "ClassifierPublished",
        ]
        charged = client.budget()["charged"]
    assert [(share["mechanism"], share["epsilon"]) for share in charged] == [("classifier", 6)]
    assert json.loads(target.read_bytes())["release"] == "members"


@pytest.mark.parametrize("learnt", ["before", "public points", "at the start"])
def test_a_release_of_a_classifier_alone_answers_without_limit(tmp_path: Path, learnt: str) -> None:
    """Learned, semi-privately or drawn by the server's start: the budget says what it is."""
    shares = {"relabel": "0", "answers": "0", "classifier": "1"}
    release = SmallRelease(tmp_path, {"shares": shares}).write()
    if learnt != "at the start":
        learned(release, *(("--public", public_points(release)) if "points" in learnt else ()))
    with served(release) as client:
        first = client.answer(split(0))
        document, kinds, budget = client.classifier(), client.kinds(), client.budget()
        assert (first["phase"], first["stable"], first["query_id"]) == ("classifier", True, None)
        for number in range(3 * LIMIT):
            answer = client.answer(agreed(number % 5))
            assert answer == {**first, "label": agreed_label(number % 5)}
        assert (client.kinds(), client.budget()) == (kinds, budget)
    assert kinds[-2:] == ["ShareCharged", "ClassifierPublished"]
    assert (budget["phase"], budget["ensemble"]["size"]) == ("classifier", 0)
    assert [(share["mechanism"], share["epsilon"]) for share in budget["charged"]] == [
        ("classifier", 6)
    ]
    assert budget["reserved"] == []
    with served(release) as client:
        assert (client.classifier(), client.kinds()) == (document, kinds)
    assert run(["verify", "--config", str(release.config)]) == 0


def test_a_linear_score_waits_for_the_last_answer(tmp_path: Path) -> None:
    """In between the command ends with 1 and charges nothing; the switch draws and serves it."""
    changes = {
        "classifier": {"learner": '"linear"'},
        "answers": {"queries": "3"},
        "privacy": {"accounting": '"sum"'},  # in a joint account it is drawn at any time
    }
    release = SmallRelease(tmp_path, changes).write()
    with served(release) as client:
        for number in range(3):
            assert client.answer(agreed(number))["label"] == agreed_label(number)
            if number == 1:
                refused = learn(release)
                assert (refused.returncode, refused.stdout) == (1, b"")
                assert b"2 answers are given: wait for the last one" in refused.stderr
        answer = client.answer(agreed(4))
        assert (answer["phase"], answer["label"]) == ("classifier", agreed_label(4))
        document, budget = client.classifier(), client.budget()
        assert client.kinds()[-2:] == ["ShareCharged", "ClassifierPublished"]
    assert json.loads(document or b"")["version"] == 7
    charged = {share["mechanism"]: share["delta"] for share in budget["charged"]}
    assert charged["classifier"] == pytest.approx(1e-13, rel=1e-4)
    assert run(["verify", "--config", str(release.config)]) == 0


def _ask_until(done: Any, client: Client, parity: int) -> list[dict[str, Any]]:
    """Ask vectors that nobody else asks until something is done, and a few times more."""
    answers: list[dict[str, Any]] = []
    left = 20
    while left:
        left -= done()
        answers.append(client.answer([round(75 + parity / 10 + len(answers) / 10**5, 6), "common"]))
    return answers
