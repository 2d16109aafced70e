"""Functions stay small."""

from __future__ import annotations

from statistics import median

from tests.tidy.sources import body_line_count, functions, place, python_files

BODY_LINES_MAX = 40
BODY_LINES_MEDIAN_MAX = 12


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
