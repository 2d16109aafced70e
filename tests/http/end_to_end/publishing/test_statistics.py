"""A statistics table before, after and without an ensemble, with real processes."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.cli import run
from app.release.statistics.posted_hypotheses import NEEDS_OUTCOMES
from tests.builders.server.asking_statistics import (
    ALONE,
    COMMAND,
    QUESTION,
    SHARES,
    asked,
    exact,
    question,
    stump,
)
from tests.builders.server.http_learning import learn, public_points
from tests.builders.server.http_release import SmallRelease, agreed, private_rows, split
from tests.builders.server.server_process import serving
from tests.builders.server.serving import Served
from tests.http.end_to_end.publishing.test_learn import mechanisms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

CHARGED = ["relabel", "answers", "classifier", "statistics"]
SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
NOT_OPEN = "urn:conclave:problem:statistics-not-open"


@contextmanager
def served(release: SmallRelease) -> Iterator[httpx.Client]:
    """Serve a release in a process of its own."""
    with (
        serving(release.config) as process,
        httpx.Client(base_url=process.address, timeout=SECONDS_MAX) as http,
    ):
        yield http


def post(http: httpx.Client, document: object = QUESTION) -> httpx.Response:
    """Ask the table."""
    return http.post("/statistics", json=document)


def opened_table(http: httpx.Client) -> dict[str, Any]:
    """Wait until the table is open, and return what it says."""
    started = time.monotonic()
    while (reply := post(http)).status_code != HTTPStatus.OK:
        assert reply.json()["type"] == NOT_OPEN
        assert time.monotonic() - started < SECONDS_MAX
        time.sleep(POLL_SECONDS)
    document: dict[str, Any] = reply.json()
    return document


def ask(http: httpx.Client, vector: list[object]) -> httpx.Response:
    """Ask for a label."""
    return http.post("/query", json={"features": vector})


def check(release: SmallRelease, answer: dict[str, Any]) -> None:
    """Compare with the exact means: alpha/2 is the table's own part."""
    assert answer["beta"] == 0.05
    for value, truth, fraction in zip(
        answer["values"], exact(release), answer["fractions"], strict=True
    ):
        assert abs(value - truth) <= answer["alpha"] / 2
        assert fraction == pytest.approx((1 + value) / 2)
    assert run(["verify", "--config", str(release.config)]) == 0


@pytest.mark.parametrize("end", ["switch", "halt"])
def test_the_server_opens_it_after_the_last_answer(opened: OpenedRelease, end: str) -> None:
    """409 until then; the charge moves from reserved to charged; restarts give the same."""
    release = opened(shares=SHARES, answers={"queries": "3"})
    with served(release) as http:
        assert post(http).json()["type"] == NOT_OPEN
        assert mechanisms(http.get("/budget").json(), "reserved") == ["classifier", "statistics"]
        for number in range(3):
            vector = agreed(number) if end == "switch" else split(number)
            assert ask(http, vector).status_code == HTTPStatus.OK
        answer = opened_table(http)
        budget = http.get("/budget").json()
        expected = (
            CHARGED if end == "switch" else [each for each in CHARGED if each != "classifier"]
        )
        assert sorted(mechanisms(budget, "charged")) == sorted(expected)
        head = http.get("/ledger/head").json()
        for _ in range(3):
            assert post(http).json() == answer
        assert http.get("/ledger/head").json() == head
        table = http.get("/statistics/table").json()
        assert (table["point_count"], table["classes"]) == (3, ["no", "yes"])
    with served(release) as http:
        assert post(http).json() == answer
        assert http.get("/ledger/head").json() == head
    assert asked(release) == answer
    assert run(["verify", "--config", str(release.config)]) == 0


def test_public_points_open_it_before_the_first_answer(tmp_path: Path) -> None:
    """The command line opens release and table; a server answers beside them and adds nothing."""
    release = SmallRelease(tmp_path, {"shares": SHARES}).write()
    answer = asked(release, "--public", public_points(release))
    check(release, answer)
    assert asked(release) == answer
    with served(release) as http:
        assert post(http).json() == answer
        assert ask(http, agreed(0)).json()["label"] == "yes"
        budget = http.get("/budget").json()
        assert mechanisms(budget, "charged") == ["relabel", "answers", "statistics"]
        classifier = {"tree": stump(50)["tree"], "classes": ["no", "yes"]}
        assert post(http, {"hypotheses": [classifier]}).json()["values"] == answer["values"][:1]


