"""From a configuration to what answers: one calibration a kind, verified at each start."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.noisy_vote import bit_vote
from app.privacy.noisy_vote import mechanism as noisy_vote
from app.privacy.noisy_vote.calibration import NoisyVoteCalibration
from app.privacy.noisy_vote.vote_table import VoteTable
from app.privacy.sparse_vector import mechanism as sparse_vector
from app.privacy.sparse_vector.calibration import SvtCalibration, Variant
from app.privacy.stability import mechanism as stability
from app.privacy.stability.hit_table import ProfileTable
from app.release.terms.answer_terms import answering_parameters, calibrate_answers, release_budget
from tests.builders.release.svt_release import NOISY_COUNTS, NOISY_VOTE, REFRESHED, SVT, changed

if TYPE_CHECKING:
    Calibration = ProfileTable | SvtCalibration | NoisyVoteCalibration | VoteTable
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.voting.query_decision import Parameters
    from app.settings.settings import Settings
    from tests.builders.release.small_release import SmallRelease

KINDS = [
    ({}, ProfileTable),
    (SVT, SvtCalibration),
    (REFRESHED, SvtCalibration),
    (NOISY_VOTE, VoteTable),
    ({**NOISY_VOTE, **SVT}, VoteTable),
    (NOISY_COUNTS, NoisyVoteCalibration),
]


def made(release: SmallRelease) -> tuple[Settings, PipelineBudget, Calibration]:
    """Return settings with the budget and the calibration of their answers."""
    settings = release.settings()
    budget = release_budget(settings)
    calibration = calibrate_answers(settings, budget)
    assert budget is not None
    assert isinstance(calibration, ProfileTable | SvtCalibration | NoisyVoteCalibration | VoteTable)
    return settings, budget, calibration


def parameters(release: SmallRelease, *, ensemble_size: int = 9) -> Parameters:
    """Return the parameters that serve."""
    settings, budget, calibration = made(release)
    return answering_parameters(settings, budget, calibration, ensemble_size=ensemble_size)


@pytest.mark.parametrize(("changes", "kind"), KINDS)
def test_the_settings_choose_the_calibration(
    small_release: SmallRelease, changes: dict[str, str], kind: type[Calibration]
) -> None:
    """The noisy vote is one whatever the calibration; each is for the answers' share."""
    _, budget, calibration = made(changed(small_release, changes))
    assert type(calibration) is kind
    share = (budget.answers_epsilon, budget.answers_delta)
    assert (calibration.epsilon, calibration.delta) == share


def test_the_stability_test_is_the_tables(small_release: SmallRelease) -> None:
    """Calibration ``profile`` gives the table that was built."""
    _, _, table = made(small_release)
    assert isinstance(table, ProfileTable)
    given = parameters(small_release)
    assert given.answering == stability.Parameters(table.thresholds, 2)
    assert (given.cutoff, given.is_refreshed) == (2, False)


@pytest.mark.parametrize(
    ("changes", "variant"), [(SVT, Variant.ONE_THRESHOLD), (REFRESHED, Variant.REFRESHED)]
)
def test_the_sparse_vector_has_the_noise_of_its_calibration(
    small_release: SmallRelease, changes: dict[str, str], variant: Variant
) -> None:
    """Scales, threshold, cutoff and variant are those that were checked."""
    release = changed(small_release, changes)
    _, _, calibration = made(release)
    assert isinstance(calibration, SvtCalibration)
    assert calibration.variant is variant
    given = parameters(release)
    assert given.answering == sparse_vector.Parameters(
        threshold=calibration.threshold,
        threshold_noise=DiscreteLaplace(calibration.threshold_scale),
        query_noise=DiscreteLaplace(calibration.query_scale),
        cutoff=calibration.cutoff,
        refreshed=variant is Variant.REFRESHED,
    )
    assert given.is_refreshed == (variant is Variant.REFRESHED)


