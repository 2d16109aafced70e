"""What a benchmark finds: one question, what we do, what a floor or a peer does, their ratio.

A program prints its findings with :func:`tell`, each as a line for people and a line of
JSON; ``make bench`` gathers the latter into one table and into ``benchmarks/results/``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX: Final = "finding "
"""Begins every line of JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer to one question.

    Attributes:
        question: as the table asks it.
        ours: what we do, with its unit.
        peer: what is compared with, and what it does; empty where a figure stands alone.
        ratio: the figure that is judged: a ratio to the peer, or ours alone.
        at_least: the least ratio that is wanted, where more is better.
        at_most: the largest that is wanted, where less is better.

    """

    question: str
    ours: str
    peer: str
    ratio: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_reached(self) -> bool:
        """Whether the ratio is as wanted."""
        enough = self.at_least is None or self.ratio >= self.at_least
        return enough and (self.at_most is None or self.ratio <= self.at_most)

    @property
    def wanted(self) -> str:
        """The bound, for people."""
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"

    @classmethod
    def from_mapping(cls, fields: Mapping[str, object]) -> Self:
        """Return the finding that :func:`tell` printed."""
        known = {name: fields[name] for name in cls.__dataclass_fields__}
        return cls(**known)  # type: ignore[arg-type]  # as they were printed


def tell(finding: Finding) -> None:
    """Print a finding, for people and for the table."""
    reached = "reached" if finding.is_reached else "NOT reached"
    print(f"{finding.question}: {finding.ours}; {finding.peer}")
    print(f"  {finding.ratio:.3g}, wanted {finding.wanted}: {reached}")
    print(PREFIX + json.dumps(asdict(finding)), flush=True)


def read_findings(lines: Iterable[str]) -> list[Finding]:
    """Return the findings among the lines that a program printed."""
    return [
        Finding.from_mapping(json.loads(line.removeprefix(PREFIX)))
        for line in lines
        if line.startswith(PREFIX)
    ]


def median_ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the median of first over second, pair by pair: what both share cancels out."""
    return median(first / second for first, second in pairs)
