"""One account of answers and draws: what draws cost at an order, and which tables it accepts."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.privacy.budget.account import Account, Draw, account_of, left_for_answers, log_moment
from app.privacy.budget.composition import (
    WITHHELD_PART,
    Charge,
    Mechanism,
    Shares,
    charges,
    mechanism_epsilon,
)
from app.privacy.budget.sampled_budget import joint_budget
from app.privacy.exponential import mechanism as exponential
from app.privacy.mechanism_registration import AnswersAsked
from app.privacy.mechanisms import MECHANISMS
from app.privacy.noisy_gradient import calibration as noise_calibration
from app.privacy.noisy_vote import cell_vote_table, vote_table
from app.privacy.noisy_vote.vote_table import VoteTable
from app.privacy.paper.paper_pipeline import PaperTargets
from app.privacy.stability import cell_table, hit_table
from app.privacy.stability.cell_table import DecisionTable
from app.privacy.stability.hit_table import ProfileTable
from tests.builders.mechanisms.drawing import DELTA, ROW_COUNT, small_class

if TYPE_CHECKING:
    from collections.abc import Sequence

RELABEL, CLASSIFIER = Draw(Fraction(1, 10)), Draw(Fraction(3, 10))
BOTH = (RELABEL, CLASSIFIER)
MILLIONTH = Fraction(1, 10**6)
CLASSIFIER_DELTA = MILLIONTH / 10 * (1 - WITHHELD_PART) + MILLIONTH * WITHHELD_PART / 2
ORDERS = (Fraction(3, 2), Fraction(2), Fraction(8), Fraction(35, 2), Fraction(100))


def divergence(one: Sequence[float], other: Sequence[float], alpha: float) -> float:
    """Return the Renyi divergence of two laws, by its definition."""
    moment = math.fsum(q * (p / q) ** alpha for p, q in zip(one, other, strict=True))
    return math.log(moment) / (alpha - 1)


def exponential_law(errors: Sequence[int], epsilon: float) -> list[float]:
    """Return the law of the exponential mechanism."""
    weights = [math.exp(-epsilon * each / 2) for each in errors]
    return [weight / math.fsum(weights) for weight in weights]


# -- what a draw costs -----------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_an_exponential_draw_costs_no_more_than_its_range(epsilon: Fraction) -> None:
    """Over all errors of three hypotheses and their neighbours, at every order."""
    draw, shown = Draw(epsilon), 0.0
    for errors in product(range(4), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            one = exponential_law(errors, float(epsilon))
            moved = [error + move for error, move in zip(errors, moves, strict=True)]
            other = exponential_law(moved, float(epsilon))
            for alpha in ORDERS:
                found, most = divergence(one, other, float(alpha)), float(draw.divergence(alpha))
                assert found <= most + 1e-12
                shown = max(shown, found / most)
    assert shown > 0.9


def test_noise_on_counts_costs_more_than_its_share_as_a_range() -> None:
    """Laplace noise at epsilon is charged by 2, not by 8: that would be 3.9 times too little."""
    epsilon, alpha = Fraction(1, 20), Fraction(2)
    values = np.arange(-4000, 4001)
    laws = [np.exp(-float(epsilon) * np.abs(values - shift)) for shift in (0, 1)]
    one, other = (law / law.sum() for law in laws)
    found = math.log(float((one**2 / other).sum()))
    assert 3.8 * float(Draw(epsilon).divergence(alpha)) < found
    assert found <= float(Draw(epsilon, has_bounded_range=False).divergence(alpha))


def test_no_draw_costs_more_than_its_share() -> None:
    """From alpha epsilon = 8 on, or 2, the share itself is charged."""
    assert Draw(Fraction(1)).divergence(Fraction(9)) == 1
    assert Draw(Fraction(1)).divergence(Fraction(4)) == Fraction(1, 2)
    assert Draw(Fraction(1), has_bounded_range=False).divergence(Fraction(3)) == 1
    assert log_moment(BOTH, Fraction(5)) == 4 * 5 * Fraction(10, 100) / 8


# -- inexact weights -------------------------------------------------------------------


def largest_range(epsilon: float, eta: float) -> float:
    """Return the range of ratios of laws that are each off by factors of e^(2 eta)."""
    errors = ((0, 1, 1), (1, 0, 1))
    one, other = (exponential_law(each, epsilon) for each in errors)
    ratios = [math.log(p / q) for p, q in zip(one, other, strict=True)]
    # The likeliest is drawn more often still on one side, and less often on the other.
    return max(ratios) + 4 * eta - (min(ratios) - 4 * eta)


def test_a_range_pays_for_the_error_of_weights_at_both_ends() -> None:
    """At 8 eta less than the share the range is the share at most; at 4 eta it is not."""
    share, eta = Fraction(1, 10), Fraction(1, 1000)
    ranged = mechanism_epsilon(share=share, log_weight_error=eta, is_range=True)
    plain = mechanism_epsilon(share=share, log_weight_error=eta)
    assert largest_range(float(ranged), float(eta)) <= float(share) + 1e-12
    assert largest_range(float(plain), float(eta)) > float(share) + 3 * float(eta)


def drawn(**changes: Fraction) -> exponential.Parameters:
    """Return the parameters of a draw at epsilon 1."""
    return exponential.Parameters(
        epsilon=Fraction(1),
        delta_truncation=changes.pop("delta", DELTA),
        row_count=ROW_COUNT,
        hypotheses=small_class(),
        **changes,
    )


def test_a_draw_in_an_account_runs_below_its_share_by_eight_errors() -> None:
    """The parameter is the share less 8 eta; outside an account less 4."""
    eta = Fraction(small_class().log_weight_error(ROW_COUNT, 1.0))
    inside, outside = drawn(account_epsilon=Fraction(2)), drawn()
    assert Fraction(inside.mechanism_epsilon) <= 1 - 8 * eta
    assert 1 - 8 * eta < Fraction(outside.mechanism_epsilon) <= 1 - 4 * eta


def test_truncation_is_paid_at_the_epsilon_of_the_account() -> None:
    """A delta that covers it at the share is not enough at a larger epsilon."""
    variation = small_class().truncation_variation
    enough = variation * (1 + Fraction(math.ceil(math.exp(2))))
    assert drawn(delta=enough).delta_truncation == enough
    with pytest.raises(InvariantError, match="truncation"):
        drawn(delta=enough, account_epsilon=Fraction(20))
    with pytest.raises(InvariantError, match="a part of its account"):
        drawn(account_epsilon=Fraction(1, 2))


# -- tables ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table() -> ProfileTable:
    """Return the table of T = 5 at epsilon 1 and shares .1, .6 and .3."""
    return hit_table.calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=5, draws=BOTH)


@pytest.fixture(scope="module")
def votes() -> VoteTable:
    """Return a noisy vote's table at the same shares."""
    return vote_table.calibrate(epsilon=Fraction(1), delta=MILLIONTH, answer_limit=10, draws=BOTH)


