"""Sparse vector, noisy vote, samples and private grids are planned like the table."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from app.planning.plan import plan_release
from app.privacy.budget.composition import Mechanism, Shares
from app.privacy.sparse_vector.calibration import SvtCalibration
from tests.builders.schema.plan_requests import asking, request

# -- svt and noisy vote ----------------------------------------------------------------


def test_the_sparse_vector_is_planned_like_the_table() -> None:
    """Calibration svt has its own distance, k and feasibility."""
    plan = plan_release(request(calibration="svt"))
    assert plan.feasible
    stability = plan.answers.stability
    assert stability is not None
    assert isinstance(stability.calibration, SvtCalibration)
    assert plan.answers.ensemble_size == plan.votes_needed["svt one-threshold"]
    assert stability.calibration.hit_probability(stability.wanted_distance) <= 0.00025
    few = plan_release(request(calibration="svt", row_count=300))
    assert not few.feasible
    assert few.answers.rows_needed is not None
    enough = request(calibration="svt", row_count=few.answers.rows_needed)
    assert plan_release(enough).feasible


def test_a_noisy_vote_is_planned_by_its_lead() -> None:
    """It has no cutoff and no distance; k is thrice the lead that stands out of the noise."""
    plan = plan_release(request(mechanism="noisy-vote", targets=asking(100)))
    lead = plan.answers.noisy_lead
    assert plan.feasible
    assert lead is not None
    assert (plan.answers.cutoff, plan.answers.stability) == (None, None)
    assert plan.answers.ensemble_size == 3 * lead.wanted_lead
    assert lead.wanted_agreement == pytest.approx(2 / 3)
    assert not plan.answers.notes


def test_a_noisy_vote_below_its_noise_is_infeasible() -> None:
    """Where unanimous votes lose to the noise the plan says the lead and the rows needed."""
    plan = plan_release(request(mechanism="noisy-vote", row_count=300))
    assert not plan.feasible
    assert "that takes a lead of" in plan.answers.reasons[0]
    needed = plan.answers.rows_needed
    assert needed is not None
    assert f"n = {needed} rows" in plan.answers.advice[0]
    assert plan_release(request(mechanism="noisy-vote", row_count=needed)).feasible


@pytest.mark.parametrize(("rows", "words"), [(20_000, "up to"), (None, "or more")])
def test_a_small_noisy_ensemble_is_advised_its_size(rows: int | None, words: str) -> None:
    """Where the rows suffice and k does not, the plan names the k that do."""
    plan = plan_release(
        request(mechanism="noisy-vote", row_count=rows, targets=asking(100), ensemble_size=5)
    )
    (advice,) = plan.answers.advice
    assert words in advice
    size = int(advice.split()[3])
    again = request(mechanism="noisy-vote", row_count=rows, targets=asking(100), ensemble_size=size)
    assert plan_release(again).feasible
    assert any("of the votes agree are safe" in note for note in plan_release(again).notes)


# -- sampling, and a private grid --------------------------------------------------------


def test_a_sample_feeds_fewer_chunks_and_may_spend_more() -> None:
    """On a tenth of the rows n' is a tenth, the answers' epsilon larger and k smaller."""
    whole, part = plan_release(request()), plan_release(request(rate="0.1"))
    assert part.request.sampled_row_count == 2000
    assert part.request.budget is not None
    assert part.request.budget.answers_epsilon > 4.8
    assert (part.answers.ensemble_size or 0) < (whole.answers.ensemble_size or 0)
    assert part.excess_errors[Mechanism.RELABEL] > whole.excess_errors[Mechanism.RELABEL]
    classifier = Mechanism.CLASSIFIER
    assert part.excess_errors[classifier] == whole.excess_errors[classifier]


def test_too_small_a_sample_is_advised_a_larger_one() -> None:
    """Rows needed are rows of the whole; a larger rate is advised in place of epsilon."""
    plan = plan_release(request(row_count=300, rate="0.1"))
    assert not plan.feasible
    assert any("raise privacy.sampling" in advice for advice in plan.answers.advice)
    needed = plan.answers.rows_needed
    assert needed is not None
    assert plan_release(request(row_count=needed, rate="0.1")).feasible
    starved = plan_release(request(row_count=3000, rate="0.1", ensemble_size=301))
    assert "the sample of n' = 300" in starved.answers.reasons[0]


def test_a_private_grid_of_too_many_labellings_is_infeasible() -> None:
    """More than can be listed are told with their bound and what brings it down."""
    shares = Shares(relabel=Fraction(1, 4), answers=Fraction(1, 2), classifier=Fraction(1, 4))
    plan = plan_release(request(shares, private=True, relabel_hypothesis_count=1 << 21))
    assert not plan.feasible
    (reason,) = plan.reasons
    assert "may have 2097152 labellings" in reason
    assert "hypotheses.grid" in plan.advice[0]


def test_a_private_grid_is_planned_at_its_parameter() -> None:
    """What the draw runs at is what Lemma L leaves of its part."""
    shares = Shares(relabel=Fraction(1, 4), answers=Fraction(1, 2), classifier=Fraction(1, 4))
    public = plan_release(request(shares, relabel_hypothesis_count=1000))
    private = plan_release(request(shares, private=True, relabel_hypothesis_count=1000))
    assert public.relabel_parameter == 2
    assert private.relabel_parameter == pytest.approx(2 * math.log(math.e - 1))
    assert private.excess_errors[Mechanism.RELABEL] > public.excess_errors[Mechanism.RELABEL]
