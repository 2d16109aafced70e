"""``conclave learn`` in a process of its own, as an operator runs it beside a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.builders.server.nursery import run_forked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.builders.server.http_release import SmallRelease

ROOT = Path(__file__).parents[3]
SECONDS_MAX = 120
POINTS = "group,age\ncommon,20\ncommon,80\nrare,20\nrare,80\n"


def learn(
    release: SmallRelease,
    *options: str | Path,
    script: Sequence[str] = ("-m", "app", "learn"),
) -> subprocess.CompletedProcess[bytes]:
    """Run the command, or a script in its place, until it ends; a command out of the nursery."""
    if script[:2] == ("-m", "app"):
        arguments = [*script[2:], "--config", str(release.config), *map(str, options)]
        return run_forked(arguments, release.folder)
    own = {name: value for name, value in os.environ.items() if not name.startswith("CONCLAVE_")}
    arguments = [*script, "--config", str(release.config), *map(str, options)]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=own,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )


def learned(release: SmallRelease, *options: str | Path) -> bytes:
    """Learn, which must succeed, and return the document."""
    ended = learn(release, *options)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def public_points(release: SmallRelease) -> Path:
    """Write four public points beside the release, and return their file."""
    path = release.folder / "public.csv"
    path.write_text(POINTS, encoding="utf-8")
    return path
