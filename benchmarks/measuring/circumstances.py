"""What a figure depends on besides the code: commit, machine, interpreter."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commit() -> str:
    """Return the commit, marked where files differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "unknown"


def circumstances() -> str:
    """Return one line to print above figures."""
    load = os.getloadavg()[0]
    return (
        f"commit {commit()}, {platform.machine()}, {os.cpu_count()} processors "
        f"at load {load:.1f}, CPython {platform.python_version()}, "
        "seed: none, the operating system's generator"
    )
