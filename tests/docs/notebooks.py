"""A notebook's cells, run as a person would run them, and what they print."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

NOISY = "noisy"
"""Tag of a cell whose printed text is other every time."""


def code_cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of code, in their order."""
    cells: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def is_noisy(cell: dict[str, Any]) -> bool:
    """Return whether a cell says that its text is other every time."""
    return NOISY in cell["metadata"].get("tags", ())


def stored_text(cell: dict[str, Any]) -> str:
    """Return what a cell has printed when it was saved."""
    return "".join(line for output in cell["outputs"] for line in output["text"])


def printed_text(cell: dict[str, Any], names: dict[str, Any]) -> str:
    """Run a cell on the names of those before it, and return what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec("".join(cell["source"]), names)  # noqa: S102 -- the notebook is the project's own
    return printed.getvalue()
