"""Relabelling and answers get what is charged for them, and no more."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.budget.sampled_budget import PipelineBudget, check, pipeline_budget
from app.privacy.exponential.amplification import relabelled_epsilon, sampled_epsilon

RELABEL = Charge(Mechanism.RELABEL, Fraction(1, 10), Fraction(1, 10**12))
ANSWERS = Charge(Mechanism.ANSWERS, Fraction(6, 10), Fraction(1, 10**6))
TENTH = Fraction(1, 10)


def budget(
    relabel: Charge | None = RELABEL, *, rate: Fraction = Fraction(1), private: bool = False
) -> PipelineBudget:
    """What the usual charges allow."""
    found = pipeline_budget(
        relabel=relabel, answers=ANSWERS, sampling_rate=rate, private_grid=private
    )
    assert found is not None
    return found


def test_without_sampling_each_part_gets_its_charge() -> None:
    """On every row and a public grid, what is charged is what may be used."""
    assert budget() == PipelineBudget(
        sampling_rate=Fraction(1),
        relabel_epsilon=Fraction(1, 10),
        relabel_delta=Fraction(1, 10**12),
        relabel_is_private=False,
        answers_epsilon=Fraction(6, 10),
        answers_delta=Fraction(1, 10**6),
    )


def test_copies_of_a_record_mean_rows_drawn_with_replacement() -> None:
    """A record that may fill three rows costs three times, and only then are rows drawn again."""
    once = budget()
    thrice = replace(once, copies=3)
    assert (once.is_with_replacement, thrice.is_with_replacement) == (False, True)
    assert thrice.inner_epsilon == Fraction(1, 10) + 3 * Fraction(6, 10)


def test_without_a_share_nothing_is_divided() -> None:
    """A release without answers has no budget, and one without relabelling no part for it."""
    assert pipeline_budget(relabel=RELABEL, answers=None) is None
    without = budget(None, rate=TENTH, private=True)
    assert without.relabel_epsilon is None
    assert not without.relabel_is_private
    assert without.inner_epsilon == without.answers_epsilon


def test_sampling_is_spent_in_the_proportion_of_the_charges() -> None:
    """On a tenth of the rows the inner epsilon is ln(1 + 10 (e^.7 - 1)), a seventh to relabel."""
    sampled = budget(rate=TENTH)
    assert float(sampled.inner_epsilon) == pytest.approx(math.log1p(10 * math.expm1(0.7)))
    assert sampled.relabel_epsilon == sampled.inner_epsilon / 7
    assert sampled.answers_delta == Fraction(1, 10**5)
    assert sampled.relabel_delta == Fraction(1, 10**11)
    whole = sampled_epsilon(inner_epsilon=sampled.inner_epsilon, rate=TENTH)
    assert abs(whole - Fraction(7, 10)) < Fraction(1, 10**20)


@pytest.mark.parametrize(("rows", "sampled"), [(9, 0), (10, 1), (1009, 100)])
def test_a_sample_is_rounded_down(rows: int, sampled: int) -> None:
    """A sample has floor(q n) rows."""
    assert budget(rate=TENTH).sampled_row_count(rows) == sampled


def test_a_private_grid_is_refused_with_what_would_bring_it_under() -> None:
    """The line names the sampling rate and the share; at the rate it names it is accepted."""
    with pytest.raises(ConfigurationError) as refused:
        budget(private=True)
    assert str(refused.value) == (
        'hypotheses.grid: "private" costs more than 2 ln 2 = 1.386 on the rows relabelled, and '
        "relabelling has 0.1 there: set privacy.sampling below 0.0000618, or give relabelling "
        'more than 1.386 of epsilon (privacy.shares.relabel), or set it to "public"'
    )
    accepted = budget(rate=Fraction("0.0000618"), private=True)
    assert accepted.relabel_is_private
    with pytest.raises(ConfigurationError):
        budget(rate=Fraction("0.0000619"), private=True)


def test_a_large_share_needs_no_sampling_for_a_private_grid() -> None:
    """Above 2 ln L the share itself covers Lemma L."""
    rich = Charge(Mechanism.RELABEL, Fraction(3, 2), RELABEL.delta)
    assert budget(rich, private=True).relabel_epsilon == Fraction(3, 2)


def test_lemma_l_and_sampling_together_stay_within_the_charges() -> None:
    """The whole chain, charged forward, comes to what was charged for it."""
    rate = Fraction(1, 10**5)
    found = budget(rate=rate, private=True)
    assert found.relabel_epsilon is not None
    parameter = 2 * math.log(math.exp(float(found.relabel_epsilon) / 2) - 1)
    inner = relabelled_epsilon(
        relabel_epsilon=Fraction(parameter), inner_epsilon=found.answers_epsilon, class_count=2
    )
    whole = sampled_epsilon(inner_epsilon=inner, rate=rate)
    assert float(whole) == pytest.approx(0.7, rel=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"answers_epsilon": Fraction(61, 100)},
        {"relabel_epsilon": Fraction(11, 100)},
        {"answers_delta": Fraction(2, 10**6)},
        {"relabel_delta": Fraction(1, 10**11)},
        {"copies": 2},
        {"copies_delta": Fraction(1, 10**6)},
    ],
)
def test_more_than_is_charged_is_found_out(change: dict[str, Fraction]) -> None:
    """Each part is weighed against what is charged for it."""
    check(budget(), relabel=RELABEL, answers=ANSWERS)
    spoiled = replace(budget(), **change)  # type: ignore[arg-type]  # the test names real fields
    with pytest.raises(InvariantError):
        check(spoiled, relabel=RELABEL, answers=ANSWERS)


@pytest.mark.parametrize(
    "change",
    [
        {"sampling_rate": Fraction(0)},
        {"sampling_rate": Fraction(11, 10)},
        {"relabel_epsilon": Fraction(0)},
        {"answers_epsilon": Fraction(0)},
        {"answers_delta": Fraction(0)},
        {"copies": 0},
    ],
)
def test_what_is_no_budget_is_refused(change: dict[str, Fraction]) -> None:
    """A rate is a rate, and what is spent is positive."""
    with pytest.raises(InvariantError):
        replace(budget(), **change)  # type: ignore[arg-type]  # the test names real fields
