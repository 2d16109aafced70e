"""An open release whose margins are known, small enough to be timed in a test."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from app.main import open_from_settings
from app.noise.system import SystemNoise
from app.release.terms.answer_time_padding import padding_seconds
from benchmarks.measuring.margins import MarginsRelease, find_margins, votes_needed
from benchmarks.measuring.stopwatch import shuffled, time_queries
from tests.builders.release.small_release import RowAnswerer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from benchmarks.measuring.margins import Kind, Margins
    from benchmarks.measuring.stopwatch import Timed


@dataclass(slots=True)
class Measured:
    """A release in this process.

    Attributes:
        answerer: its.
        margins: its.
        numbers: of vectors not asked yet.

    """

    answerer: RowAnswerer
    margins: Margins
    numbers: Iterator[int] = field(default_factory=count)

    def time(self, kinds: Sequence[Kind], each: int) -> list[Timed]:
        """Ask so many fresh queries of each kind, in random order, and time them."""
        order = shuffled(kinds, each)
        first = next(self.numbers)
        self.numbers = count(first + len(order))
        return time_queries(self.answerer, self.margins, order, first_number=first)


def open_measured(
    folder: Path, *, cutoff: int, changes: Mapping[str, str] | None = None
) -> Measured:
    """Open a release with so many unstable answers to give.

    Args:
        folder: for the rows and the ledger.
        cutoff: T.
        changes: environment variables that beat the configuration.

    """
    release = MarginsRelease(folder, votes_needed(cutoff), cutoff, changes or {})
    settings, noise = release.write(), SystemNoise()
    opened = open_from_settings(settings, noise=noise)
    padding = padding_seconds(settings, opened.ensemble_size)
    answerer = RowAnswerer(opened, noise, padding_seconds=padding)
    return Measured(answerer, find_margins(opened))
