"""Passes of the benchmark of online answers: what counts, and that it is what is served."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.stability import hit_table as profile
from benchmarks.utility import online_passes
from benchmarks.utility.online_data import QuerySet
from benchmarks.utility.online_passes import check_served, profile_cell, stable_answers, svt_cell
from benchmarks.utility.online_votes import Votes

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTORS = 400
CHARGE = Charge(Mechanism.ANSWERS, Fraction(2), Fraction(1, 10**3))
# Class 0 wins everywhere, and nine rows in ten are of class 0.
TESTS = QuerySet(
    values=np.zeros((VECTORS, 1)),
    place=np.arange(VECTORS),
    labels=(np.arange(VECTORS) % 10 == 0).astype(np.int64),
)


def votes(distance: int) -> Votes:
    """Return votes that all lie at one distance."""
    return Votes(
        plurality=np.zeros(VECTORS, dtype=np.int64),
        distance=np.full(VECTORS, distance),
        ensemble_size=2 * distance + 2,
        answers=CHARGE,
    )


def test_the_last_unstable_answer_ends_a_pass() -> None:
    """Stable answers before it count, and neither it nor what follows."""
    hits = np.array([False, True, False, True, False])
    assert stable_answers(hits, 2).tolist() == [0, 2]
    assert stable_answers(hits, 3).tolist() == [0, 2, 4]
    assert stable_answers(hits, 1).tolist() == [0]


def test_a_cell_follows_its_hit_probability() -> None:
    """E is T (1 - p) / p, and the answers of 60 passes have that mean within five deviations."""
    # Before the T-th hit of probability p come T (1 - p) / p others, of variance
    # T (1 - p) / p^2; more than 400 vectors are needed less than once in 10^15 passes.
    table = profile.calibrate(epsilon=CHARGE.epsilon, delta=CHARGE.delta, cutoff=2)
    distance = table.distance_at(0.1)
    share = table.hit_probability(distance)
    cell = profile_cell([votes(distance)] * 3, TESTS, cutoff=2)
    assert cell.unstable_share == pytest.approx(share)
    assert cell.expected == pytest.approx(2 * (1 - share) / share)
    deviation = (2 * (1 - share)) ** 0.5 / share
    assert abs(cell.answered - cell.expected) < 5 * deviation / 60**0.5


def test_far_out_every_vector_is_answered() -> None:
    """Both calibrations answer all of them, right on nine rows in ten."""
    for cell in (
        profile_cell([votes(10**4)] * 2, TESTS, cutoff=5),
        svt_cell([votes(10**4)] * 2, TESTS, cutoff=5),
    ):
        assert (cell.answered, cell.answered_deviation) == (VECTORS, 0.0)
        assert cell.accuracy == pytest.approx(0.9)


def test_a_pass_that_is_not_the_served_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes as it is, and fails where the pass goes on after its last hit."""
    check_served(votes(3), cutoff=2, seed=1)

    def goes_on(hits: NDArray[np.bool_], cutoff: int) -> NDArray[np.intp]:
        del cutoff
        return np.flatnonzero(~hits)

    monkeypatch.setattr(online_passes, "stable_answers", goes_on)
    with pytest.raises(InvariantError):
        check_served(votes(3), cutoff=2, seed=1)
