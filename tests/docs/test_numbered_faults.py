"""The table of planted faults in docs/audit.md: each has its row, and each test is there."""

from __future__ import annotations

import re
from typing import Final

from tests.docs.pages import ROOT

NUMBERS: Final = [*range(1, 11), *range(13, 23), 26]
"""Faults of generations, erasures and persons; the others are of releases that do not exist."""
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| [^|]+ \| (`[^|]+`) \|$", re.MULTILINE)


def rows() -> list[tuple[int, list[str]]]:
    """Return the numbers of the table with the tests that they name."""
    text = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    section = text.split("### Every planted fault by its number")[1].split("\n## ")[0]
    return [
        (int(number), re.findall(r"`([^`]+)`", tests)) for number, tests in ROW.findall(section)
    ]


def test_every_fault_has_a_row() -> None:
    """In the order of their numbers, and no other."""
    assert [number for number, _ in rows()] == NUMBERS


def test_every_test_that_a_row_names_is_there() -> None:
    """By its file and its name; each row names one at least."""
    for number, tests in rows():
        assert tests, number
        for each in tests:
            path, name = each.split("::")
            text = (ROOT / "tests" / path).read_text(encoding="utf-8")
            assert f"def {name}(" in text, each
