"""Counted decisions from the outside: exact adversaries of two, and faults that they catch."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from app.auditing.audit import report_on
from app.auditing.audited_mechanism import Audited
from app.auditing.bounds_by_mechanism import AUDITED, broken_conditions, exact_bound
from app.auditing.laws.proof_conditions import ANSWERS_PAID, DECISIONS_PAID
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.mechanism_registration import AnswersAsked
from app.privacy.mechanisms import MECHANISMS
from app.privacy.paper.paper_pipeline import PaperTargets
from app.privacy.stability import cell_table
from app.privacy.stability import mechanism as stability
from app.privacy.voting.query_decision import Parameters, Sequel
from tests.builders.release.small_release import seeded_noise

pytestmark = pytest.mark.audit

EPSILON, DELTA = Fraction(9, 10), Fraction(1, 10**6)
OF_CELLS = {"profile-of-cells": 2, "noisy-bit-of-cells": 2, "noisy-vote-of-cells": 3}
STEPS = 20_000


def audited_row(name: str, *, queries: int = 1000) -> Audited:
    """Return a row as it serves at .9 of epsilon 1, with the votes that its table can hide."""
    row, class_count = MECHANISMS[name], OF_CELLS[name]
    asked = AnswersAsked(
        relabel=None,
        answers=Charge(Mechanism.ANSWERS, EPSILON, DELTA),
        targets=PaperTargets(alpha=0.1, beta=0.1, query_count=queries),
        sampling_rate=Fraction(1),
        private_grid=False,
        class_count=class_count,
        cutoff=5,
    )
    calibration = row.calibrate(asked, epsilon=EPSILON, delta=DELTA)
    votes = 2 * (AUDITED[name].lead_needed(calibration) + 2)
    return Audited(
        parameters=Parameters(
            answering=row.serve(calibration, votes),
            class_count=class_count,
            answer_limit=queries,
            after=Sequel.HALT,
            on_cutoff=Sequel.HALT,
            unstable_gets_coin=False,
        ),
        epsilon=EPSILON,
        delta=DELTA,
        ensemble_size=votes,
    )


@pytest.mark.parametrize("name", OF_CELLS)
def test_two_decisions_are_within_the_claim(name: str) -> None:
    """The exact bound is below the claim and has power, and every condition holds."""
    # A bound from samples is above the truth with probability 1e-6 (``FALSE_ALARM``).
    report = report_on(audited_row(name), steps=STEPS, noise=seeded_noise(5))
    assert report.exact is not None
    assert 0.4 * float(EPSILON) < report.exact.epsilon <= float(EPSILON)
    assert report.broken == ()
    assert report.holds


@pytest.mark.parametrize("name", OF_CELLS)
def test_the_bound_is_one_whatever_number_is_asked(name: str) -> None:
    """A release of a hundred thousand answers tells of a record what one of ten does."""
    few, many = (exact_bound(audited_row(name, queries=queries)) for queries in (10, 10**5))
    assert few == many


# -- planted faults ---------------------------------------------------------------


@pytest.mark.parametrize("name", OF_CELLS)
def test_a_cell_decided_twice_is_caught(name: str) -> None:
    """A third decision on one record is above the claim, and is not paid for."""
    twice = replace(audited_row(name), decisions_moved=3)
    assert exact_bound(twice).epsilon > float(EPSILON)
    assert {DECISIONS_PAID, ANSWERS_PAID} & {*broken_conditions(twice)}


def test_a_table_for_one_decision_is_caught() -> None:
    """Its two decisions show half as much again as the claim."""
    audited = audited_row("profile-of-cells")
    made = cell_table.calibrate(epsilon=EPSILON, delta=DELTA, decisions=1)
    faulty = replace(audited.parameters, answering=stability.HitProfile(made.thresholds))
    short = replace(audited, parameters=faulty)
    assert exact_bound(short).epsilon > 1.2 * float(EPSILON)
    assert DECISIONS_PAID in broken_conditions(short)
