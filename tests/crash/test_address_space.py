"""Learners in a process whose address space runs out: the same votes, or none at all."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.builders.crash.near_the_limit import MACHINE

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str]]:
    """Return what fits and votes came to, with more and more room."""
    script = [sys.executable, "-m", "tests.builders.crash.near_the_limit"]
    ended = subprocess.run(script, capture_output=True, text=True, check=True)
    told: dict[str, list[str]] = json.loads(ended.stdout)
    return told


@pytest.mark.timeout(300)
@pytest.mark.parametrize("work", ["fit", "vote"])
def test_short_of_memory_learners_are_the_same_or_there_are_none(
    outcomes: dict[str, list[str]], work: str
) -> None:
    """With too little room the machine's failure is raised, with enough all votes are the same."""
    fitted, voted = outcomes["without a limit"]
    found, same = outcomes[work], fitted if work == "fit" else voted
    assert found[0] == MACHINE
    assert found[-1] == same
    assert set(found) == {MACHINE, same}
