"""What each row of the application may do, beyond what the import rules say."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.sources import (
    PURE_ROWS,
    ROOT,
    imported_modules,
    place,
    python_files,
    syntax_tree,
)

WITHOUT_EFFECT = frozenset({"breakpoint", "eval", "exec", "input", "open", "print"})
# The rows that meet a foreign library's untyped edge.
ROWS_WITH_ANY = ("cli", "estimator", "http", "main.py")


def test_the_application_asserts_nothing() -> None:
    """Invariants raise: an ``assert`` is gone under ``python -O``."""
    asserted = [
        place(path, node.lineno)
        for path in python_files("app")
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Assert)
    ]
    assert not asserted, "\n".join(asserted)


@pytest.mark.parametrize("row", PURE_ROWS)
def test_a_pure_row_has_no_effect(row: str) -> None:
    """A pure row neither opens, prints nor evaluates anything."""
    called = [
        f"{place(path, node.lineno)} {node.func.id}"
        for path in python_files(f"app/{row}")
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in WITHOUT_EFFECT
    ]
    assert not called, "\n".join(called)


def test_no_type_below_the_edge_is_any() -> None:
    """Below the API nothing is typed ``Any``."""
    named = [
        str(path.relative_to(ROOT))
        for path in python_files("app")
        if path.relative_to(ROOT / "app").parts[0] not in ROWS_WITH_ANY
        and "typing.Any" in imported_modules(path)
    ]
    assert not named, "\n".join(named)
