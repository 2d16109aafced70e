"""Warnings at the opening of a release whose public cells are each decided once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.planning.from_settings import warn_of_cells
from app.settings.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

CELLS = """
[release]
name = "example"
[data]
source = "absent.csv"
label = "y"
classes = ["no", "yes"]
[[data.features]]
name = "x"
kind = "numeric"
bounds = [0, 1]
[hypotheses]
class = "cells"
cells = ["x >= 0.25", "", "x >= 0.5", "", "x >= 0.75", "", ""]
[privacy]
epsilon = 8
[answers]
"""


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ("queries = 4", []),
        ("queries = 5", ["answers.queries = 5 is more than the 4 cells there are"]),
        ("queries = 4\ncutoff = 9", ["answers.cutoff has no effect: each cell is decided once"]),
        (
            'queries = 4\ncutoff = 9\non_cutoff = "classifier"',
            ["answers.cutoff and answers.on_cutoff have no effect"],
        ),
        ('mechanism = "noisy-vote"\nqueries = 4\ncutoff = 9', ["answers.cutoff has no effect"]),
    ],
)
def test_settings_that_do_nothing_over_cells_are_told(
    tmp_path: Path, answers: str, told: list[str]
) -> None:
    """More answers than cells and a cutoff are a line each; nothing is told without them."""
    path = tmp_path / "conclave.toml"
    path.write_text(CELLS + answers)
    lines: list[str] = []
    warn_of_cells(load_settings(path, {}), 5000, lines.append)
    assert len(lines) == len(told)
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))


def test_a_class_without_cells_keeps_its_cutoff(tmp_path: Path) -> None:
    """Where T ends the ensemble nothing is told."""
    path = tmp_path / "conclave.toml"
    lines_kept = [line for line in CELLS.splitlines() if not line.startswith("cells = ")]
    path.write_text("\n".join(lines_kept).replace('"cells"', '"stumps"') + "\ncutoff = 9")
    lines: list[str] = []
    warn_of_cells(load_settings(path, {}), 5000, lines.append)
    assert not lines
