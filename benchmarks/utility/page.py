"""The sections of docs/utility.md: each printed from the results that its part kept.

A part writes a module with ``section(document)``, which returns Markdown, and names it
here.  ``write(part)`` sets the section between the part's marks; a test holds the page
against the results.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.circumstances import ROOT
from benchmarks.utility.results import read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.utility.results import Json

PAGE: Final = ROOT / "docs" / "utility.md"
PANEL_PAGE: Final = ROOT / "docs" / "panel.md"
SECTIONS: Final[dict[str, str]] = {
    "published": "benchmarks.utility.published_page",
    "online": "benchmarks.utility.online_page",
    "planning": "benchmarks.utility.planning_page",
    "panel": "benchmarks.utility.panel_page",
}
"""Part -> the module whose ``section(document)`` prints it."""


def page_of(part: str) -> Path:
    """Return the page that has a part's section."""
    return PANEL_PAGE if part == "panel" else PAGE


def kept(part: str) -> dict[str, Json] | None:
    """Return what a part's section prints; a quick panel where no whole one was run."""
    document = read(part)
    return read("panel-quick") if document is None and part == "panel" else document


def begin(part: str) -> str:
    """Return the line before a part's section."""
    return f"<!-- `make bench-utility` writes {part} from here -->\n"


def end(part: str) -> str:
    """Return the line after a part's section."""
    return f"<!-- {part} to here -->\n"


def section(part: str, document: Mapping[str, Json]) -> str:
    """Return the Markdown that a part's results are printed as."""
    return str(import_module(SECTIONS[part]).section(document)).strip() + "\n"


def write(part: str) -> None:
    """Print a part's kept results into its page; nothing where it never ran."""
    document = kept(part)
    if document is None or part not in SECTIONS:
        return
    page = page_of(part)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin(part))
    _, _, after = rest.partition(end(part))
    text = f"{before}{begin(part)}{section(part, document)}{end(part)}{after}"
    page.write_text(text, encoding="utf-8")
