"""Accounting over many budgets, and its claim against exactly computed runs."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp, prod

from hypothesis import given, settings
from hypothesis import strategies as st

from app.privacy.budget.composition import Shares, charges, total
from app.privacy.stability.hit_table import ProfileTable, calibrate, check
from app.privacy.stability.table_inequality import WORD_RANGE

CUTOFF = 2
LENGTH_MAX = 7
DISTANCE_MAX = 40


@cache
def table() -> ProfileTable:
    """A short table, built once."""
    return calibrate(epsilon=Fraction(4), delta=Fraction(1, 1000), cutoff=CUTOFF)


def law(distances: list[int]) -> dict[tuple[bool, ...], float]:
    """The exact law of the hit bits up to the halt, for given distances."""
    probabilities = [table().hit_probability(distance) for distance in distances]
    outcome: dict[tuple[bool, ...], float] = {}
    for bits in product((True, False), repeat=len(distances)):
        seen = bits
        if sum(bits) >= CUTOFF:
            halt = [index for index, bit in enumerate(bits) if bit][CUTOFF - 1]
            seen = bits[: halt + 1]
        weight = prod(p if bit else 1 - p for p, bit in zip(probabilities, bits, strict=True))
        outcome[seen] = outcome.get(seen, 0.0) + weight
    return outcome


@given(
    epsilon=st.fractions(min_value=2, max_value=100),
    delta=st.fractions(min_value="1e-9", max_value="0.5"),
    cutoff=st.integers(min_value=1, max_value=5),
)
@settings(max_examples=15, deadline=None)
def test_every_budget_gets_a_table_that_checks(
    epsilon: Fraction, delta: Fraction, cutoff: int
) -> None:
    """Whatever is built passes the check of an opening and survives its plain form."""
    built = calibrate(epsilon=epsilon, delta=delta, cutoff=cutoff)
    check(built)
    assert ProfileTable.from_plain(built.to_plain()) == built


@given(
    pairs=st.lists(
        st.tuples(st.integers(0, DISTANCE_MAX), st.integers(-1, 1)),
        min_size=1,
        max_size=LENGTH_MAX,
    )
)
@settings(max_examples=150, deadline=None)
def test_hits_of_neighbours_stay_within_the_claim(pairs: list[tuple[int, int]]) -> None:
    """For distances at most one apart the exact hockey-stick divergence is within delta_svt."""
    left = law([distance for distance, _ in pairs])
    right = law([max(0, distance + move) for distance, move in pairs])
    factor = exp(float(table().epsilon))
    for one, other in ((left, right), (right, left)):
        divergence = sum(max(0.0, one[bits] - factor * other[bits]) for bits in one)
        assert divergence <= float(table().delta_svt)


@given(count=st.integers(min_value=1, max_value=50))
def test_differing_labels_stay_in(count: int) -> None:
    """However many queries differ, the chance that one of their labels gets out is paid for."""
    escape = 1 - Fraction(table().thresholds[0], WORD_RANGE) ** min(count, CUTOFF)
    assert escape <= table().delta_release


@given(
    epsilon=st.fractions(min_value="1e-3", max_value=100),
    delta=st.fractions(min_value="1e-12", max_value="0.5"),
    parts=st.tuples(*[st.integers(0, 100)] * 4),
)
def test_charges_never_exceed_the_budget(
    epsilon: Fraction, delta: Fraction, parts: tuple[int, int, int, int]
) -> None:
    """However a release is shared out, its charges sum to no more than its budget."""
    whole = max(1, sum(parts))
    relabel, answers, classifier, statistics = (Fraction(part, whole) for part in parts)
    shares = Shares(relabel=relabel, answers=answers, classifier=classifier, statistics=statistics)
    charged = charges(epsilon=epsilon, delta=delta, shares=shares)
    spent_epsilon, spent_delta = total(charged)
    assert spent_epsilon == epsilon * sum(shares.by_mechanism().values())
    assert spent_delta <= delta
