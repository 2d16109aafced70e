"""Threads, workers and schedulers that SIGKILL ends in the middle of an opening."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import dask.config
import distributed
import pytest

from app.cli import run
from app.data.streaming import dask_engine
from app.errors import ConfigurationError
from app.ledger.ledger import open_ledger
from benchmarks.measuring.local_cluster import LocalCluster
from tests.builders.crash.killing import start_to_kill_at
from tests.builders.release.parts_release import PRIVATE, PartsRelease, write_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from app.release.progress import Progress

pytestmark = pytest.mark.crash

READING, FITTING = "reading rows", "fitting learners"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> PartsRelease:
    """Rows in three parts, and a release on them."""
    written = write_parts(tmp_path_factory.mktemp("killed") / "release", depth=3, relabelled=False)
    written.config.write_text(written.config.read_text().replace("port = 8080", "port = 0"))
    return written


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A scheduler and three workers, each a process, with certificates."""
    with LocalCluster(tmp_path_factory.mktemp("cluster") / "members", 3) as running:
        yield running


@pytest.mark.parametrize("stage", [READING, FITTING])
def test_a_killed_worker_costs_only_time(
    parts: PartsRelease,
    cluster: LocalCluster,
    stage: str,
) -> None:
    """The others compute what it held: the same bytes as by threads, under the same charges."""
    victim = cluster.workers[0 if stage == READING else 1]
    name = stage.replace(" ", "-")
    killing = _once(stage, lambda: victim.send_signal(signal.SIGKILL))
    with _reached(cluster) as environment:
        drawn = parts.drawn(ledger=f"{name}-dask.db", environment=environment, progress=killing)
    assert victim.wait() == -signal.SIGKILL
    assert drawn == parts.drawn(ledger=f"{name}.db")
    assert _charges(parts, f"{name}-dask.db") == _charges(parts, f"{name}.db")


def test_a_killed_scheduler_is_one_line_and_charges_once(
    parts: PartsRelease, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The opening ends with one line, and the next one draws under the charge that stands."""
    # The library fails where the connection that is lost is closed, as it does now and then.
    close = distributed.Client.close

    def failing(client: distributed.Client, **given: float) -> None:
        with suppress(Exception):
            close(client, **given)
        if given:  # by the engine, and not where the client is collected
            raise ValueError("the stream is not idle")

    monkeypatch.setattr(distributed.Client, "close", failing)
    killing = _once(FITTING, lambda: cluster.scheduler.send_signal(signal.SIGKILL))
    with (
        _reached(cluster) as environment,
        pytest.raises(ConfigurationError, match=f"{dask_engine.ADDRESS}: .* is gone; ") as caught,
    ):
        parts.open(ledger="lost.db", environment=environment, progress=killing)
    assert "\n" not in str(caught.value)
    assert cluster.scheduler.wait() == -signal.SIGKILL
    charged = _charges(parts, "lost.db")
    drawn = parts.drawn(ledger="lost.db")
    assert charged
    assert all(drawn[piece] for piece in PRIVATE)
    assert _charges(parts, "lost.db") == charged


@pytest.mark.parametrize("point", [f"opening:{READING}:3", f"opening:{FITTING}:1"])
def test_threads_that_are_killed_with_their_server_charge_once(
    parts: PartsRelease, point: str
) -> None:
    """Nothing is charged before the rows are read, and what is charged after is charged once."""
    for old in parts.folder.glob("conclave.db*"):
        old.unlink()
    process = start_to_kill_at(parts, point)
    assert process.wait() == -signal.SIGKILL, process.errors()
    if FITTING in point:
        assert run(["verify", "--config", str(parts.config)]) == 0
        charged = _charges(parts, "conclave.db")
        assert charged
    else:
        parts.open(ledger="whole.db").ledger.close()
        charged = _charges(parts, "whole.db")
    assert all(parts.drawn().values())
    assert _charges(parts, "conclave.db") == charged


@contextmanager
def _reached(cluster: LocalCluster) -> Iterator[dict[str, str]]:
    """Let this process be a client of the cluster; yield the settings of an opening on it."""
    settings: dict[str, object] = {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(cluster.certificates / "ca.pem"),
        "distributed.comm.tls.client.cert": str(cluster.certificates / "certificate.pem"),
        "distributed.comm.tls.client.key": str(cluster.certificates / "key.pem"),
    }
    with dask.config.set(settings):
        yield {
            "CONCLAVE_ENGINE__NAME": "dask",
            "CONCLAVE_ENGINE__ADDRESS": cluster.address,
            "CONCLAVE_ENGINE__WORKERS": "1",
        }


def _once(wanted: str, act: Callable[[], object]) -> Progress:
    """Return a progress that acts where a stage has come to something, once."""
    acted: list[str] = []

    def note(stage: str, done: int, total: int | None) -> None:
        del total
        if stage == wanted and done and not acted:
            acted.append(stage)
            act()

    return note


def _charges(parts: PartsRelease, name: str) -> list[object]:
    """Return what a ledger charged, share by share."""
    ledger = open_ledger(f"sqlite:///{parts.folder / name}", create=False)
    entries = ledger.public_entries(0, 100)
    ledger.close()
    charged = [entry for entry in entries if entry["kind"] == "ShareCharged"]
    return [entry["body"] for entry in charged]
