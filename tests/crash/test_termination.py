"""A process asked to end drains: in time, with exit code 0, and without losing an answer."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from math import inf
from typing import TYPE_CHECKING

import httpx
import pytest

from app.cli import run
from tests.builders.crash.clients import NDJSON, Clients, check_ledger, connect
from tests.builders.crash.killing import start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.crash.load import CLIENT_COUNT, REPLY_SECONDS_MAX, Allowance, Crowd
from tests.builders.crash.witnessed import Witnessed
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import SmallRelease, agreed
from tests.builders.server.nursery import started
from tests.builders.server.server_process import ServerProcess, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

END_SECONDS_MAX = 10.0
# Enough lines that the server is still answering when it is asked to end.
STREAM_LINES = 20_000
ATTEMPTS_MAX = 5
BETWEEN_WISHES_SECONDS = 0.03
DRAINING = (HTTPStatus.SERVICE_UNAVAILABLE,)


def end(process: ServerProcess) -> None:
    """Ask a process to end; it must, in time, with exit code 0 and without a traceback."""
    asked = time.monotonic()
    process.terminate()
    assert process.wait() == 0
    assert time.monotonic() - asked < END_SECONDS_MAX
    assert "Traceback" not in process.errors()


def test_open_event_streams_end_with_the_process(opened: OpenedRelease) -> None:
    """Subscribers of the budget see their streams end, and do not keep the process alive."""
    release = opened()
    process = started(release.config).wait_until_ready()
    begun = threading.Barrier(3)

    def read_events() -> str:
        with httpx.stream("GET", f"{process.address}/budget/events", timeout=60) as events:
            chunks = events.iter_text()
            first = next(chunks)
            begun.wait(timeout=60)
            return first + "".join(chunks)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read_events) for _ in range(2)]
        begun.wait(timeout=60)
        end(process)
        for reader in readers:
            assert reader.result(timeout=REPLY_SECONDS_MAX).startswith("event: budget\ndata: {")


@pytest.mark.parametrize(
    "wishes",
    [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGTERM,) * 3],
    ids=["SIGTERM", "SIGINT", "SIGTERM three times"],
)
def test_a_drain_under_load_loses_no_query(
    opened: OpenedRelease, wishes: tuple[signal.Signals, ...]
) -> None:
    """Under sixty-four clients, what had reached the machine at the signal has its reply."""
    # So much epsilon that of thousands of vectors on which all agree none is unstable.
    privacy = {"epsilon": "100", "delta": "1e-12"}
    release = opened(
        Asked(agreed=5_000, split=0),
        answers={"queries": "100000", "cutoff": "60"},
        privacy=privacy,
    )
    process = start_to_kill_at(release, NOWHERE).wait_until_ready()
    witnessed = Witnessed()
    crowd = Crowd(witnessed, seed=5)
    witnessed.ask(crowd.new_vector(is_split=False), with_key=True)
    received = _end_under_load(process, crowd, wishes)
    assert received.isdisjoint(witnessed.lost)
    witnessed.check(release, refusals=DRAINING)
    assert len(witnessed.seen) > CLIENT_COUNT
    with serving(release.config) as restarted:
        questions = witnessed.answered_questions(with_key_only=False)
        replies = crowd.repeat(restarted.address, questions)
        assert [reply for reply in replies if not reply.get("replayed")] == []
        replies = crowd.repeat(restarted.address, sorted(witnessed.unanswered, key=str))
        assert {reply.get("phase") or str(reply) for reply in replies} <= {"ensemble"}
    witnessed.check(release, refusals=DRAINING)


def _end_under_load(
    process: ServerProcess, crowd: Crowd, wishes: tuple[signal.Signals, ...]
) -> set[float]:
    """End a process while everybody asks; return when what it had received then was sent."""
    allowance = Allowance(agreed=inf, split=40)
    stop = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        watching = [pool.submit(crowd.watch_budget, process.address) for _ in range(2)]
        asking = pool.submit(crowd.ask_until_the_end, process.address, allowance, stop)
        while crowd.witnessed.heard < 2 * CLIENT_COUNT:
            assert process.is_running(), process.errors()
            time.sleep(0.001)
        received = crowd.received()
        asked_to_end = time.monotonic()
        for wish in wishes:
            process.signal(wish)
            time.sleep(BETWEEN_WISHES_SECONDS)
        assert process.wait() == 0, process.errors()
        assert time.monotonic() - asked_to_end < END_SECONDS_MAX
        for each in (*watching, asking):
            each.result(timeout=REPLY_SECONDS_MAX)
    assert "Traceback" not in process.errors()
    return received


@pytest.mark.parametrize("ended", ["asked to end", "killed"])
def test_a_stream_goes_on_after_a_restart(opened: OpenedRelease, ended: str) -> None:
    """Ended in the middle of a stream, the server repeats what it answered and goes on."""
    body = "".join(
        json.dumps({"features": [70 + number / STREAM_LINES, "common"]}) + "\n"
        for number in range(STREAM_LINES)
    )
    limit = STREAM_LINES - 10
    # A busy machine may look away until all is answered: that stream was not interrupted.
    for _ in range(ATTEMPTS_MAX):
        release = opened(answers={"queries": str(limit), "after": '"halt"'})
        first = _interrupted(release, body, ended)
        answered = [reply for reply in first if "query_id" in reply]
        if len(answered) < limit:
            break
        shutil.rmtree(release.folder)
    assert 0 < len(answered) < limit
    assert first[: len(answered)] == answered
    refused = {reply["status"] for reply in first[len(answered) :]}
    assert refused <= {HTTPStatus.SERVICE_UNAVAILABLE}
    assert run(["verify", "--config", str(release.config)]) == 0
    with serving(release.config) as process:
        again = _stream(process.address, body)
    assert again[: len(answered)] == [each | {"replayed": True} for each in answered]
    assert [each["query_id"] for each in again[:-10]] == list(range(1, STREAM_LINES - 9))
    assert {each["status"] for each in again[-10:]} == {HTTPStatus.GONE}
    assert run(["verify", "--config", str(release.config)]) == 0


def test_an_opening_under_way_does_not_keep_the_process(tmp_path: Path) -> None:
    """Asked to end while it opens, the server ends; the next start opens the release."""
    release = SmallRelease(tmp_path).write()
    process = started(release.config).wait_until_alive()
    end(process)
    clients = Clients()
    with serving(release.config) as process, connect(process.address) as http:
        assert clients.ask_new(http, agreed) is not None
    assert check_ledger(release, clients).answered == 1


def test_a_switch_under_way_does_not_keep_the_process(opened: OpenedRelease) -> None:
    """Asked to end while the classifier is drawn, the server ends; the next start draws it."""
    release = opened(answers={"queries": "1"})
    process = start_to_kill_at(release, "switch:held").wait_until_ready()
    clients = Clients()
    with connect(process.address) as http, ThreadPoolExecutor(1) as pool:
        clients.ask_new(http, agreed)
        waiting = pool.submit(http.post, "/query", json={"features": agreed(1)})
        _wait_for_charge(process.address)
        end(process)
        assert waiting.result(timeout=60).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    with serving(release.config) as process, connect(process.address) as http:
        answer = clients.ask_new(http, agreed)
        assert answer is not None
        assert answer["phase"] == "classifier"
    charged = check_ledger(release, clients).charged
    assert [share.mechanism for share in charged] == ["relabel", "answers", "classifier"]


def _interrupted(release: SmallRelease, body: str, ended: str) -> list[dict[str, object]]:
    """Post a stream, end its server while it answers, and return the replies that came."""
    process = started(release.config).wait_until_ready()
    with ThreadPoolExecutor(1) as pool:
        streaming = pool.submit(_stream, process.address, body)
        _wait_for_answers(process.address)
        end(process) if ended == "asked to end" else process.kill()
        return streaming.result(timeout=60)


def _stream(address: str, body: str) -> list[dict[str, object]]:
    """Post a stream and return the replies that came before it ended."""
    replies: list[dict[str, object]] = []
    with (
        contextlib.suppress(httpx.TransportError),
        connect(address) as http,
        http.stream("POST", "/query/stream", content=body, headers=NDJSON) as response,
    ):
        replies.extend(json.loads(line) for line in response.iter_lines())
    return replies


def _wait_for_answers(address: str) -> None:
    """Wait until the stream is well under way."""
    with connect(address) as http:
        while http.get("/budget").json()["queries"]["answered"] < STREAM_LINES / 10:
            time.sleep(0.001)


def _wait_for_charge(address: str) -> None:
    """Wait until the classifier's share is charged."""
    with connect(address) as http:
        while http.get("/budget").json()["reserved"]:
            time.sleep(0.01)
