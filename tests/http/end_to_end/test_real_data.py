"""The example on real data: opened from nothing, restarted, and served in time."""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from app.cli import run
from tests.builders.server.server_process import ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.data

OPENING_SECONDS_MAX = 20.0
RESTART_SECONDS_MAX = 3.0
IMPORT_SECONDS_MAX = 1.5
STARTS_MAX = 6


@pytest.fixture
def adult(repository: Path, data_folder: Path, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return the example's configuration in a folder of its own, and its environment."""
    config = tmp_path / "adult.toml"
    config.write_bytes((repository / "examples" / "adult.toml").read_bytes())
    environ = {
        "CONCLAVE_DATA__SOURCE": str(data_folder / "adult" / "train.csv"),
        "CONCLAVE_LEDGER__URL": f"sqlite:///{tmp_path / 'adult.db'}",
        "CONCLAVE_SERVER__PORT": "0",
    }
    return config, environ


def test_adult_is_opened_and_restarted_in_time(
    adult: tuple[Path, dict[str, str]], data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adult answers within 20 seconds of a first start, and within 3 of a restart."""
    config, environ = adult
    queries = enumerate(_queries(data_folder / "adult" / "test.csv"), start=1)
    slower = max(1.0, _import_seconds() / IMPORT_SECONDS_MAX)
    assert _start_and_ask(config, environ, *next(queries)) < OPENING_SECONDS_MAX * slower
    # The best of a few: what else runs on the machine slows some of them.
    restarts = (_start_and_ask(config, environ, *query) for query in queries)
    assert any(seconds < RESTART_SECONDS_MAX * slower for seconds in restarts)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert run(["verify", "--config", str(config)]) == 0


def _start_and_ask(
    config: Path, environ: dict[str, str], number: int, features: dict[str, object]
) -> float:
    """Return how long it took from a start to its first answer, which has this number.

    The time is what the clock says or, on a machine that is busy with other
    work, what the process itself used of the processors, whichever is less.
    """
    used_before = _processor_seconds()
    started = time.monotonic()
    process = ServerProcess(config, environ=environ).wait_until_ready()
    response = httpx.post(f"{process.address}/query", json={"features": features}, timeout=60)
    elapsed = time.monotonic() - started
    process.terminate()
    assert process.wait() == 0
    answer: dict[str, object] = response.json()
    assert (answer["query_id"], answer["replayed"]) == (number, False)
    return min(elapsed, _processor_seconds() - used_before)


def _import_seconds() -> float:
    """Return the processor time of imports: ``IMPORT_SECONDS_MAX`` where the promise is meant.

    Where other processes share the processors' cores, or the machine is slow, everything
    takes a multiple of its time, and a start by the same factor.
    """
    used_before = _processor_seconds()
    imports = "import fastapi, scipy.stats, sklearn.ensemble, sqlalchemy"
    subprocess.run([sys.executable, "-c", imports], check=True)
    return _processor_seconds() - used_before


def _processor_seconds() -> float:
    """Return what all processes that have ended used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _queries(path: Path) -> list[dict[str, object]]:
    """Return the first rows of a public CSV as queries by name, fnlwgt and education left out."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for _, row in zip(range(STARTS_MAX), csv.DictReader(file), strict=False)]
    left_out = {"fnlwgt", "education", "income"}
    return [
        {name: _value(cell) for name, cell in row.items() if name not in left_out} for row in rows
    ]


def _value(cell: str) -> object:
    return float(cell) if cell.isdecimal() else cell