def ln_delta(table: ProfileTable | VoteTable, *, units: int, draws: tuple[Draw, ...]) -> Decimal:
    """Return ln delta of an account at 50 digits, written out from the proof."""
    with localcontext() as context:
        context.prec = 50
        alpha, epsilon = (
            Decimal(value.numerator) / value.denominator for value in (table.alpha, table.epsilon)
        )
        moment = units * Decimal(table.ln_ratio.numerator) / table.ln_ratio.denominator
        for draw in draws:
            share = Decimal(draw.epsilon.numerator) / draw.epsilon.denominator
            moment += (alpha - 1) * min(share, alpha * share * share / 8)
        return moment - (alpha - 1) * epsilon + (alpha - 1) * (1 - 1 / alpha).ln() - alpha.ln()


def test_the_table_keeps_the_account_and_uses_it(table: ProfileTable, votes: VoteTable) -> None:
    """By the proof's inequality at 50 digits, and to a billionth of it."""
    hit_table.check(table)
    vote_table.check(votes)
    for served, units, delta in ((table, 5, table.delta_svt), (votes, 10, votes.delta)):
        limit = Decimal(delta.numerator).ln() - Decimal(delta.denominator).ln()
        found = ln_delta(served, units=units, draws=BOTH)
        assert limit - Decimal("1e-9") < found <= limit


