"""Names are the field's words, whole."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.tidy.sources import (
    ROOT,
    body_line_count,
    functions,
    place,
    python_files,
    syntax_tree,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# In parts, so that this file does not hold what it bans.
BANNED_WORDS = re.compile(
    "(?i)(^|_)(" + "|".join(["ut" + "ils?", "help" + "ers?", "man" + "agers?"]) + ")(_|$)"
)
FORMULA_LINES_MAX = 5


def test_no_file_or_folder_has_a_name_that_says_nothing() -> None:
    """Neither a module nor a folder is named after having no subject."""
    named = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if any(BANNED_WORDS.search(part) for part in path.relative_to(ROOT).with_suffix("").parts)
    ]
    assert not named, "\n".join(named)


def test_no_definition_has_a_name_that_says_nothing() -> None:
    """No class, function or variable is named after having no subject."""
    named = [
        f"{place(path, line_number)} {name}"
        for path in python_files()
        for name, line_number in _defined_names(path)
        if BANNED_WORDS.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    ]
    assert not named, "\n".join(named)


def test_single_letters_are_kept_for_short_formulas() -> None:
    """An argument is one letter only where a formula of five lines holds all its uses."""
    named = [
        f"{place(path, function.lineno)} {function.name}({argument.arg})"
        for path in python_files("app")
        for function in functions(path)
        for argument in _arguments(function.args)
        if len(argument.arg) == 1
        and argument.arg != "_"
        and body_line_count(function) > FORMULA_LINES_MAX
    ]
    assert not named, "\n".join(named)


def _defined_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield every name that a file gives to something, with its line."""
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    """Return all named arguments of a function."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
