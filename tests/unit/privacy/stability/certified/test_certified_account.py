"""Theorem C': a table whose account has the draws before and after its answers."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.privacy.budget.account import Account, Draw
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.mechanism_registration import AnswersAsked
from app.privacy.mechanisms import MECHANISMS
from app.privacy.paper.paper_pipeline import PaperTargets
from app.privacy.stability.certified.certificate import (
    NODE_BITS,
    NODE_ONE,
    SLOPE_BITS,
    delta_after_draw,
    start_value,
)
from app.privacy.stability.certified.certified_table import (
    ALONE,
    CertifiedTable,
    SharedWith,
    approximate,
    calibrate,
    check,
    factor_below,
)
from app.privacy.stability.table_inequality import WORD_RANGE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MILLIONTH = Fraction(1, 10**6)
BOTH = SharedWith(relabel=Fraction(1, 10), classifier=Fraction(3, 10))
FIGURES = {1: (95, 156), 5: (144, 236)}


@pytest.fixture(scope="module")
def table() -> CertifiedTable:
    """Return the table of T = 1 at epsilon 1 and shares .1, .6 and .3."""
    return calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=1, shared=BOTH)


# -- what the draw after the answers is worth ------------------------------------------


@pytest.mark.parametrize("share", [Fraction(1, 100), Fraction(3, 10), Fraction(5)])
def test_the_start_is_the_best_event_of_a_draw(share: Fraction) -> None:
    """Over all laws of two points in its range with mean 1, and never below that."""
    factor, spared = factor_below(Fraction(1)), factor_below(-share)
    c, s = factor / NODE_ONE, spared / NODE_ONE
    uppers = np.exp(np.linspace(0, float(share), 20_001))
    weights = (1 - uppers * s) / (uppers - uppers * s)
    for z in (0.01, c * s, 0.5 * c, c, 1.3 * c, c / s, 300.0):
        node = round(z * NODE_ONE)
        best = weights * np.maximum(0.0, z * uppers - c)
        best += (1 - weights) * np.maximum(0.0, z * uppers * s - c)
        found = start_value(node, factor, spared) / 2.0 ** (NODE_BITS + SLOPE_BITS)
        assert found == pytest.approx(float(best.max()), rel=1e-6, abs=1e-9)


def test_the_start_is_rounded_up() -> None:
    """Beside the formula at 60 digits."""
    factor, spared = factor_below(Fraction(1)), factor_below(Fraction(-3, 10))
    with localcontext() as context:
        context.prec = 60
        c, s = Decimal(factor) / NODE_ONE, Decimal(spared) / NODE_ONE
        for node in (int(2.1 * NODE_ONE), factor - 1, factor, factor + 7, int(3.6 * NODE_ONE)):
            z = Decimal(node) / NODE_ONE
            exact = (z.sqrt() - (c * s).sqrt()) ** 2 / (1 - s)
            found = Decimal(start_value(node, factor, spared)) / (1 << (NODE_BITS + SLOPE_BITS))
            assert 0 <= found - exact < Decimal("1e-24")


# -- the whole account, against adversaries --------------------------------------------


def worst_delta(table: CertifiedTable, *, shared: SharedWith, rounds: int = 400) -> float:
    """Return what adversaries of one hit get at so many adaptive queries, nearly.

    They choose neighbouring distances in either order, or a differing plurality; then the
    best event of the classifier's draw is taken, and before all the worst two points of the
    hypothesis' draw.  Between nodes a chord of the convex value is above it.
    """
    hits = np.array([threshold / WORD_RANGE for threshold in table.thresholds])
    stays = np.array([(WORD_RANGE - threshold) / WORD_RANGE for threshold in table.thresholds])
    places = np.unique(np.linspace(0, len(hits) - 2, 40).astype(int))
    one, other = np.concatenate([places, places + 1]), np.concatenate([places + 1, places])
    c, s = math.exp(table.epsilon), math.exp(-shared.classifier)
    nodes = np.exp(np.linspace(-0.6, 1.9, 2001))

    def last(ratios: Floats) -> Floats:
        if s == 1:
            return np.maximum(0.0, ratios - c)
        between = (np.sqrt(ratios) - math.sqrt(c * s)) ** 2 / (1 - s)
        return np.where(ratios <= c * s, 0.0, np.where(ratios >= c / s, ratios - c, between))

    values = last(nodes)
    label = np.maximum(values, hits[0] * values + stays[0] * nodes)
    values = label
    # What a hit gives, and where a miss leads, are the same in every round.
    pairs = [
        (q * last(nodes * p / q), nodes * u / v, v)
        for p, q, u, v in zip(hits[one], hits[other], stays[one], stays[other], strict=True)
    ]
    for _ in range(rounds):
        best = values
        for hit, led, v in pairs:
            best = np.maximum(best, hit + v * np.interp(led, nodes, values))
        values = best
    ends = np.exp(np.linspace(0, float(shared.relabel), 201))
    if shared.relabel == 0:
        return float(np.interp(1.0, nodes, values))
    lower = ends * math.exp(-shared.relabel)
    weight = (1 - lower) / (ends - lower)
    upper = np.interp(ends, nodes, values)
    return float((weight * upper + (1 - weight) * np.interp(lower, nodes, values)).max())


def test_no_adversary_exceeds_the_claim_and_one_comes_near(table: CertifiedTable) -> None:
    """The whole account shows above four tenths of delta, and never more than all of it."""
    assert 0.4 < worst_delta(table, shared=BOTH) / float(MILLIONTH) <= 1


@pytest.mark.parametrize("missing", ["relabel", "classifier"])
def test_an_account_without_a_draw_is_exceeded(missing: str) -> None:
    """A table that left one draw out shows more than delta beside it, and is refused."""
    less = replace(BOTH, **{missing: Fraction(0)})
    without = calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=1, shared=less)
    check(without)
    assert worst_delta(without, shared=BOTH) > float(MILLIONTH)
    with pytest.raises(InvariantError, match=r"\(a'\)|after the draw that relabels"):
        check(replace(without, shared=BOTH))


# -- tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", FIGURES)
def test_one_account_takes_fewer_votes(cutoff: int) -> None:
    """At epsilon 1 and shares .1, .6 and .3, beside the answers' own share alone."""
    table = calibrate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=cutoff, shared=BOTH)
    check(table)
    alone = calibrate(epsilon=Fraction(6, 10), delta=MILLIONTH, cutoff=cutoff)
    quick = approximate(epsilon=Fraction(1), delta=MILLIONTH, cutoff=cutoff, shared=BOTH)
    for probability, expected in zip((1e-2, 1e-4), FIGURES[cutoff], strict=True):
        assert abs(table.distance_at(probability) - expected) <= 1
        assert table.distance_at(probability) < alone.distance_at(probability)
        assert quick.distance_at(probability) <= 1.1 * expected
    assert CertifiedTable.from_plain(table.to_plain()) == table
    assert "classifier" not in alone.to_plain()


