"""What the tidy tests read: the files of the repository and their syntax trees."""

from __future__ import annotations

import ast
import gc
import subprocess
from functools import cache
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
PURE_ROWS = ("auditing", "learning", "noise", "privacy")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def repository_files() -> tuple[Path, ...]:
    """Return the files that are tracked or would be, ignored ones left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (ROOT / line for line in listing.stdout.splitlines())
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(folder: str = "") -> tuple[Path, ...]:
    """Return the Python files under a folder of the repository."""
    below = ROOT / folder
    return tuple(
        path for path in repository_files() if path.suffix == ".py" and path.is_relative_to(below)
    )


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Parse one Python file.

    A tree stays.  As in ``tests/conftest.py``, no search for garbage is made in it, now or later:
    there are 1.4 million nodes.
    """
    _find_garbage()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


@cache
def _find_garbage() -> None:
    """Collect what earlier tests left, once, before the first tree is set apart."""
    gc.collect()


def functions(path: Path) -> tuple[Function, ...]:
    """Return every function and method of a file, nested ones included."""
    return tuple(
        node
        for node in ast.walk(syntax_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def body_line_count(function: Function) -> int:
    """Count the lines of a function's body, its docstring left out."""
    statements = function.body
    if ast.get_docstring(function) is not None:
        statements = statements[1:]
    if not statements:
        return 0
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


def imported_modules(path: Path) -> frozenset[str]:
    """Return the full names of the modules that a file imports, and of the names from them."""
    found: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


def place(path: Path, line_number: int) -> str:
    """Name a line as an editor opens it."""
    return f"{path.relative_to(ROOT)}:{line_number}"
