"""What the docs tests read: the Markdown pages, their links, names and examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.+(?:\n  +.+)*)", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page_id(path: Path) -> str:
    """Name a page in a test's identifier."""
    return str(path.relative_to(ROOT))


def text(path: Path) -> str:
    """Return a page's Markdown."""
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """Return a page without its fenced examples."""
    return _FENCE.sub("", text(path))


def examples(path: Path, language: str) -> list[str]:
    """Return the fenced examples of one language on a page."""
    return [found[2] for found in _FENCE.finditer(text(path)) if found[1] == language]


def names_defined(path: Path, start: str) -> dict[str, Any]:
    """Run the Python example of a page that begins so, and return the names it defines."""
    (source,) = [each for each in examples(path, "python") if each.startswith(start)]
    names: dict[str, Any] = {}
    exec(source, names)  # noqa: S102 -- the page is the project's own
    return names


def languages(path: Path) -> list[str]:
    """Return the language of each fenced example on a page, in their order; "" for none."""
    return [found[1] for found in _FENCE.finditer(text(path))]


def commands(path: Path) -> list[str]:
    """Return every command of a page's console examples, with the lines that continue it."""
    return [found[1] for found in _COMMAND.finditer("".join(examples(path, "console")))]


def section_commands(path: Path, heading: str) -> list[str]:
    """Return every command of a page's console examples under one heading of the second rank."""
    (section,) = re.findall(
        rf"^## {heading}\n(.*?)(?=^## |\Z)", text(path), re.MULTILINE | re.DOTALL
    )
    fenced = [found[2] for found in _FENCE.finditer(section) if found[1] == "console"]
    return [found[1] for found in _COMMAND.finditer("".join(fenced))]


def links(path: Path) -> list[str]:
    """Return the targets of a page's links."""
    return _LINK.findall(prose(path))


def anchors(path: Path) -> set[str]:
    """Return the anchors that a page's headings make."""
    headings = _HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code_names(path: Path) -> list[str]:
    """Return what a page sets between single backticks."""
    return re.findall(r"`([^`\n]+)`", prose(path))
