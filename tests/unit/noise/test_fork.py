"""Processes that are forked share no draw: nothing random waits in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
KINDS = ("words", "word", "below", "permutation", "secret", "laplace", "gaussian")


@cache
def draws_of_three(source: str) -> list[dict[str, list[str]]]:
    """Return what two children and their parent drew."""
    command = [sys.executable, "-m", "tests.builders.mechanisms.forked", source]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    drawn: list[dict[str, list[str]]] = json.loads(said.stdout)
    assert [set(one) for one in drawn] == [set(KINDS)] * 3
    return drawn


def shared(source: str) -> set[str]:
    """Return the kinds of which two of the processes, or one twice, drew the same."""
    drawn = draws_of_three(source)
    every = {kind: [value for one in drawn for value in one[kind]] for kind in KINDS}
    return {kind for kind, values in every.items() if len(set(values)) < len(values)}


def test_children_and_parent_draw_different_words() -> None:
    """Words, integers, permutations, secrets and noise of two children and their parent differ."""
    # Of 192 words of 64 bits two are equal with probability 1e-15; the rest is rarer still:
    # integers below 1e30, orders of 64, and four draws each of scale 1e15.
    assert not shared("system")


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("buffered", set(KINDS) - {"permutation"}),
        ("shared-generator", {"permutation"}),
    ],
)
def test_a_source_that_keeps_words_is_caught(source: str, kinds: set[str]) -> None:
    """Buffered words and a generator with a state of its own come again in every child."""
    assert shared(source) == kinds
