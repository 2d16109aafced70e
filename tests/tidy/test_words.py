"""What no file of the repository may say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.tidy.sources import ROOT, place, repository_files

if TYPE_CHECKING:
    from pathlib import Path

# In parts, so that this file does not hold what it bans.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
REGISTRIES = re.compile(
    "|".join(
        [
            r"py" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"np" + r"mjs\.(org|com)",
            r"yarn" + r"pkg\.com",
            r"deb\.deb" + r"ian\.org",
            r"crates" + r"\.io",
            r"docker" + r"\.io",
            r"gh" + r"cr\.io",
            r"qu" + r"ay\.io",
            r"(extra-)?index" + r"-url",
            r"find" + r"-links",
            r"trusted" + r"-host",
        ]
    )
)
ONE_MACHINE = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", r"\.lib" + "rary"]))


@pytest.mark.parametrize(
    "banned",
    [
        pytest.param(UNFINISHED, id="unfinished work"),
        pytest.param(REGISTRIES, id="a registry's address"),
        pytest.param(ONE_MACHINE, id="a path of one machine"),
    ],
)
def test_no_file_says(banned: re.Pattern[str]) -> None:
    """No text file holds a mark of unfinished work, a registry's address or one machine's path."""
    said = [
        f"{place(path, number)}: {line.strip()[:100]}"
        for path in repository_files()
        for number, line in enumerate(_lines(path), start=1)
        if banned.search(line)
    ]
    assert not said, "\n".join(said)


def test_every_exception_to_a_rule_has_its_reason() -> None:
    """A switched-off lint, type or coverage rule says why on its own line."""
    mark = re.compile(r"#\s*(noqa|type:\s*ignore|pragma: no (?:branch|cover)|ruff: noqa)\S*")
    reason = re.compile(
        r"#\s*(noqa|type:\s*ignore|pragma: no (?:branch|cover)|ruff: noqa)[^#]*?(--|#) \S+"
    )
    bare = [
        f"{place(path, number)}: {line.strip()[:100]}"
        for path in repository_files()
        if path.suffix == ".py" and path != ROOT / "tests/tidy/test_words.py"
        for number, line in enumerate(_lines(path), start=1)
        if mark.search(line) and not reason.search(line)
    ]
    assert not bare, "\n".join(bare)


def _lines(path: Path) -> list[str]:
    """Return the lines of a text file; none of a binary one."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
