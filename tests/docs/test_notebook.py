"""The notebook of the estimator runs from its first cell to its last, and prints what it shows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.docs.notebooks import code_cells, is_noisy, printed_text, stored_text
from tests.docs.pages import ROOT
from tests.frames.data_frames import FRAMES

if TYPE_CHECKING:
    import pytest

NOTEBOOK = ROOT / "docs" / "estimator.ipynb"


def test_every_cell_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in one namespace, in its own folder; a cell that says that it is noisy prints anew."""
    monkeypatch.chdir(NOTEBOOK.parent)
    monkeypatch.syspath_prepend(FRAMES)
    names: dict[str, Any] = {}
    for cell in code_cells(NOTEBOOK):
        printed, shown = printed_text(cell, names), stored_text(cell)
        assert bool(printed) == bool(shown)
        assert is_noisy(cell) or printed == shown


def test_it_is_a_notebook_of_code_and_words() -> None:
    """It has the form that readers of notebooks take, and few cells whose text is not compared."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    cells = code_cells(NOTEBOOK)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert 0 < sum(map(is_noisy, cells)) <= len(cells) // 4
