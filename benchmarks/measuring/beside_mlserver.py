"""What a release and MLServer do by turns with the same requests, over any protocol."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.linear_release import new_vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.measuring.pinned import Server


@dataclass(frozen=True, slots=True)
class Figures:
    """What a server did under one load: requests a second, and processor's time of each."""

    rate: float
    processor_seconds: float


def by_turns(
    question: str,
    parts: Sequence[Sequence[bytes]],
    rate: Callable[[Server, Sequence[bytes]], float],
    *,
    peer: Server,
    ours: Server,
    at_least: float,
) -> int:
    """Print what both do with the same requests; return how many of them were ours.

    Args:
        question: as the table asks it.
        parts: requests that nobody has asked before; the first part is not counted.
        rate: sends requests to a server, and returns how many it answered a second.
        peer: MLServer.
        ours: a release.
        at_least: the least ratio of the rates that is wanted.

    """
    pairs = [(_figures(peer, part, rate), _figures(ours, part, rate)) for part in parts][1:]
    tell(
        Finding(
            question=question,
            ours=_told([mine for _, mine in pairs]),
            peer="MLServer, one model, not private: " + _told([theirs for theirs, _ in pairs]),
            ratio=median_ratio((mine.rate, theirs.rate) for theirs, mine in pairs),
            at_least=at_least,
        )
    )
    return sum(map(len, parts))


def _figures(
    server: Server, part: Sequence[bytes], rate: Callable[[Server, Sequence[bytes]], float]
) -> Figures:
    used = server.processor_seconds()
    answered_a_second = rate(server, part)
    return Figures(answered_a_second, (server.processor_seconds() - used) / len(part))


def _told(figures: Sequence[Figures]) -> str:
    """Return the medians, for people."""
    rate = median(each.rate for each in figures)
    processor = median(each.processor_seconds for each in figures)
    return f"{rate:,.0f} a second, {processor * 1e6:.0f} us of the processor each"


def rows_of_one_model(folder: Path) -> Path:
    """Write rows for the one model of MLServer, labelled by their first number."""
    rows = new_vectors(1000, part=0)
    file = folder / "rows_of_one_model.npz"
    np.savez(file, x=rows, y=np.where(rows[:, 0] > 0, 1, 0))
    return file


def answered(port: int) -> int:
    """Return how many fresh answers a release has given."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/budget")
    budget = json.loads(connection.getresponse().read())
    connection.close()
    count: int = budget["queries"]["answered"]
    return count
