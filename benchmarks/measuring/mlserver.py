"""MLServer with its scikit-learn runtime, in an environment of its own, serving one model."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measuring import pinned
from benchmarks.measuring.circumstances import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK: Final = ROOT / "benchmarks" / "peers" / "requirements.lock"
PYTHONS: Final = ((3, 11), (3, 12))
"""Versions that MLServer 1.7 has releases for."""

MODEL: Final = "linear"
SETTINGS: Final = {
    "host": "127.0.0.1",
    "debug": False,
    "metrics_endpoint": None,
    # Predictions in the server's own process: the fastest for one small model.
    "parallel_workers": 0,
}
MODEL_SETTINGS: Final = {
    "name": MODEL,
    "implementation": "mlserver_sklearn.SKLearnModel",
    "parameters": {"uri": "./model.joblib"},
}
# Run by that environment's Python, so that the model is of its scikit-learn.
FIT: Final = """
import sys, joblib, numpy as np
from sklearn.linear_model import LogisticRegression
rows = np.load(sys.argv[1])
joblib.dump(LogisticRegression(max_iter=50).fit(rows["x"], rows["y"]), sys.argv[2])
"""


def is_possible() -> bool:
    """Return whether MLServer runs on this Python."""
    return sys.version_info[:2] in PYTHONS


def environment() -> Path:
    """Return the folder of MLServer's environment, made anew where the lock has changed."""
    folder = Path(sys.prefix) / "mlserver"
    mark = folder / "installed.lock"
    lock = LOCK.read_text(encoding="utf-8")
    if mark.exists() and mark.read_text(encoding="utf-8") == lock:
        return folder
    print("installing MLServer, once ...", flush=True)
    _run(sys.executable, "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "install", "--no-deps", "--require-hashes", "--requirement", str(LOCK))
    mark.write_text(lock, encoding="utf-8")
    return folder


@contextmanager
def serving(rows: Path, folder: Path) -> Iterator[pinned.Server]:
    """Fit one logistic regression on rows, and serve it.

    Args:
        rows: an NPZ with ``x`` and ``y``.
        folder: an empty one for the model and the settings.

    """
    programs = environment() / "bin"
    _run(str(programs / "python"), "-c", FIT, str(rows), str(folder / "model.joblib"))
    ports = {name: pinned.free_port() for name in ("http_port", "grpc_port")}
    (folder / "settings.json").write_text(json.dumps(SETTINGS | ports))
    (folder / "model-settings.json").write_text(json.dumps(MODEL_SETTINGS))
    command = [str(programs / "mlserver"), "start", str(folder)]
    probe = f"/v2/models/{MODEL}/ready"
    with pinned.peer(command, ports["http_port"], probe, grpc_port=ports["grpc_port"]) as server:
        yield server


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
