"""The noisy vote of two labels from the outside: the delta of adaptive adversaries, exactly.

``V_n(z)`` is the most that an adversary with n answers left makes of a likelihood ratio z: the
largest of ``z P(O) - e^epsilon Q(O)`` over strategies and events.  It is convex in z, and chords
of a convex function lie above it; so that dynamic programming over nodes of z bounds the delta
of every adaptive adversary from above, and its own plan, played out exactly, from below.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from math import exp
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.auditing.audit import audited_answers
from app.auditing.bounds.bit_bound import (
    adaptive_bit_bound,
    bit_bound,
    label_table,
    pairs_of,
    planned_outcomes,
)
from app.auditing.event_bounds import Bound
from app.auditing.laws.proof_conditions import ANSWERS_PAID, of_bits
from app.privacy.noisy_vote.bit_vote import WORD_RANGE, Parameters
from app.privacy.noisy_vote.vote_table import HALF, VoteTable, calibrate
from app.privacy.stability.table_inequality import MARGIN, precise_context, to_decimal
from app.privacy.voting import query_decision
from tests.builders.release.small_release import SmallRelease
from tests.builders.release.svt_release import NOISY_VOTE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.noise.source import NoiseSource
    from app.privacy.mechanism_registration import State
    from app.privacy.voting.votes import Tally

pytestmark = pytest.mark.audit

NODES = np.unique(
    np.concatenate([np.linspace(0, 1, 200), np.exp(np.linspace(-9.0, 12.0, 4000)), [0.0]])
)
"""Likelihood ratios; beyond the last one V is ``z`` less a constant."""


def chances(served: VoteTable, size: int) -> np.ndarray:
    """Return the chance of the second label at every number of votes."""
    given = Parameters(half=served.half(size), ensemble_size=size, answer_limit=1)
    return np.array([given.words_of_one(votes) / WORD_RANGE for votes in range(size + 1)])


def adaptive_delta(chance: np.ndarray, *, epsilon: float, answers: int) -> float:
    """Return a bound above the delta of every adaptive adversary on neighbouring votes."""
    # What is left of 1 is the chance at the mirrored votes, in full precision.
    both = list(zip(chance, chance[::-1], strict=True))
    pairs = [*pairwise(both), *((after, before) for before, after in pairwise(both))]
    value = np.maximum(0.0, NODES - exp(epsilon))
    for _ in range(answers):
        following = value
        for one, other in pairs:
            seen = [_at(value, NODES * p / q) * q for p, q in zip(one, other, strict=True)]
            following = np.maximum(following, seen[0] + seen[1])
        value = following
    return float(_at(value, np.array([1.0]))[0])


def _at(value: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """Return chords of V; its slope is never above 1."""
    beyond = np.maximum(0.0, ratio - NODES[-1])
    return np.asarray(np.interp(ratio, NODES, value) + beyond)


CASES = [
    ("1", "1e-3", 1),
    ("1", "1e-3", 2),
    ("2", "1e-2", 3),
    ("1/2", "1e-2", 8),
    ("4", "1e-3", 5),
]


@pytest.mark.parametrize("size", [60, 61])
@pytest.mark.parametrize(("epsilon", "delta", "answers"), CASES)
def test_no_adaptive_adversary_exceeds_the_claim(
    epsilon: str, delta: str, answers: int, size: int
) -> None:
    """The largest delta over strategies and votes stays below the claimed one."""
    served = calibrate(epsilon=Fraction(epsilon), delta=Fraction(delta), answer_limit=answers)
    chance = chances(served, size)
    found = adaptive_delta(chance, epsilon=float(served.epsilon), answers=answers)
    assert found <= float(served.delta)


def test_some_adversary_comes_near_the_claim() -> None:
    """A plan that is played out exactly shows two fifths of the claimed delta, so faults show."""
    epsilon, delta, answers = 1.0, 1e-3, 2
    served = calibrate(epsilon=Fraction(1), delta=Fraction(1, 1000), answer_limit=answers)
    chance = chances(served, 60)[:31][::-1]
    pairs = pairs_of(np.stack([chance, 1 - chance], axis=1), moved=1)
    one, other = planned_outcomes(pairs, answers=answers, epsilon=epsilon)
    shown = float(np.maximum(0.0, one - exp(epsilon) * other).sum())
    assert 0.4 * delta < shown <= delta


# -- planted faults --------------------------------------------------------------------


def of_half_the_answers(served: VoteTable) -> VoteTable:
    """Build the table for m/2."""
    halved = calibrate(
        epsilon=served.epsilon, delta=served.delta, answer_limit=served.answer_limit // 2
    )
    return replace(halved, answer_limit=served.answer_limit)


def of_one_order(served: VoteTable) -> VoteTable:
    """Build the table with the divergence from the middle outwards only."""
    words = [HALF]
    with localcontext(precise_context()):
        alpha, price = to_decimal(served.alpha), to_decimal(served.ln_ratio).exp()

        def holds(previous: int, following: int) -> bool:
            p, q = Decimal(following) / WORD_RANGE, Decimal(previous) / WORD_RANGE
            moment = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
            return moment / price <= 1 - MARGIN

        while words[-1] > WORD_RANGE // 10**4 and len(words) < len(served.even):
            low, high = 1, words[-1]
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if holds(words[-1], middle) else (middle, high)
            words.append(high)
    return replace(served, even=tuple(words))


@pytest.mark.parametrize("fault", [of_half_the_answers, of_one_order])
def test_a_table_that_is_too_steep_breaks_the_claim(
    fault: Callable[[VoteTable], VoteTable],
) -> None:
    """For half of the answers, or in one order alone, an adaptive adversary exceeds delta."""
    served = calibrate(epsilon=Fraction(1), delta=Fraction(1, 1000), answer_limit=8)
    planted = fault(served)
    found = adaptive_delta(chances(planted, 60), epsilon=1.0, answers=8)
    assert found > 1e-3


def sure_of_all(
    parameters: query_decision.Parameters, state: State, votes: Tally, noise: NoiseSource
) -> tuple[State, query_decision.Outcome]:
    """Answer the second label for sure where it has all votes, as if the last word were 2^64."""
    after, outcome = query_decision.step(parameters, state, votes, noise)
    return after, replace(outcome, label=1) if votes.counts[0] == 0 else outcome


@pytest.mark.parametrize("name", ["half of the answers", "one order", "asymmetric last word"])
def test_the_audit_names_a_fault(tmp_path: Path, name: str) -> None:
    """The conditions of the proof are asked of the step, and the fault breaks the paid ones."""
    settings = SmallRelease(tmp_path, {**NOISY_VOTE, "answers__queries": "8"}).settings()
    audited = audited_answers(settings)
    assert all(of_bits(audited).values())
    answering = audited.answering
    assert isinstance(answering, Parameters)
    served = calibrate(epsilon=audited.epsilon, delta=audited.delta, answer_limit=8)
    if name == "asymmetric last word":
        given = replace(audited, step=sure_of_all)
    else:
        fault = of_half_the_answers if name == "half of the answers" else of_one_order
        planted = replace(answering, half=fault(served).even)
        given = replace(audited, parameters=replace(audited.parameters, answering=planted))
    assert not of_bits(given)[ANSWERS_PAID]


def test_the_audits_bounds_stay_below_the_claim(tmp_path: Path) -> None:
    """One query asked m times, and queries chosen anew, show less than epsilon, and some of it."""
    settings = SmallRelease(tmp_path, {**NOISY_VOTE, "answers__queries": "8"}).settings()
    audited = audited_answers(settings)
    constant = bit_bound(audited)
    adaptive = adaptive_bit_bound(audited, constant)
    assert isinstance(constant, Bound)
    assert 0.3 * audited.epsilon < max(constant, adaptive).epsilon <= audited.epsilon
    table = label_table(audited)
    assert all(before[0] >= after[0] for before, after in pairwise(table))
