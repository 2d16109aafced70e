"""A cluster draws what this process draws, byte for byte, and its end is one line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from time import sleep
from typing import TYPE_CHECKING

import pytest
from distributed import Client, LocalCluster

from app.data.streaming import dask_engine
from app.data.streaming.dask_engine import DaskEngine, code_version
from app.data.streaming.local_engine import LocalEngine
from app.errors import ConfigurationError, DataError
from app.ledger.ledger import open_ledger
from app.privacy.voting.keyed_slots import KEY_BYTES
from tests.builders.release.parts_release import PRIVATE, PartsRelease, write_parts
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.release.progress import Progress


STAGE = "fitting learners"
START_SECONDS_MAX = 120  # of a process, on a busy machine


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> PartsRelease:
    """Rows in three parts, and a release on them."""
    return write_parts(tmp_path_factory.mktemp("dask") / "release", depth=3, relabelled=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler and two workers in this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as running:
        yield running


def _of(cluster: LocalCluster) -> dict[str, str]:
    return {
        "CONCLAVE_ENGINE__NAME": "dask",
        "CONCLAVE_ENGINE__ADDRESS": cluster.scheduler_address,
        "CONCLAVE_ENGINE__WORKERS": "2",
    }


def test_a_cluster_draws_the_same_bytes(parts: PartsRelease, cluster: LocalCluster) -> None:
    """Fingerprint, slots, hypothesis and learners are those of the local engine."""
    assert parts.drawn(ledger="dask.db", environment=_of(cluster)) == parts.drawn(ledger="local.db")


def test_a_cluster_numbers_persons_alike(tmp_path: Path, cluster: LocalCluster) -> None:
    """Whose rows lie on both workers: the same persons, weights, slots and learners."""
    named = write_parts(tmp_path / "release", persons=66_000)
    of_cluster = named.drawn(ledger="dask.db", environment=_of(cluster))
    assert of_cluster == named.drawn(ledger="local.db")
    assert len(of_cluster["permutation"]) == KEY_BYTES


def test_a_refusal_comes_from_the_workers(parts: PartsRelease, cluster: LocalCluster) -> None:
    """A field that does not fit is named as ever, by column and row."""
    text = parts.config.read_text()
    narrow = parts.folder / "narrow.toml"
    narrow.write_text(text.replace('classes = ["no", "yes"]', 'classes = ["no", "maybe"]'))
    refused = PartsRelease(parts.folder, parts.rows, narrow)
    with pytest.raises(DataError, match='column "label", row') as caught:
        refused.open(ledger="refused.db", environment=_of(cluster))
    assert "yes" not in str(caught.value)


def test_the_first_refusal_in_order_is_named(cluster: LocalCluster) -> None:
    """Not the one that is found first, by either engine; results behind it are not waited for."""
    items = ["good", "late", "soon", "good"]
    for engine in (LocalEngine(4), DaskEngine(cluster.scheduler_address)):
        with pytest.raises(DataError, match="late"):
            engine.read(_refused, items, lambda _: None)
        engine.close()


def _refused(item: str) -> str:
    """Refuse an item, some time later where it is late."""
    if item == "late":
        sleep(0.3)
    if item != "good":
        raise DataError("data.source", item)
    return item


def test_nobody_at_the_address_is_one_line(parts: PartsRelease) -> None:
    """It names the setting, before anything is charged."""
    nowhere = {"CONCLAVE_ENGINE__NAME": "dask", "CONCLAVE_ENGINE__ADDRESS": "nowhere"}
    with pytest.raises(ConfigurationError, match=r"engine\.address: no scheduler") as caught:
        parts.open(ledger="nowhere.db", environment=nowhere)
    assert "\n" not in str(caught.value)


@contextmanager
def _foreign_worker(folder: Path, address: str) -> Iterator[None]:
    """Run a worker of another version in a process: its sources and its metadata differ."""
    shutil.copytree(ROOT / "app", folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "app" / "data" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write("# another line\n")
    information = folder / "conclave-9.9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: conclave\nVersion: 9.9.9\n")
    command = [sys.executable, "-m", "dask", "worker", address, "--no-dashboard", "--no-nanny"]
    with (
        (folder / "worker.log").open("wb") as said,
        subprocess.Popen(command, cwd=folder, stdout=said, stderr=said) as worker,
    ):
        try:
            yield
        finally:
            worker.kill()


def test_a_worker_of_another_version_is_refused(parts: PartsRelease, tmp_path: Path) -> None:
    """One line names both versions, and nothing is charged."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=":0",
        ) as mixed,
        _foreign_worker(tmp_path, mixed.scheduler_address),
    ):
        with Client(mixed, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=START_SECONDS_MAX)
        with pytest.raises(ConfigurationError, match=r"^engine\.address: the worker at ") as caught:
            parts.open(ledger="mixed.db", environment=_of(mixed))
    assert re.search(r"runs Conclave 9\.9\.9 \(sources [0-9a-f]{12}\), ", str(caught.value))
    assert f"this server Conclave {code_version()};" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (parts.folder / "mixed.db").exists() or not _charges(parts, "mixed.db")