def test_the_account_takes_fewer_votes(table: ProfileTable, votes: VoteTable) -> None:
    """168 and 276 at T = 5, where shares that add up take 221 and 359; a noisy vote as well."""
    assert (table.distance_at(0.01), table.distance_at(1e-4)) == (168, 276)
    own = left_for_answers(Fraction(1), BOTH)
    alone = vote_table.calibrate(epsilon=own, delta=MILLIONTH, answer_limit=10)
    assert votes.lead_at(0.01) < alone.lead_at(0.01)


def test_an_account_without_the_classifier_is_refused(table: ProfileTable) -> None:
    """A table that left room for relabelling alone does not hold with the classifier's draw."""
    without = hit_table.calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=5, draws=(RELABEL,))
    hit_table.check(without)
    with pytest.raises(InvariantError, match="the draws of their account"):
        hit_table.check(replace(without, draws=BOTH))
    with pytest.raises(InvariantError, match="the draws of their account"):
        hit_table.check(replace(table, draws=(RELABEL, replace(CLASSIFIER, epsilon=Fraction(1)))))


def test_a_draw_of_full_range_is_not_charged_as_a_range(
    table: ProfileTable, votes: VoteTable
) -> None:
    """A grid's noise in the place of a hypothesis breaks the account."""
    full = (RELABEL, replace(CLASSIFIER, has_bounded_range=False))
    with pytest.raises(InvariantError, match="the draws of their account"):
        hit_table.check(replace(table, draws=full))
    with pytest.raises(InvariantError, match="the draws of their account"):
        vote_table.check(replace(votes, draws=(*full, RELABEL)))


def test_tables_are_for_the_draws_that_are_configured(
    table: ProfileTable, votes: VoteTable
) -> None:
    """A table of other draws, or of none, is another configuration's."""
    for row, served in ((MECHANISMS["profile"], table), (MECHANISMS["noisy-bit"], votes)):
        assert row.is_of(served, asked(BOTH))
        assert not row.is_of(served, asked((RELABEL,)))
        assert not row.is_of(served, replace(asked(BOTH), account=None))
        assert not row.is_of(replace(served, draws=()), asked(BOTH))


def asked(draws: tuple[Draw, ...]) -> AnswersAsked:
    """Return what is asked of answers that share an account of epsilon 1."""
    return AnswersAsked(
        relabel=None,
        answers=Charge(Mechanism.ANSWERS, Fraction(3, 5), MILLIONTH),
        targets=PaperTargets(alpha=0.1, beta=0.05, query_count=10),
        sampling_rate=Fraction(1),
        private_grid=False,
        class_count=2,
        cutoff=5,
        account=Account(Fraction(1), draws),
    )


def test_a_table_is_written_and_read_without_loss(table: ProfileTable, votes: VoteTable) -> None:
    """Draws are written where there are some; one that is none is refused."""
    assert ProfileTable.from_plain(table.to_plain()) == table
    assert VoteTable.from_plain(votes.to_plain()) == votes
    assert table.to_plain()["draws"] == ["range 1/10", "range 3/10"]
    assert "draws" not in replace(table, draws=()).to_plain()
    for broken in ("range", "other 1/10", "range 0", "other 1/10 1/5", "normal 1/10 0"):
        with pytest.raises(InvariantError):
            ProfileTable.from_plain({**table.to_plain(), "draws": [broken]})


def test_small_answers_shares_are_no_worse_than_added_up() -> None:
    """Where draws have nearly all of epsilon, each is charged its share at most."""
    draws = (Draw(Fraction(45, 100)), Draw(Fraction(45, 100)))
    joint = hit_table.real_valued_hit_probability(epsilon=1.0, delta=1e-3, cutoff=1, draws=draws)
    alone = hit_table.real_valued_hit_probability(epsilon=0.1, delta=1e-3, cutoff=1)
    assert len(joint) <= len(alone)


