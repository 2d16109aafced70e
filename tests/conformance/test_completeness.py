"""No mechanism escapes the batteries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.cases import (
    ANSWERING_CASES,
    DESCENTS,
    DETERMINISTIC,
    GRIDS,
    INTERFACES,
    ONE_SHOT_CASES,
    TABLES,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_every_mechanism_is_in_a_battery(repository: Path) -> None:
    """Each module that has a proof is answering, one-shot, deterministic or an interface."""
    folder = repository / "app/privacy"
    proofs = {path.relative_to(folder) for path in folder.rglob("*proof.md")}
    modules = {
        path.parent.name if path.name == "proof.md" else path.stem.removesuffix("_proof")
        for path in proofs
    }
    answering = {case.name for case in ANSWERING_CASES}
    one_shot = {case.name for case in ONE_SHOT_CASES}
    assert modules == answering | one_shot | TABLES | DESCENTS | GRIDS | DETERMINISTIC | INTERFACES