def test_a_worker_whose_code_tells_no_version_is_refused(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older one has no function for it; what is installed there is named."""
    asked.clear()
    monkeypatch.setattr(dask_engine, "code_version", _told_by_the_server_alone)
    with pytest.raises(ConfigurationError, match=r"runs Conclave 0\.1\.0 \(other sources\), and"):
        DaskEngine(cluster.scheduler_address)


asked: list[None] = []


def _told_by_the_server_alone() -> str:
    """Return a version when it is first asked for, and fail as a worker without it."""
    asked.append(None)
    if len(asked) > 1:
        raise AttributeError("code_version")
    return "0.1.0 (sources 0)"


def test_a_worker_of_another_version_that_joins_later_reads_nothing(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each task compares the versions before it runs."""
    engine, read = DaskEngine(cluster.scheduler_address), list[str]()
    monkeypatch.setattr(dask_engine, "code_version", lambda: "9.9.9 (sources 0)")
    with pytest.raises(
        ConfigurationError, match=r"a worker runs Conclave 9\.9\.9 \(sources 0\), and"
    ):
        engine.read(_refused, ["good", "bad"], read.append)
    engine.close()
    assert read == []


@pytest.mark.parametrize("stage", ["reading rows", STAGE])
def test_a_worker_that_ends_loses_nothing_but_time(parts: PartsRelease, stage: str) -> None:
    """What it held is computed again on the other: the same bytes, under the same charges."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as shrinking:
        ended: list[str] = []

        def end(stage: str, done: int, total: int | None) -> None:
            del total
            if done and not ended:
                ended.append(stage)
                shrinking.sync(shrinking.workers[0].close, nanny=False)

        drawn = parts.drawn(
            ledger=f"{stage[:3]}.db", environment=_of(shrinking), progress=_once(end, stage)
        )
    assert ended
    assert drawn == parts.drawn(ledger=f"{stage[:3]}-local.db")
    assert len(_charges(parts, f"{stage[:3]}.db")) == len(_charges(parts, f"{stage[:3]}-local.db"))


def test_workers_that_all_end_are_one_line(
    parts: PartsRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster without a worker ends the opening, and the next start goes on."""
    monkeypatch.setattr(dask_engine, "LOOK_SECONDS", 0.1)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as emptied:
        environment = {**_of(emptied), "CONCLAVE_ENGINE__WORKERS": "1"}

        def end(stage: str, done: int, total: int | None) -> None:
            del stage, done, total
            emptied.sync(emptied.workers[0].close, nanny=False)

        with pytest.raises(ConfigurationError, match="has no worker any more") as caught:
            parts.open(
                ledger="emptied.db", environment=environment, progress=_once(end, "reading rows")
            )
    assert "\n" not in str(caught.value)


def test_a_scheduler_that_ends_charges_nothing_twice(parts: PartsRelease) -> None:
    """The opening ends with one line, and the next one draws under the same charge."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as ending:
        environment = {**_of(ending), "CONCLAVE_ENGINE__WORKERS": "1"}

        def end(stage: str, done: int, total: int | None) -> None:
            del done, total
            if stage == STAGE:
                ending.close()

        with pytest.raises(ConfigurationError, match="is gone") as caught:
            parts.open(ledger="ended.db", environment=environment, progress=_once(end, STAGE))
    assert "\n" not in str(caught.value)
    charged = _charges(parts, "ended.db")
    drawn = parts.drawn(ledger="ended.db")
    assert charged
    assert all(drawn[name] for name in PRIVATE)
    assert _charges(parts, "ended.db") == charged


def _once(progress: Progress, wanted: str) -> Progress:
    """Return a progress that calls another where a stage has come to something, once."""
    called: list[str] = []

    def note(stage: str, done: int, total: int | None) -> None:
        if not called and stage == wanted and done:
            called.append(stage)
            progress(stage, done, total)

    return note


def _charges(parts: PartsRelease, name: str) -> list[dict[str, object]]:
    """Return the charges in a ledger."""
    ledger = open_ledger(f"sqlite:///{parts.folder / name}", create=False)
    entries = ledger.public_entries(0, 100)
    ledger.close()
    return [entry for entry in entries if entry["kind"] == "ShareCharged"]
