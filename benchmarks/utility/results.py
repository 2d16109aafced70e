"""What a part of `make bench-utility` measured: one file a part, which its page section prints."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeAlias

from benchmarks.measuring.circumstances import ROOT, commit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RESULTS: Final = ROOT / "benchmarks" / "results"

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
"""What a file of results holds."""


def path_of(part: str) -> Path:
    """Return where the results of a part are: ``published``, ``online``, ``planning``."""
    return RESULTS / f"utility-{part}.json"


def keep(part: str, found: Mapping[str, Json], *, quick: bool = False, tell: bool = True) -> Path:
    """Write what a part found, with commit, machine and load; a quick run has a file of its own.

    Args:
        part: the part's name, that of its file.
        found: all that the part's section of the page prints.
        quick: whether the run was a short one, which no page prints.
        tell: whether to print where it is.

    """
    document = {
        "commit": commit(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "quick": quick,
        **found,
    }
    path = path_of(f"{part}-quick" if quick else part)
    path.parent.mkdir(exist_ok=True)
    path.write_text(as_text(document), encoding="utf-8")
    if tell:
        print(f"\nkept in {path.relative_to(ROOT)}")
    return path


def as_text(document: Mapping[str, Json]) -> str:
    """Return a document as JSON with a line for every key, and for every record of a list."""
    lines = []
    for name, value in document.items():
        said = json.dumps(value)
        if isinstance(value, list) and value:
            listed = ",\n".join(json.dumps(each, separators=(",", ":")) for each in value)
            said = f"[\n{listed}\n]"
        lines.append(f"{json.dumps(name)}: {said}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(part: str) -> dict[str, Json] | None:
    """Return what was kept of a part, or None where it never ran."""
    path = path_of(part)
    if not path.exists():
        return None
    document: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
    return document


def measured_on(document: Mapping[str, Json]) -> str:
    """Return the line that says where and of which commit the figures are."""
    return (
        f"Measured at commit {document['commit']}, on {document['machine']} with "
        f"{document['processors']} processors at load {document['load']}, "
        f"CPython {document['python']}, {str(document['at'])[:10]}."
    )
