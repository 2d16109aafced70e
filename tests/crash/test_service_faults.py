"""A server whose database fails releases nothing, says so, and goes on when the fault goes."""

from __future__ import annotations

import json
import resource
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.cli import run
from app.ledger.ledger import open_ledger
from tests.builders.crash.clients import Clients
from tests.builders.crash.killing import kill_at, marks_of, start_to_kill_at
from tests.builders.crash.killing_server import NOWHERE
from tests.builders.crash.load import JSON, Crowd, connect
from tests.builders.crash.planted import (
    DATABASE_FAULTS,
    DRAWS,
    FAILED_COMMIT,
    FAULT_AT_START,
    FULL,
    FULL_LOG,
    LOST_COMMIT,
    NONE,
    READ_ONLY,
    draws,
)
from tests.builders.crash.witnessed import Question, Witnessed
from tests.builders.server.asking_statistics import SHARES
from tests.builders.server.chances import Asked
from tests.builders.server.http_release import agreed
from tests.http.end_to_end.publishing.test_statistics import opened_table
from tests.http.end_to_end.publishing.test_statistics import post as post_statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from app.ledger.entries.fold import LedgerState
    from app.ledger.ledger import AnswerRow
    from tests.builders.server.http_release import SmallRelease
    from tests.builders.server.server_process import ServerProcess
    from tests.http.end_to_end.conftest import OpenedRelease

pytestmark = pytest.mark.crash

LIMITS = {"queries": "1000000", "cutoff": "60"}
# A split vector that chance answers is an answer as any other here.
PRIVACY, ASKED = {"epsilon": "20"}, Asked(agreed=300, split=0)
# More than the pages at hand can take: a database that may not grow refuses them.
LINE_COUNT = 300
POST_COUNT = 16
# Less than the pages of so many answers, and more than what the record of draws takes.
FILE_BYTES_MAX = 40_000
END_SECONDS_MAX = 10.0
SWITCH_SECONDS_MAX = 60.0
# A switch that was postponed is tried again every second.
SWITCH_AGAIN_SECONDS = 1.5
Fault: TypeAlias = "Callable[[SmallRelease, ServerProcess], AbstractContextManager[None]]"


def numbered(number: int) -> Fault:
    """Return a fault that the server has because the marks say so."""

    @contextmanager
    def marked(release: SmallRelease, process: ServerProcess) -> Iterator[None]:
        del process
        marks_of(release).fault = number
        yield
        marks_of(release).fault = NONE

    return marked


@contextmanager
def locked(release: SmallRelease, process: ServerProcess) -> Iterator[None]:
    """Hold the write lock from this process."""
    del process
    with closing(sqlite3.connect(release.ledger, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


@contextmanager
def broken_disk(release: SmallRelease, process: ServerProcess) -> Iterator[None]:
    """Let the system refuse the server's writes to a log that begins anew, after some pages."""
    with closing(sqlite3.connect(release.ledger)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    limits = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, limits[1]))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limits)


