"""Functions and modules stay small."""

from __future__ import annotations

from statistics import median

from tests.tidy.sources import ROOT, body_line_count, functions, place, python_files

BODY_LINES_MAX = 40
BODY_LINES_MEDIAN_MAX = 12
MODULE_LINES_MAX = 400


def test_no_function_body_is_longer_than_forty_lines() -> None:
    """A function's body, its docstring left out, has at most 40 lines."""
    too_long = [
        f"{place(path, function.lineno)} {function.name}: {body_line_count(function)} lines"
        for path in python_files()
        for function in functions(path)
        if body_line_count(function) > BODY_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)


def test_most_function_bodies_are_under_twelve_lines() -> None:
    """The middle function of the application has fewer than 12 lines."""
    counts = [
        body_line_count(function) for path in python_files("app") for function in functions(path)
    ]
    assert median(counts) < BODY_LINES_MEDIAN_MAX


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    """A Python file has at most 400 lines."""
    too_long = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path in python_files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MODULE_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)
