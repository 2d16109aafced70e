"""A pick of plan is judged by a mean of plays, and by as many as that takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.utility.planning_picked import ENOUGH, PLAYS_MAX, PLAYS_MIN, Plays

NOBODY: Any = None


def judged(picked: list[float], best: list[float]) -> Plays:
    """Return plays in which the first mechanism is the pick."""
    given = [list(pair) for pair in zip(picked, best, strict=True)]
    return Plays(NOBODY, NOBODY, {}, given)


def test_a_part_is_of_mean_answers_with_the_error_of_their_ratio() -> None:
    """Answers that rise and fall together have a ratio without an error."""
    part, error = judged([50, 100, 150, 100], [100, 200, 300, 200]).part(0)
    assert part == 0.5
    assert error == pytest.approx(0)
    part, error = judged([100, 50, 100, 150], [200, 200, 200, 200]).part(0)
    assert part == 0.5
    # The scatter of 100, 50, 100, 150 is sqrt(5000 / 3); of a mean of four, half of that.
    assert error == pytest.approx(np.sqrt(5000 / 3) / 200 / 2)
    assert judged([1, 3, 2, 2], [1, 1, 1, 1]).part(0) == (1, 0), "it is the best itself"
    assert judged([0] * 4, [0] * 4).part(0) == (1, 0)


def test_plays_go_on_until_the_part_is_apart_from_what_is_enough() -> None:
    """At least the fewest, at most the most, and between them while three errors reach 1/1.2."""
    best = [1000.0] * PLAYS_MIN
    assert judged([900.0], [1000.0] * 1).is_open(0)
    assert not judged([900.0] * PLAYS_MIN, best).is_open(0)
    scattered = [1000 * ENOUGH + add for add in (-90.0, 90.0) * (PLAYS_MIN // 2)]
    near = judged(scattered, best)
    assert near.is_near(0)
    assert near.is_open(0)
    count = PLAYS_MAX // PLAYS_MIN
    assert not judged(scattered * count, best * count).is_open(0)
    ahead = judged([850.0, 1250.0] * (PLAYS_MIN // 2), best)
    assert ahead.part(0) == (1, 0)
    assert ahead.is_open(0), "it is the best so far, and may yet miss"
    assert not judged([each - 500 for each in scattered], best).is_open(0)
