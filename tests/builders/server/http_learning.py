"""``conclave learn`` in a process of its own, as an operator runs it beside a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builders.server.nursery import run_forked

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.builders.server.http_release import SmallRelease

POINTS = "group,age\ncommon,20\ncommon,80\nrare,20\nrare,80\n"


def learn(
    release: SmallRelease,
    *options: str | Path,
    script: Sequence[str] = ("-m", "app", "learn"),
    environ: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the command, or another module in its place, out of the nursery until it ends."""
    command = [*script, "--config", str(release.config), *map(str, options)]
    return run_forked(command, environ)


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
