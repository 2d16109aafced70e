"""The rule by which an opening is hopeless, against its definition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from app.privacy.budget.ensemble_size import distance_at_unanimity
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile
from app.release.terms.hopeless_release import STABLE_ANSWERS_MIN, hopeless_reasons, stable_answers

BUDGET: dict[str, Any] = {"epsilon": Fraction(3, 5), "delta": Fraction(1, 10**6)}
CUTOFF = 5
SIZES = range(1, 900)


@pytest.mark.parametrize("calibrate", [profile.calibrate, svt.calibrate], ids=["profile", "svt"])
def test_an_opening_is_hopeless_below_fifty_stable_answers(calibrate: object) -> None:
    """It is hopeless for exactly those k at which T (1 - u) / u is below 50 at unanimity."""
    served = calibrate(**BUDGET, cutoff=CUTOFF)  # type: ignore[operator]  # either of two
    found = {
        size
        for size in SIZES
        if hopeless_reasons(served, ensemble_size=size, sampled_row_count=10**6)
    }
    unstable = {size: served.hit_probability(distance_at_unanimity(size)) for size in SIZES}
    assert found == {size for size, u in unstable.items() if CUTOFF * (1 - u) < 50 * u}
    assert 1 in found
    assert max(SIZES) not in found


def test_more_chunks_than_rows_are_hopeless_whatever_the_mechanism() -> None:
    """A chunk without a row is one, in a noisy vote too, which has nothing unstable."""
    noisy = noisy_vote.calibrate(**BUDGET, answer_limit=1000, class_count=2)
    table = profile.calibrate(**BUDGET, cutoff=CUTOFF)
    for served in (noisy, table):
        assert hopeless_reasons(served, ensemble_size=5001, sampled_row_count=5000)
        assert not hopeless_reasons(served, ensemble_size=5000, sampled_row_count=5000)
    assert not hopeless_reasons(noisy, ensemble_size=1, sampled_row_count=1)


def test_what_is_never_unstable_is_not_hopeless() -> None:
    """Where a table ends in no hit at all, no division by zero stands in the way."""
    table = profile.calibrate(**BUDGET, cutoff=CUTOFF)
    never = replace(table, thresholds=(*table.thresholds[:-1], 0))
    assert not hopeless_reasons(never, ensemble_size=10**6, sampled_row_count=10**6)


@pytest.mark.parametrize("unstable", [0.01, 0.2, 0.5, 0.9])
def test_the_figure_of_scores_is_the_same(unstable: float) -> None:
    """Stable answers a unit are (1 - u) / u as well where a score tries two histograms."""
    # Stable at once: no unit. Stable in the shifted histogram: one. Unstable: two.
    stable = (1 - unstable) + unstable * (1 - unstable)
    units = unstable * (1 - unstable) + 2 * unstable**2
    expected = stable_answers(cutoff=CUTOFF, unstable_probability=unstable)
    assert CUTOFF * stable / units == pytest.approx(expected)


def test_the_reason_names_the_numbers() -> None:
    """The sentence has k, T and the bar."""
    table = profile.calibrate(**BUDGET, cutoff=CUTOFF)
    (reason,) = hopeless_reasons(table, ensemble_size=38, sampled_row_count=768)
    for number in ("k = 38", f"T = {CUTOFF}", f"fewer than {STABLE_ANSWERS_MIN}"):
        assert number in reason
