"""Prometheus' own programs, and what may be asked of our metrics."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from app.answering.service_slot import STATES
from app.http.monitoring.metrics import HISTOGRAM, METRICS, PHASES, SLUGS, STANDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[2]
PROMETHEUS: Final = ROOT / "deploy" / "prometheus"
SERIES: Final = re.compile(r"\b(conclave_\w+)(?:\{([^}]*)\})?")
MATCHER: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"([^\"]*)\"")
# What a scrape adds to every sample, and what a query may ask of a histogram.
ADDED: Final = frozenset({"job", "instance"})
LABEL_VALUES: Final = {"phase": PHASES, "state": (*STATES, *STANDINGS), "problem": SLUGS}


def program(name: str) -> str:
    """Return the path of one of Prometheus' programs; skip where it is absent."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} here; Debian's package prometheus has it")
    return found


def promtool(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run promtool and return how it ended and what it said."""
    return subprocess.run(
        [program("promtool"), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def series() -> dict[str, frozenset[str]]:
    """Return every series that a scrape has with its labels, histograms by their parts."""
    found: dict[str, frozenset[str]] = {}
    for metric in METRICS:
        labels = ADDED | set(metric.labels)
        if metric.kind == HISTOGRAM:
            found |= {f"{metric.name}_{part}": labels for part in ("count", "sum")}
            found[f"{metric.name}_bucket"] = labels | {"le"}
        else:
            found[metric.name] = labels
    return found


def unknown_parts(query: str) -> Iterator[str]:
    """Yield what a query names that no scrape has: a series, a label, or a label's value."""
    known = series()
    for name, matchers in SERIES.findall(query):
        if name not in known:
            yield name
            continue
        for label, value in MATCHER.findall(matchers):
            if label not in known[name]:
                yield f"{name}{{{label}}}"
            elif label in LABEL_VALUES and value not in LABEL_VALUES[label]:
                yield f'{name}{{{label}="{value}"}}'
