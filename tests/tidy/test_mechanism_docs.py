"""A mechanism states its claim in one form, and its proof lies beside it."""

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
# Beside every `mechanism.py`: modules that are mechanisms of their own in another's folder.
OTHERS = (
    "budget/account.py",
    "exponential/relabel.py",
    "exponential/scored_tree.py",
    "exponential/semi_private.py",
    "generations/accounts.py",
    "generations/pooled_labels.py",
    "noisy_vote/bit_vote.py",
    "stability/certified/certified_table.py",
    "voting/answering_mechanism.py",
    "voting/knowledge_transfer.py",
    "voting/query_decision.py",
    "voting/votes.py",
)
FOLDER = ROOT / "app" / "privacy"
MECHANISMS = [
    path
    for path in python_files("app/privacy")
    if path.name == "mechanism.py" or str(path.relative_to(FOLDER)) in OTHERS
]


def proof_of(path: Path) -> Path:
    """Return where the proof of a mechanism lies: beside it."""
    name = "proof.md" if path.name == "mechanism.py" else f"{path.stem}_proof.md"
    return path.with_name(name)


def name_of(path: Path) -> str:
    """Return the name of a mechanism's test: its place in the folder of mechanisms."""
    return str(path.relative_to(FOLDER))


@pytest.mark.parametrize("path", MECHANISMS, ids=name_of)
def test_a_mechanism_has_its_headings_in_order(path: Path) -> None:
    """The docstring has every heading of a mechanism, in the one order."""
    docstring = ast.get_docstring(syntax_tree(path)) or ""
    positions = [docstring.find(f"**{heading}.**") for heading in HEADINGS]
    assert -1 not in positions
    assert positions == sorted(positions)


@pytest.mark.parametrize("path", MECHANISMS, ids=name_of)
def test_a_mechanism_has_its_proof(path: Path) -> None:
    """The docstring names the proof file, and the proof file names the module."""
    proof = proof_of(path)
    assert str(proof.relative_to(ROOT)) in (ast.get_docstring(syntax_tree(path)) or "")
    assert str(path.relative_to(ROOT)) in proof.read_text(encoding="utf-8")


def test_every_proof_has_its_mechanism() -> None:
    """No proof file outlives its module, and each mechanism of the list exists."""
    assert {proof_of(path) for path in MECHANISMS} == set(FOLDER.rglob("*proof.md"))
    assert {str(path.relative_to(FOLDER)) for path in MECHANISMS} >= set(OTHERS)
