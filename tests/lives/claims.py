"""Every test and planted fault by its name, and how many lines are guarded.

Names stay when files move, so a list of before and one of now are held against each other
by name; a file says only where a claim is now.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
TEST, FAULT, LINES = "test", "fault", "lines"


def listed() -> list[str]:
    """Return a line for each: what it is, its name, and where it is or how many there are."""
    found = [*_tests(), *_faults()]
    return sorted("\t".join(each) for each in found) + ["\t".join(each) for each in _guarded()]


def lacking(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return what was listed before and is not now, wherever it may be; or has fewer lines."""
    lines = {name: int(count) for kind, name, count in _parts(now) if kind == LINES}
    shrunk = [
        f"{LINES}\t{name}\t{count} before, {lines.get(name, 0)} now"
        for kind, name, count in _parts(before)
        if kind == LINES and lines.get(name, 0) < int(count)
    ]
    left = Counter((kind, name) for kind, name, _ in _parts(now))
    gone: list[str] = []
    for kind, name, place in _parts(before):
        if kind == LINES:
            continue
        left[kind, name] -= 1
        if left[kind, name] < 0:
            gone.append(f"{kind}\t{name}\t{place}")
    return gone + shrunk


def _parts(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        kind, name, place = line.split("\t")
        yield kind, name, place


def _tests() -> Iterator[tuple[str, str, str]]:
    """Yield every test function, in a class or not, without its parameters."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in _test_names(ast.parse(path.read_text(encoding="utf-8"))):
            yield TEST, name, f"{path.relative_to(ROOT)}::{name}"


def _test_names(tree: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            # A state machine of Hypothesis becomes a test by its attribute.
            yield from _test_names(node, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                yield prefix + node.name
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id.lower().startswith("test"):
                    yield prefix + target.id


def _faults() -> Iterator[tuple[str, str, str]]:
    """Yield what a module of planted faults defines for tests: functions, classes and names."""
    for path in sorted((ROOT / "tests").rglob("planted*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in _defined(node):
                yield FAULT, name, f"{path.relative_to(ROOT)}"


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return [node.targets[0].id]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _guarded() -> Iterator[tuple[str, str, str]]:
    """Yield how many lines of code are under the pure contract, and under branch coverage."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts: list[dict[str, Any]] = project["importlinter"]["contracts"]
    pure = next(each for each in contracts if each["id"] == "pure")["source_modules"]
    covered: dict[str, Any] = project["coverage"]["run"]
    folders = [name.replace(".", "/") for name in pure]
    for name, places, omitted in (
        ("pure contract", folders, ()),
        ("branch coverage", covered["source"], covered.get("omit", ())),
    ):
        yield LINES, name, str(sum(map(_code_lines, _files(places, omitted))))


def _files(places: Iterable[str], omitted: Iterable[str]) -> set[Path]:
    files: set[Path] = set()
    for place in places:
        path = ROOT / place
        files.update(path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")])
    for pattern in omitted:
        files -= set(ROOT.glob(pattern))
    return files


def _code_lines(path: Path) -> int:
    """Return how many lines hold a token that is neither comment nor docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not _is_docstring(node):
            lines.update(range(node.lineno, _head_end(node) + 1))
    return len(lines)


def _head_end(node: ast.stmt) -> int:
    """Return the last line of a statement without those of its body."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return body[0].lineno - 1 if body else node.end_lineno or node.lineno


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