def test_the_noisy_vote_has_no_cutoff(small_release: SmallRelease) -> None:
    """It takes k from the ensemble, m and L from the settings, and ends at m."""
    release = changed(small_release, NOISY_COUNTS)
    _, _, calibration = made(release)
    assert isinstance(calibration, NoisyVoteCalibration)
    given = parameters(release, ensemble_size=31)
    assert given.answering == noisy_vote.Parameters(
        vote_noise=DiscreteGaussian(calibration.variance),
        class_count=3,
        ensemble_size=31,
        answer_limit=4,
    )
    assert (given.cutoff, given.answer_limit, given.is_refreshed) == (None, 4, False)


@pytest.mark.parametrize("size", [30, 31])
def test_two_labels_have_the_half_table_of_their_parity(
    small_release: SmallRelease, size: int
) -> None:
    """An even k has a tie, which is a fair coin, and an odd one has none."""
    release = changed(small_release, NOISY_VOTE)
    _, _, table = made(release)
    assert isinstance(table, VoteTable)
    given = parameters(release, ensemble_size=size)
    half = table.odd if size % 2 else table.even
    assert given.answering == bit_vote.Parameters(half=half, ensemble_size=size, answer_limit=4)
    assert (half[0] == 1 << 63) == (size % 2 == 0)


def test_without_a_share_nothing_answers(small_release: SmallRelease) -> None:
    """No budget gives no calibration, and parameters without a mechanism."""
    settings = changed(small_release, {"privacy__shares__answers": "0"}).settings()
    assert calibrate_answers(settings, release_budget(settings)) is None
    given = answering_parameters(settings, None, None, ensemble_size=0)
    assert (given.answering, given.answer_limit, given.cutoff) == (None, 0, None)


@pytest.mark.parametrize("changes", [{}, SVT, NOISY_VOTE])
@pytest.mark.parametrize("part", ["epsilon", "delta"])
def test_a_calibration_of_another_budget_is_refused(
    small_release: SmallRelease, changes: dict[str, str], part: str
) -> None:
    """One that was made for less would hold, and is still not the one that is charged."""
    settings, budget, _ = made(changed(small_release, changes))
    spent = budget.answers_epsilon if part == "epsilon" else budget.answers_delta
    other = replace(budget, **{f"answers_{part}": spent / 2})  # type: ignore[arg-type]  # a rational both times
    calibration = calibrate_answers(settings, other)
    with pytest.raises(InvariantError, match="the one of the answers' share"):
        answering_parameters(settings, budget, calibration, ensemble_size=9)


@pytest.mark.parametrize(
    ("changes", "others"),
    [
        ({}, {"answers__cutoff": "1"}),
        (SVT, {"answers__cutoff": "1"}),
        (NOISY_VOTE, {"answers__queries": "3"}),
        (NOISY_VOTE, {"data__classes": '["no", "yes", "maybe"]'}),
        ({}, SVT),
        (SVT, NOISY_VOTE),
        (NOISY_VOTE, {}),
    ],
)
def test_a_calibration_of_other_limits_is_refused(
    small_release: SmallRelease, changes: dict[str, str], others: dict[str, str]
) -> None:
    """Another cutoff, number of answers or of labels, or another kind, is another release's."""
    settings, budget, _ = made(changed(small_release, changes))
    _, _, calibration = made(changed(small_release, others))
    with pytest.raises(InvariantError, match="the one of the answers' share"):
        answering_parameters(settings, budget, calibration, ensemble_size=9)


@pytest.mark.parametrize(
    ("changes", "spoiled"),
    [
        (SVT, {"threshold": 0}),
        (REFRESHED, {"query_scale": Fraction(1, 2)}),
        (NOISY_VOTE, {"ln_ratio": Fraction(1)}),
        (NOISY_COUNTS, {"variance": Fraction(1, 100)}),
    ],
)
def test_a_calibration_that_does_not_hold_is_refused(
    small_release: SmallRelease, changes: dict[str, str], spoiled: dict[str, Fraction]
) -> None:
    """Whatever the piece says, the claim is decided anew from it."""
    settings, budget, calibration = made(changed(small_release, changes))
    broken = replace(calibration, **spoiled)  # type: ignore[arg-type]  # fields of that kind
    with pytest.raises(InvariantError):
        answering_parameters(settings, budget, broken, ensemble_size=9)
