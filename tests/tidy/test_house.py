"""The plan of the house: small folders, no circles, one home and one name for a thing."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import pytest

from tests.tidy.sources import ROOT, python_files, syntax_tree

if TYPE_CHECKING:
    from pathlib import Path

ENTRIES_MAX = 16
# Commands and the rows of tables are read one by one; tests mirror both.
ENTRIES_MAX_OF_ROWS = 24
FOLDERS_OF_ROWS = ("app/cli",)
SMALL_LINES = 60
COMMANDS = "app.cli"
# Each row of a table lies beside what it is of, and the table alone imports it.
ROWS_OF_TABLES = ("answering_registration", "class_registration")
# Small and used once, each for a reason.
SMALL_AND_ALONE = {
    "app.http.query.query_route": "a route",
    "app.http.openapi.swagger_page": "a route",
    "app.http.dashboard.page": "a route",
    "app.privacy.exponential.semi_private": "a mechanism, whose claim and proof are its own",
    "app.hypotheses.predictors": "imported by users' own predictor files",
}


def name_of(path: Path) -> str:
    """Return the dotted name of a module or package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.Module, modules: frozenset[str]) -> set[str]:
    """Return which modules a module imports, for types or late ones included."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & modules
    return found


def import_graph() -> dict[str, set[str]]:
    """Return what each module of the application imports from it."""
    paths = {name_of(path): path for path in python_files("app")}
    modules = frozenset(paths)
    return {name: imports_of(syntax_tree(path), modules) - {name} for name, path in paths.items()}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import circle, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def entries(folder: str) -> Counter[str]:
    """Count what each folder below one holds: Python files and folders of them."""
    inside: dict[str, set[str]] = defaultdict(set)
    for path in python_files(folder):
        parts = path.relative_to(ROOT).parts
        for depth in range(1, len(parts)):
            if not parts[depth].startswith("__"):
                inside["/".join(parts[:depth])].add(parts[depth])
    return Counter({place: len(names) for place, names in inside.items()})


@pytest.mark.parametrize("top", ["app", "tests"])
def test_no_folder_holds_more_than_a_reader_takes_in(top: str) -> None:
    """A folder of the application has at most 16 entries, one of commands or tests 24."""
    crowded = {
        folder: count
        for folder, count in entries(top).items()
        if count
        > (ENTRIES_MAX_OF_ROWS if top == "tests" or folder in FOLDERS_OF_ROWS else ENTRIES_MAX)
    }
    assert not crowded


def test_no_import_closes_a_circle() -> None:
    """No module is reached from itself by imports, those of types and late ones included."""
    assert not circle_in(import_graph())


def test_a_circle_of_types_is_found() -> None:
    """An import that only a type checker reads closes a circle too."""
    typed = "if TYPE_CHECKING:\n    from app.second import Second\n"
    modules = frozenset({"app.first", "app.second"})
    graph = {
        "app.first": imports_of(ast.parse(typed), modules),
        "app.second": imports_of(ast.parse("from app import first"), modules | {"app"}),
    }
    graph["app.second"] |= imports_of(ast.parse("from app.first import First"), modules)
    assert set(circle_in(graph)) == modules


def test_no_small_module_serves_one_other() -> None:
    """A module under 60 lines that one other imports belongs into that one."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, imported in import_graph().items():
        for each in imported:
            importers[each].add(name)
    satellites = [
        f"{name} of {next(iter(importers[name]))}"
        for path in python_files("app")
        if path.stem not in ("__init__", *ROWS_OF_TABLES)
        and len(path.read_text(encoding="utf-8").splitlines()) < SMALL_LINES
        and len(importers[name := name_of(path)]) == 1
        and importers[name] != {COMMANDS}
        and name not in SMALL_AND_ALONE
    ]
    assert not satellites, "\n".join(satellites)


def test_a_name_recurs_only_where_folders_tell_it_apart() -> None:
    """Two modules share a name only in folders side by side, or where one is a command."""
    folders: dict[str, set[str]] = defaultdict(set)
    for path in python_files("app"):
        package, _, name = name_of(path).rpartition(".")
        if path.stem != "__init__" and package != COMMANDS:
            folders[name].add(package)
    apart = {
        name: sorted(packages)
        for name, packages in folders.items()
        if len(packages) > 1 and len({package.rpartition(".")[0] for package in packages}) > 1
    }
    assert not apart
