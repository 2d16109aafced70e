"""Recordings: written, read, and compared with what the lives give now."""

from __future__ import annotations

import base64
import json
import lzma
import platform
import subprocess
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import metadata
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

from tests.lives.living import Lived, live

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CONTEXT_BYTES: Final = 160
LIBRARIES: Final = ("numpy", "scipy", "scikit-learn", "onnx", "SQLAlchemy", "starlette", "typer")


@dataclass(frozen=True)
class Recording:
    """What lives gave at a commit.

    Attributes:
        about: where it was made: commit, machine, versions.
        lives: items by life, in order.

    """

    about: dict[str, str]
    lives: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)


def about_here() -> dict[str, str]:
    """Return where this process runs, on which bytes may depend."""
    commit = ["git", "rev-parse", "HEAD"]
    found = subprocess.run(commit, capture_output=True, text=True, check=False)
    versions = {name: metadata.version(name) for name in LIBRARIES}
    return {
        "commit": found.stdout.strip(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **versions,
    }


def lived(names: Sequence[str], *, jobs: int) -> Iterator[Lived]:
    """Yield lives in order, several at a time, each of them in one of some processes."""
    if jobs == 1:
        yield from map(live, names)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(live, names)


class Writer:
    """Writes a recording life by life: one JSON line each, compressed."""

    def __init__(self, file: Any) -> None:
        """Write to an open file."""
        self._file = file

    def write(self, line: object) -> None:
        """Write one line."""
        self._file.write(json.dumps(line).encode() + b"\n")

    def add(self, each: Lived) -> None:
        """Write one life."""
        items = [[name, _text(said)] for name, said in each.items]
        self.write({"life": each.name, "items": items})


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """Yield a writer of a recording that begins with where it is made."""
    with lzma.open(path, "wb", preset=1) as file:
        writer = Writer(file)
        writer.write({"about": about_here()})
        yield writer


def read(path: Path) -> Recording:
    """Read a recording."""
    with lzma.open(path) as file:
        recording = Recording(json.loads(file.readline())["about"])
        for line in file:
            found = json.loads(line)
            recording.lives[found["life"]] = [(name, _bytes(said)) for name, said in found["items"]]
    return recording


def digest(items: Sequence[tuple[str, bytes]]) -> str:
    """Return one hash of all that came out of a life."""
    whole = sha256()
    for name, said in items:
        whole.update(json.dumps([name, sha256(said).hexdigest()]).encode())
    return whole.hexdigest()


def first_difference(
    recorded: Sequence[tuple[str, bytes]], found: Sequence[tuple[str, bytes]]
) -> str | None:
    """Return an account of the first item that differs; None where none does."""
    for place, (before, now) in enumerate(zip(recorded, found, strict=False)):
        if before[0] != now[0]:
            return f"item {place}: recorded was {before[0]!r}, and now comes {now[0]!r}"
        if before[1] != now[1]:
            return f"item {place}, {before[0]}\n{_shown(before[1], now[1])}"
    if len(recorded) != len(found):
        longer = max(recorded, found, key=len)
        name = longer[min(len(recorded), len(found))][0]
        return f"{len(recorded)} items were recorded and {len(found)} come; the first alone: {name}"
    return None


def _shown(before: bytes, now: bytes) -> str:
    """Show both around their first different byte."""
    pairs = enumerate(zip(before, now, strict=False))
    at = next((place for place, (b, n) in pairs if b != n), min(len(before), len(now)))
    start = max(0, at - CONTEXT_BYTES)
    lines = [f"  at byte {at} of {len(before)} recorded, {len(now)} now"]
    for name, said in (("recorded", before), ("now", now)):
        lines.append(f"  {name}: {said[start : at + CONTEXT_BYTES]!r}")
    return "\n".join(lines)


def _text(said: bytes) -> str | list[str]:
    try:
        return said.decode()
    except UnicodeDecodeError:
        return [base64.b64encode(said).decode()]


def _bytes(said: str | list[str]) -> bytes:
    return said.encode() if isinstance(said, str) else base64.b64decode(said[0])
