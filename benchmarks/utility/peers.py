"""Other libraries' private classifiers, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks.measuring.circumstances import ROOT

if TYPE_CHECKING:
    from benchmarks.utility.published_split import Split
    from benchmarks.utility.results import Json

HERE: Final = ROOT / "benchmarks" / "utility"
LOCK: Final = HERE / "requirements.lock"


def environment() -> Path:
    """Return the folder of the peers' environment, made anew where the lock has changed."""
    folder = Path(sys.prefix) / "utility"
    mark = folder / "installed.lock"
    lock = LOCK.read_text(encoding="utf-8")
    if mark.exists() and mark.read_text(encoding="utf-8") == lock:
        return folder
    print("installing the peers, once ...", flush=True)
    _run(sys.executable, "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet")
    _run(*pip, "install", "--no-deps", "--require-hashes", "--requirement", str(LOCK))
    mark.write_text(lock, encoding="utf-8")
    return folder


def peer_accuracies(split: Split, *, quick: bool) -> dict[str, Json]:
    """Return, by model and epsilon, the setting chosen and the accuracies of its runs."""
    with tempfile.TemporaryDirectory() as folder:
        rows, found = Path(folder) / "rows.npz", Path(folder) / "found.json"
        np.savez(
            rows,
            train=split.train,
            train_labels=split.train_labels,
            test=split.test,
            test_labels=split.test_labels,
            is_categorical=split.is_categorical,
            lower=split.bounds[0],
            upper=split.bounds[1],
        )
        program = str(environment() / "bin" / "python")
        flags = ["--quick"] if quick else []
        _run(program, str(HERE / "peer_models.py"), str(rows), str(found), *flags)
        document: dict[str, Json] = json.loads(found.read_text(encoding="utf-8"))
    return document


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
