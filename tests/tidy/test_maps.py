"""The map of a folder: its docstring, which says what is in which file."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.tidy.sources import ROOT, python_files, syntax_tree

if TYPE_CHECKING:
    from pathlib import Path

NAMED = re.compile(r"``(app/[\w./-]+|[\w./-]+(?:\.(?:py|md|js|html|css)|/))``")


def absent(folder: Path, docstring: str) -> list[str]:
    """Return the files and folders that a docstring names and that are not there."""
    return [
        name
        for name in NAMED.findall(docstring)
        if not (folder / name).exists() and not ("/" in name and (ROOT / name).exists())
    ]


def test_a_folders_map_names_files_that_are_there() -> None:
    """Every file that a folder's docstring names is in that folder, or at the path given."""
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in python_files("app")
        if path.stem == "__init__"
        for name in absent(path.parent, ast.get_docstring(syntax_tree(path)) or "")
    ]
    assert not lost, "\n".join(lost)


def test_a_file_that_is_gone_is_found_on_a_map() -> None:
    """Names of a file elsewhere, of no file and of no folder are found; others are not."""
    docstring = "``source.py``, ``app/errors.py``, ``/v2``; ``errors.py``, ``app/gone``, ``gone/``"
    assert absent(ROOT / "app/noise", docstring) == ["errors.py", "app/gone", "gone/"]