@pytest.mark.parametrize(
    ("epsilon", "shared"),
    [
        (Fraction(50), SharedWith(relabel=Fraction(5), classifier=Fraction(15))),
        (Fraction(1, 10), SharedWith(relabel=Fraction(1, 100), classifier=Fraction(3, 100))),
        (Fraction(1), SharedWith(relabel=Fraction(8, 10))),
        (Fraction(1), SharedWith(classifier=Fraction(8, 10))),
    ],
)
def test_the_ends_of_the_range_hold(epsilon: Fraction, shared: SharedWith) -> None:
    """A large epsilon, a small one, and one draw that has nearly all of it."""
    check(calibrate(epsilon=epsilon, delta=MILLIONTH, cutoff=2, shared=shared))


def test_altered_accounts_are_refused(table: CertifiedTable) -> None:
    """Larger draws, a lower start, and shares that leave the answers nothing."""
    certificate = table.certificate
    start = tuple(max(0, slope - (1 << 60)) for slope in certificate.slopes[0])
    for altered in (
        replace(table, shared=replace(BOTH, relabel=Fraction(2, 10))),
        replace(table, shared=replace(BOTH, classifier=Fraction(31, 100))),
        replace(table, shared=replace(BOTH, classifier=Fraction(9, 10))),
        replace(table, delta=MILLIONTH * Fraction(99, 100)),
        replace(table, certificate=replace(certificate, slopes=(start, *certificate.slopes[1:]))),
    ):
        with pytest.raises(InvariantError):
            check(altered)
    with pytest.raises(InvariantError, match="not negative"):
        SharedWith(relabel=Fraction(-1))


def test_the_mean_over_a_draw_is_above_the_value_without(table: CertifiedTable) -> None:
    """The chords around 1 are above ``V_T(1)``, and rise with the range."""
    costs = [
        delta_after_draw(table.certificate, factor_below(share) + 2)
        for share in (Fraction(1, 10**6), Fraction(1, 20), Fraction(1, 10))
    ]
    alone = Fraction(table.certificate.delta, 1 << (NODE_BITS + SLOPE_BITS))
    assert alone <= costs[0] < costs[1] < costs[2] <= MILLIONTH


def test_a_row_takes_the_draws_of_its_account(table: CertifiedTable) -> None:
    """By which of them relabels; a table of other draws is another configuration's."""
    row = MECHANISMS["certified"]
    draws = (Draw(BOTH.relabel), Draw(BOTH.classifier))
    asked = AnswersAsked(
        relabel=Charge(Mechanism.RELABEL, BOTH.relabel, MILLIONTH),
        answers=Charge(Mechanism.ANSWERS, Fraction(6, 10), MILLIONTH),
        targets=PaperTargets(alpha=0.1, beta=0.05, query_count=10),
        sampling_rate=Fraction(1),
        private_grid=False,
        class_count=2,
        cutoff=1,
        account=Account(Fraction(1), draws),
    )
    assert row.calibrate(asked, epsilon=Fraction(1), delta=MILLIONTH) == table
    assert row.is_of(table, asked)
    only = Account(Fraction(9, 10), draws[1:])
    assert not row.is_of(table, replace(asked, relabel=None, account=only))
    assert not row.is_of(table, replace(asked, account=None))
    assert not row.is_of(replace(table, shared=ALONE), asked)
