"""What benchmarks find: judged, printed, read back, put into a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from benchmarks.measuring import all_questions
from benchmarks.measuring.all_questions import JUDGED, table
from benchmarks.measuring.circumstances import ROOT
from benchmarks.measuring.findings import Finding, median_ratio, read_findings, tell

if TYPE_CHECKING:
    from pathlib import Path

FAST = Finding(question="fast?", ours="9 a second", peer="floor 10", ratio=0.9, at_least=0.9)
SLOW = Finding(question="slow?", ours="3 s", peer="", ratio=3.0, at_most=2.0)


def test_every_program_that_judges_a_figure_is_run_with_all() -> None:
    """And nothing else: the others need arguments, or hours."""
    programs = {path.stem: path.read_text() for path in (ROOT / "benchmarks").glob("*.py")}
    telling = {name for name, text in programs.items() if re.search(r"\btell(_\w+)?\(", text)}
    assert telling | {"v2_infer"} == set(JUDGED)


@pytest.mark.parametrize(
    ("ratio", "at_least", "at_most", "reached"),
    [
        (0.9, 0.9, None, True),
        (0.89, 0.9, None, False),
        (2.0, None, 2.0, True),
        (2.01, None, 2.0, False),
        (7.0, None, None, True),
    ],
)
def test_a_bound_is_reached_from_its_side(
    ratio: float,
    at_least: float | None,
    at_most: float | None,
    reached: bool,  # noqa: FBT001 -- a case
) -> None:
    """More is better below a least ratio, less above a largest, and the bound itself will do."""
    finding = Finding(
        question="", ours="", peer="", ratio=ratio, at_least=at_least, at_most=at_most
    )
    assert finding.is_reached is reached


def test_what_is_told_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The table's runner finds the findings among the lines for people."""
    tell(FAST)
    tell(SLOW)
    printed = capsys.readouterr().out
    assert read_findings(printed.splitlines()) == [FAST, SLOW]
    assert "NOT reached" in printed


def test_the_table_has_a_line_for_each() -> None:
    """Question, both sides, ratio, bound and verdict stand in one line."""
    assert table([FAST, SLOW]).splitlines()[2:] == [
        "| fast? | 9 a second | floor 10 | 0.9 | >= 0.9 | yes |",
        "| slow? | 3 s |  | 3 | <= 2 | NO |",
    ]


def test_a_whole_run_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page gets the new table in the place of the old one, and a plot beside it."""
    page, drawing = tmp_path / "page.md", tmp_path / "plot.svg"
    page.write_text(f"above\n{all_questions.BEGIN}old\n{all_questions.END}below\n")
    monkeypatch.setattr(all_questions, "PAGE", page)
    monkeypatch.setattr(all_questions, "PLOT", drawing)
    all_questions._publish([FAST, SLOW])
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith(f"{all_questions.END}below\n")
    assert table([FAST, SLOW]) in text
    assert "old" not in text
    assert "<svg" in drawing.read_text()


def test_a_ratio_is_the_median_of_pairs() -> None:
    """What slows both sides of a pair does not count."""
    assert median_ratio([(1, 2), (10, 20), (9, 1)]) == 0.5