FAULTS = {
    "full": numbered(FULL),
    "read-only": numbered(READ_ONLY),
    "failed commit": numbered(FAILED_COMMIT),
    "lost commit": numbered(LOST_COMMIT),
    "locked": locked,
    "broken disk": broken_disk,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_releases_nothing_and_draws_nothing_twice(
    opened: OpenedRelease, fault: str
) -> None:
    """Under it all new queries get 503; after it, the answers that were drawn the first time."""
    release = opened(ASKED, answers=LIMITS, privacy=PRIVACY)
    process = started(release, DATABASE_FAULTS, DRAWS)
    crowd = Crowd(Witnessed(), seed=1)
    known, new = questions(crowd, 20), questions(crowd, LINE_COUNT + POST_COUNT)
    crowd.repeat(process.address, known)
    with FAULTS[fault](release, process):
        # What a lost commit recorded is released as soon as it is known to be there.
        rounds = 1 if fault == "lost commit" else 2
        for _ in range(rounds):
            check_refused(process.address, crowd, new)
            check_known(process.address, crowd, known)
        before = folded(release)[0]
        assert fault == "lost commit" or shown(process.address) == told(before)
    replies = crowd.repeat(process.address, new)
    assert {reply.get("phase") for reply in replies} == {"ensemble"}
    check_known(process.address, crowd, known)
    state, recorded = folded(release)
    check_metrics(process.address, state, rounds * len(new))
    assert shown(process.address) == told(state)
    assert state.answered == len(known) + len(new)
    assert draws(release.folder) == [
        (digest, answer.label, answer.stable) for digest, _, answer, _ in recorded
    ]
    crowd.witnessed.check(release, refusals=(HTTPStatus.SERVICE_UNAVAILABLE,))
    end(process)


@pytest.mark.parametrize("fault", ["full", "failed commit", "lost commit", "locked"])
def test_a_server_at_fault_ends_when_it_is_asked_to(opened: OpenedRelease, fault: str) -> None:
    """SIGTERM under a fault ends it in time; the next start answers what was refused, once."""
    release = opened(ASKED, answers=LIMITS, privacy=PRIVACY)
    process = started(release, DATABASE_FAULTS)
    crowd = Crowd(Witnessed(), seed=2)
    new = questions(crowd, LINE_COUNT + POST_COUNT)
    with FAULTS[fault](release, process):
        check_refused(process.address, crowd, new)
        end(process)
    process = started(release)
    replies = crowd.repeat(process.address, new)
    assert {reply["query_id"] for reply in replies} == set(range(1, len(new) + 1))
    assert any(reply["replayed"] for reply in replies) == (fault == "lost commit")
    crowd.witnessed.check(release, refusals=(HTTPStatus.SERVICE_UNAVAILABLE,))
    end(process)


@pytest.mark.parametrize("fault", [READ_ONLY, FAILED_COMMIT, LOST_COMMIT])
@pytest.mark.parametrize("point", ["respond:before:1", "switch:charged"])
def test_a_fault_postpones_the_switch(opened: OpenedRelease, point: str, fault: int) -> None:
    """Neither charge nor publication is lost or made twice, and the switch comes when it can."""
    release = opened(answers={"queries": "1"})
    kill_at(release, point, Clients(), vectors=[agreed])
    process = started(release, DATABASE_FAULTS, f"{FAULT_AT_START}:{fault}")
    question = [Question((12.0, "common"), None)]
    with closing(connect(process.address)) as connection:
        connection.request("GET", "/classifier")
        if fault != LOST_COMMIT:
            assert connection.getresponse().status == HTTPStatus.NOT_FOUND
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Crowd(Witnessed(), seed=3).repeat, process.address, question)
        time.sleep(SWITCH_AGAIN_SECONDS)
        assert not waiting.done() or fault == LOST_COMMIT
        marks_of(release).fault = NONE
        (reply,) = waiting.result(timeout=SWITCH_SECONDS_MAX)
    assert (reply["phase"], reply["query_id"]) == ("classifier", None)
    state, _ = folded(release)
    assert [share.mechanism for share in state.charged] == ["relabel", "answers", "classifier"]
    assert shown(process.address) == told(state)
    end(process)


def test_a_fault_postpones_the_statistics_table(opened: OpenedRelease) -> None:
    """Its publication fails after the charge: 409 meanwhile, and one table under one charge."""
    release = opened(shares=SHARES, answers={"queries": "1", "after": '"halt"'})
    kill_at(release, "statistics:charged", Clients(), vectors=[agreed])
    process = started(release, DATABASE_FAULTS, f"{FAULT_AT_START}:{FAILED_COMMIT}")
    with httpx.Client(base_url=process.address, timeout=60.0) as http:
        assert post_statistics(http).status_code == HTTPStatus.CONFLICT
        time.sleep(SWITCH_AGAIN_SECONDS)
        assert post_statistics(http).status_code == HTTPStatus.CONFLICT
        marks_of(release).fault = NONE
        answer = opened_table(http)
        assert post_statistics(http).json() == answer
    state, _ = folded(release)
    assert [share.mechanism for share in state.charged] == ["relabel", "answers", "statistics"]
    assert shown(process.address) == told(state)
    end(process)


def test_a_log_that_cannot_be_written_stops_nothing(opened: OpenedRelease) -> None:
    """Its disk is full, and every query is answered and recorded as before."""
    release = opened(ASKED, answers=LIMITS, privacy=PRIVACY)
    process = started(release, FULL_LOG)
    crowd = Crowd(Witnessed(), seed=4)
    replies = crowd.repeat(process.address, questions(crowd, 20))
    assert [reply["query_id"] for reply in replies] == list(range(1, 21))
    assert crowd.witnessed.check(release).halted is None
    end(process)