# -- the account of a release ----------------------------------------------------------


def test_the_account_of_charges_has_every_draw() -> None:
    """Its epsilon is the sum of the shares but for the statistics table's."""
    shares = Shares(
        relabel=Fraction(1, 10),
        answers=Fraction(4, 10),
        classifier=Fraction(3, 10),
        statistics=Fraction(2, 10),
    )
    divided = charges(epsilon=Fraction(1), delta=MILLIONTH, shares=shares)
    made = account_of(divided, learner="exponential")
    assert made == Account(Fraction(8, 10), BOTH)
    assert made.draws_at(Fraction(16, 10))[1] == Draw(Fraction(6, 10))
    counted = account_of(divided, learner="grid")
    assert counted.draws[1] == Draw(Fraction(3, 10), has_bounded_range=False)
    with pytest.raises(InvariantError, match="has a learner"):
        account_of(divided, learner=None)


def test_the_budget_of_an_account_is_all_of_it() -> None:
    """Answers are calibrated for the account; the draw keeps to its share."""
    relabel = Charge(Mechanism.RELABEL, Fraction(1, 10), MILLIONTH / 2)
    answers = Charge(Mechanism.ANSWERS, Fraction(6, 10), MILLIONTH)
    account = Account(Fraction(1), BOTH)
    budget = joint_budget(relabel=relabel, answers=answers, account=account)
    assert budget is not None
    assert (budget.answers_epsilon, budget.answers_delta) == (account.epsilon, MILLIONTH)
    assert (budget.relabel_epsilon, budget.relabel_delta) == (Fraction(1, 10), MILLIONTH / 2)
    assert budget.inner_epsilon == 1
    assert joint_budget(relabel=relabel, answers=None, account=account) is None
    with pytest.raises(InvariantError, match="answers have a share"):
        Account(Fraction(4, 10), BOTH)


# -- a noisy descent -------------------------------------------------------------------

SPLIT = Shares(answers=Fraction(9, 10), classifier=Fraction(1, 10))


def descending(learner: str) -> Account:
    """Return the account of shares .1, .6 and .3 at epsilon 1, a tenth of delta to the learner."""
    shares = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))
    divided = charges(epsilon=Fraction(1), delta=MILLIONTH, shares=shares, delta_shares=SPLIT)
    return account_of(divided, learner=learner)


@pytest.mark.parametrize("alpha", [Fraction(3, 2), Fraction(4), Fraction(20)])
def test_discrete_noise_costs_no_more_than_normal_noise(alpha: Fraction) -> None:
    """Moves of up to three units, against noise of few units, at every order."""
    values = np.arange(-400, 401)
    for variance in (0.3, 2.0, 9.0):
        for moved in (1, 2, 3):
            one, other = (-((values - shift) ** 2) / (2 * variance) for shift in (0, moved))
            tilted = float(alpha) * one + (1 - float(alpha)) * other
            moment = float(np.logaddexp.reduce(tilted) - np.logaddexp.reduce(one))
            draw = Draw(
                Fraction(1),
                has_bounded_range=False,
                squared_separation=Fraction(moved**2) / Fraction(variance),
            )
            found = moment / (float(alpha) - 1)
            assert found <= float(draw.divergence(alpha)) + 1e-9


@pytest.mark.parametrize("learner", ["linear", "kernel"])
def test_the_account_covers_a_descent_of_any_steps(learner: str) -> None:
    """Its noise is made later, by n; whatever its steps, it moves by no more than is charged."""
    draw = descending(learner).draws[1]
    assert draw.squared_separation is not None
    for weights in ((1,), (1,) * 3, (1,) * 40, (5, 7, 1)):
        made = noise_calibration.calibrate(
            epsilon=Fraction(3, 10), delta=CLASSIFIER_DELTA, step_weights=weights
        )
        noise_calibration.check_separation(made, draw.squared_separation)
        moved = sum(weights) / made.variance_ratio
        assert Fraction(999, 1000) * draw.squared_separation < moved
    planted = replace(made, variance_ratio=made.variance_ratio / 2)
    with pytest.raises(InvariantError, match="no more than its account has for it"):
        noise_calibration.check_separation(planted, draw.squared_separation)


