"""The page of logs has every event that the program writes, and its examples are allowed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from app.cli.logs import FIELDS_ALLOWED

if TYPE_CHECKING:
    from pathlib import Path

TOLD = re.compile(
    r"\b(?:log|tell|structlog\.get_logger\([^)]*\))(?:\.\w+)?\((?:\s*#[^\n]*)?\s*"
    r"\"([a-z_]+)\""
)
DRAWN = re.compile(r"self\._drawn\([^)]*\"([a-z_]+)\"\)")


def test_every_event_is_explained(repository: Path) -> None:
    """The table has the name of each event that the sources write, and no other."""
    sources = [path.read_text("utf-8") for path in (repository / "app").rglob("*.py")]
    written = {name for text in sources for name in TOLD.findall(text) + DRAWN.findall(text)}
    page = (repository / "docs" / "logs.md").read_text("utf-8")
    table = page.partition("| event |")[2].partition("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert set(re.findall(r"`(\w+)`", " ".join(first_cells))) == written


def test_the_examples_hold_fields_that_are_allowed(repository: Path) -> None:
    """Each example is one JSON object with fields of the allow-list, in the order written."""
    page = (repository / "docs" / "logs.md").read_text("utf-8")
    lines = [json.loads(line) for line in page.splitlines() if line.startswith('{"')]
    assert len(lines) == 2
    for line in lines:
        assert line.keys() <= FIELDS_ALLOWED
        assert list(line) == sorted(line)