def started(release: SmallRelease, *plant: str) -> ServerProcess:
    """Start a server with faults planted."""
    return start_to_kill_at(release, NOWHERE, plant=plant).wait_until_ready()


def questions(crowd: Crowd, count: int) -> list[Question]:
    """Return vectors that nobody asked before, every second one with a key."""
    return [
        crowd.witnessed.ask(crowd.new_vector(is_split=number % 50 == 0), with_key=number % 2 == 0)
        for number in range(count)
    ]


def check_refused(address: str, crowd: Crowd, new: list[Question]) -> None:
    """Check that nobody gets an answer, in a stream or by concurrent queries."""
    replies = crowd.repeat(address, new[:LINE_COUNT])
    with ThreadPoolExecutor(POST_COUNT) as pool:
        posted = list(pool.map(lambda question: post(address, question), new[LINE_COUNT:]))
    assert {headers["Retry-After"] for _, headers in posted} == {"1"}
    replies += [reply for reply, _ in posted]
    for reply in replies:
        assert reply["type"] == "urn:conclave:problem:ledger-unavailable"
        assert reply["status"] == HTTPStatus.SERVICE_UNAVAILABLE
        assert set(reply) == {"type", "title", "status", "detail"}


def check_known(address: str, crowd: Crowd, known: list[Question]) -> None:
    """Check that what was answered before is given again, and that the probes say so."""
    for question, reply in zip(known, crowd.repeat(address, known), strict=True):
        seen = crowd.witnessed.seen[question.vector]._asdict()
        assert reply == seen | {"phase": "ensemble", "replayed": True}
    for probe in ("/healthz", "/readyz"):
        assert get(address, probe)[0] == HTTPStatus.OK


def check_metrics(address: str, state: LedgerState, refused: int) -> None:
    """Check what Prometheus is told: the ledger as it is, and what was refused."""
    with closing(connect(address)) as connection:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["conclave_ledger_sequence",] == state.head.sequence
    assert samples["conclave_refusals_total", "ledger-unavailable"] == refused


def post(address: str, question: Question) -> tuple[dict[str, Any], dict[str, str]]:
    """Post one query, and return the reply and its headers."""
    key = {} if question.key is None else {"Idempotency-Key": question.key}
    body = json.dumps({"features": question.vector})
    with closing(connect(address)) as connection:
        connection.request("POST", "/query", body, JSON | key)
        response = connection.getresponse()
        return json.loads(response.read()), {
            name.title(): value for name, value in response.getheaders()
        }


def get(address: str, path: str) -> tuple[int, Any]:
    """Return status and document of a path."""
    with closing(connect(address)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def shown(address: str) -> tuple[object, ...]:
    """Return what ``GET /budget`` shows of the ledger's state."""
    _, budget = get(address, "/budget")
    ledger, charged = budget["ledger"], budget["charged"]
    counts = (budget["queries"]["answered"], budget["unstable"]["count"])
    return ledger["sequence"], ledger["head"], *counts, [share["mechanism"] for share in charged]


def told(state: LedgerState) -> tuple[object, ...]:
    """Return the same of a state that was folded."""
    charged = [share.mechanism for share in state.charged]
    return state.head.sequence, state.head.hash, state.answered, state.unstable, charged


def folded(release: SmallRelease) -> tuple[LedgerState, list[AnswerRow]]:
    """Fold the database from entry one, in this process; return its answers as well."""
    ledger = open_ledger(release.settings().ledger_url, create=False)
    try:
        return ledger.read_state(), list(ledger.answers_after(0))
    finally:
        ledger.close()


def end(process: ServerProcess) -> None:
    """Ask a server to end; it must, in time, with exit code 0, and its ledger verifies."""
    asked = time.monotonic()
    process.terminate()
    assert process.wait() == 0, process.errors()
    assert time.monotonic() - asked < END_SECONDS_MAX
    config = str(process.log.with_name("conclave.toml"))
    assert run(["verify", "--config", config]) == 0