def test_a_descent_leaves_the_answers_more_than_a_draw() -> None:
    """142 and 232 at T = 5, where shares that add up take 222 and 362."""
    made = descending("linear")
    delta = MILLIONTH * Fraction(9, 10) * (1 - WITHHELD_PART)
    table = hit_table.calibrate(epsilon=Fraction(1), delta=delta, cutoff=5, draws=made.draws)
    hit_table.check(table)
    assert (table.distance_at(0.01), table.distance_at(1e-4)) == (142, 232)
    assert ProfileTable.from_plain(table.to_plain()) == table
    whatever = descending("auto")
    either = hit_table.calibrate(epsilon=Fraction(1), delta=delta, cutoff=5, draws=whatever.draws)
    assert ProfileTable.from_plain(either.to_plain()) == either
    for other in (whatever.draws, BOTH, (RELABEL, replace(CLASSIFIER, has_bounded_range=False))):
        with pytest.raises(InvariantError, match="the draws of their account"):
            hit_table.check(replace(table, draws=other))


def test_what_auto_may_take_costs_the_dearer(table: ProfileTable) -> None:
    """At a small order the descent would, and at a large one the exact draw."""
    auto, normal, ranged = (
        descending(learner).draws[1] for learner in ("auto", "linear", "exponential")
    )
    for alpha in (Fraction(5, 4), table.alpha, Fraction(100), Fraction(1000)):
        dearer = max(normal.divergence(alpha), ranged.divergence(alpha))
        assert auto.divergence(alpha) == dearer
    assert normal.divergence(Fraction(1000)) > ranged.divergence(Fraction(1000))
    assert normal.divergence(table.alpha) < ranged.divergence(table.alpha)


def test_a_descent_at_another_account_is_in_proportion() -> None:
    """For planning: twice the epsilon, twice the deviations."""
    made = descending("linear")
    before, after = made.draws[1], made.draws_at(Fraction(2))[1]
    assert before.squared_separation is not None
    assert after.epsilon == 2 * before.epsilon
    assert after.squared_separation == 4 * before.squared_separation


# -- cells decided once ----------------------------------------------------------------


def test_counted_decisions_share_an_account() -> None:
    """38 and 46 at shares .1 and .9, where shares that add up take 41 and 50."""
    for draws, expected in (((RELABEL,), (38, 46)), (BOTH, (55, 66))):
        made = cell_table.calibrate(epsilon=Fraction(1), delta=MILLIONTH, draws=draws)
        cell_table.check(made)
        assert (made.distance_at(0.01), made.distance_at(1e-4)) == expected
        assert DecisionTable.from_plain(made.to_plain()) == made
    with pytest.raises(InvariantError, match="the draws of their account"):
        cell_table.check(replace(made, draws=(*BOTH, RELABEL)))
    row = MECHANISMS["profile-of-cells"]
    assert row.is_of(made, asked(BOTH))
    assert not row.is_of(made, asked((RELABEL,)))


def test_the_noisy_vote_of_cells_gains_nothing_and_loses_nothing() -> None:
    """Its order is so high that a draw costs its share: 28 votes, added up or jointly."""
    joint = cell_vote_table.calibrate_table(epsilon=Fraction(1), delta=MILLIONTH, draws=BOTH)
    cell_vote_table.check_table(joint)
    own = left_for_answers(Fraction(1), BOTH)
    alone = cell_vote_table.calibrate_table(epsilon=own, delta=MILLIONTH)
    assert (joint.lead_at(0.01), joint.lead_at(1e-4)) == (28, 56)
    assert (alone.lead_at(0.01), alone.lead_at(1e-4)) == (28, 56)
    row = MECHANISMS["noisy-bit-of-cells"]
    assert row.is_of(joint, asked(BOTH))
    assert not row.is_of(alone, asked(BOTH))
    with pytest.raises(InvariantError, match="the draws of their account"):
        cell_vote_table.check_table(replace(joint, draws=(*BOTH, RELABEL)))
