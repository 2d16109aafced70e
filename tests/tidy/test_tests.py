"""A test says in its name and in one sentence what must hold."""

from __future__ import annotations

import ast
import re

from tests.conftest import ROOT, SLOW_FILES
from tests.tidy.sources import functions, place, python_files

SUBJECT = re.compile(r"test_[a-z].*[a-z]")


def test_every_test_is_one_sentence() -> None:
    """The docstring of a test is one paragraph that ends in a full stop."""
    said = [
        f"{place(path, function.lineno)} {function.name}"
        for path in python_files("tests")
        for function in functions(path)
        if function.name.startswith("test_")
        and not _is_one_sentence(ast.get_docstring(function) or "")
    ]
    assert not said, "\n".join(said)


def test_every_test_is_named_after_its_claim() -> None:
    """A test is named by a claim of three words or more, not by a number."""
    named = [
        f"{place(path, function.lineno)} {function.name}"
        for path in python_files("tests")
        for function in functions(path)
        if function.name.startswith("test_")
        and (function.name.count("_") < 3 or not SUBJECT.fullmatch(function.name))
    ]
    assert not named, "\n".join(named)


def test_every_slow_file_exists() -> None:
    """A file that was renamed is not left in the list of slow files under its old name."""
    named = SLOW_FILES.read_text(encoding="utf-8").split()
    gone = [name for name in named if not (ROOT / "tests" / name).is_file()]
    assert not gone, "\n".join(gone)


def _is_one_sentence(docstring: str) -> bool:
    """Tell whether a docstring is a single paragraph closed by a full stop."""
    return docstring.endswith(".") and "\n\n" not in docstring
