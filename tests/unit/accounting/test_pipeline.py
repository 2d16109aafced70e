"""Relabelling and answers get what is charged for them, and no more."""

from __future__ import annotations

from fractions import Fraction

from app.accounting.composition import Charge, Mechanism
from app.accounting.pipeline import PipelineBudget, pipeline_budget

RELABEL = Charge(Mechanism.RELABEL, Fraction(1, 10), Fraction(1, 10**12))
ANSWERS = Charge(Mechanism.ANSWERS, Fraction(6, 10), Fraction(1, 10**6))


def test_without_sampling_each_part_gets_its_charge() -> None:
    """On every row and a public grid, what is charged is what may be used."""
    assert pipeline_budget(relabel=RELABEL, answers=ANSWERS) == PipelineBudget(
        sampling_rate=Fraction(1),
        relabel_epsilon=Fraction(1, 10),
        relabel_is_private=False,
        answers_epsilon=Fraction(6, 10),
        answers_delta=Fraction(1, 10**6),
    )


def test_without_a_share_nothing_is_divided() -> None:
    """A release without answers has no budget, and one without relabelling no part for it."""
    assert pipeline_budget(relabel=RELABEL, answers=None) is None
    budget = pipeline_budget(relabel=None, answers=ANSWERS)
    assert budget is not None
    assert budget.relabel_epsilon is None
