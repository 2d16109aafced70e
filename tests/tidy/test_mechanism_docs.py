"""A mechanism states its claim in one form, and its proof lies where it says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.tidy.sources import ROOT, python_files, syntax_tree

if TYPE_CHECKING:
    from pathlib import Path

HEADINGS = (
    "Algorithm",
    "Claim",
    "Proof",
    "Inputs and outputs",
    "Utility",
    "Deviations",
    "Raises",
)
MECHANISMS = [path for path in python_files("app/mechanisms") if path.stem != "__init__"]


@pytest.mark.parametrize("path", MECHANISMS, ids=lambda path: path.stem)
def test_a_mechanism_has_its_headings_in_order(path: Path) -> None:
    """The docstring has every heading of a mechanism, in the one order."""
    docstring = ast.get_docstring(syntax_tree(path)) or ""
    positions = [docstring.find(f"**{heading}.**") for heading in HEADINGS]
    assert -1 not in positions
    assert positions == sorted(positions)


@pytest.mark.parametrize("path", MECHANISMS, ids=lambda path: path.stem)
def test_a_mechanism_has_its_proof(path: Path) -> None:
    """The docstring names the proof file, and the proof file names the module."""
    proof = ROOT / "docs" / "proofs" / f"{path.stem}.md"
    assert f"docs/proofs/{path.stem}.md" in (ast.get_docstring(syntax_tree(path)) or "")
    assert proof.is_file()
    assert f"app/mechanisms/{path.name}" in proof.read_text(encoding="utf-8")


def test_every_proof_has_its_mechanism() -> None:
    """No proof file outlives its module."""
    proofs = {path.stem for path in (ROOT / "docs" / "proofs").glob("*.md")} - {"README"}
    assert proofs <= {path.stem for path in MECHANISMS}