def test_a_running_server_finds_it_and_refuses_it_in_between(opened: OpenedRelease) -> None:
    """Opened beside it before the first answer it is there at once; after one it is refused."""
    release = opened(shares=SHARES)
    other = release.copy_to(release.folder.parent / "other")
    with served(release) as http:
        answer = asked(release, "--public", public_points(release))
        assert post(http).json() == answer
        assert ask(http, agreed(0)).status_code == HTTPStatus.OK
        assert "statistics" in mechanisms(http.get("/budget").json(), "charged")
    with served(other) as http:
        assert ask(http, agreed(0)).status_code == HTTPStatus.OK
        ended = learn(other, "--public", public_points(other), question(other), script=COMMAND)
        assert (ended.returncode, ended.stdout) == (1, b"")
        assert (
            b"before the ensemble's first answer or after its last, and 1 answers" in ended.stderr
        )
        assert "statistics" in mechanisms(http.get("/budget").json(), "reserved")


def test_statistics_alone_need_no_answer(tmp_path: Path) -> None:
    """The whole budget is theirs: queries get 410, the table opens beside the server."""
    release = SmallRelease(tmp_path, {"shares": ALONE}).write()
    with served(release) as http:
        assert ask(http, agreed(0)).status_code == HTTPStatus.GONE
        assert post(http).status_code == HTTPStatus.CONFLICT
        answer = asked(release, "--public", public_points(release))
        assert post(http).json() == answer
    check(release, answer)
    with served(release) as http:
        assert mechanisms(http.get("/budget").json(), "charged") == ["statistics"]


def test_without_a_share_there_is_no_route_to_it(opened: OpenedRelease) -> None:
    """404 over HTTP and one line on the command line; the ledger is as it was."""
    release = opened()
    with served(release) as http:
        head = http.get("/ledger/head").json()
        reply = post(http)
        assert (reply.status_code, reply.json()["type"]) == (
            HTTPStatus.NOT_FOUND,
            "urn:conclave:problem:no-statistics",
        )
        ended = learn(release, question(release), script=COMMAND)
        assert ended.returncode == 2
        assert ended.stderr.startswith(b"conclave: privacy.shares.statistics: is 0")
        assert http.get("/ledger/head").json() == head


def test_a_classifier_as_exported_is_a_hypothesis(opened: OpenedRelease) -> None:
    """What GET /classifier gives is asked about as it is."""
    release = opened(shares=SHARES, answers={"queries": "4"})
    with served(release) as http:
        for number in range(4):
            assert ask(http, agreed(number)).status_code == HTTPStatus.OK
        assert ask(http, agreed(4)).json()["phase"] == "classifier"
        opened_table(http)
        document = json.loads(http.get("/classifier").content)
        reply = post(http, {"hypotheses": [document]})
        assert reply.status_code == HTTPStatus.OK, reply.text
        (value,) = reply.json()["values"]
        assert -1 <= value <= 1


def test_three_labels_are_asked_about_two_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table, drawn once, answers any two outcomes, by the command and by the server."""
    # A value is further off than alpha/2 with a probability of beta, 1e-9.
    rows = [*private_rows(), ("60.000", "common", "maybe")]
    changes = {"shares": ALONE, "answers": {"beta": "1e-9"}}
    release = SmallRelease(tmp_path, changes).write(rows)
    classes = {"CONCLAVE_DATA__CLASSES": '["no", "yes", "maybe"]'}
    monkeypatch.setenv(*next(iter(classes.items())))
    pairs = (("no", "yes"), ("yes", "maybe"), ("maybe", "no"))
    document = {"hypotheses": [stump(50, *pair) | {"outcomes": pair} for pair in pairs]}
    options = ["--config", str(release.config), "--public", str(public_points(release))]
    assert run(["statistics", *options, str(question(release, document))]) == 0
    answer = json.loads(capsys.readouterr().out)
    truth = 2 * sum(float(age) >= 50 for age, _, _ in rows) / len(rows) - 1
    assert answer["values"] == pytest.approx([truth] * len(pairs), abs=answer["alpha"] / 2)
    assert answer["alpha"] < 1
    assert len(set(answer["values"])) == 1
    with Served(release.settings(classes)) as server:
        assert server.post_json("/statistics", document) == answer
        assert mechanisms(server.budget(), "charged") == ["statistics"]
        refused = server.post("/statistics", QUESTION)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert refused.json()["detail"] == f"hypotheses[0] {NEEDS_OUTCOMES}"
