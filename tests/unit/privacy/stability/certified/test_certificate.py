"""The certificate of Theorem C: what it says between its nodes, and what it refuses."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvariantError
from app.privacy.stability.certified.certificate import (
    NODE_BITS,
    NODE_ONE,
    SLOPE_BITS,
    SLOPE_ONE,
    Certificate,
    check_certificate,
    least_first,
    pays_pair,
)
from app.privacy.stability.certified.certified_table import calibrate
from app.privacy.stability.table_inequality import WORD_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = calibrate(epsilon=Fraction(4), delta=Fraction(1, 1000), cutoff=2)
GOOD, FIRST = TABLE.certificate, TABLE.thresholds[0]
PAIRS = list(pairwise(TABLE.thresholds))
UNIT = 1 << (NODE_BITS + SLOPE_BITS)


def value(certificate: Certificate, hits: int, z: Fraction) -> Fraction:
    """Return ``V_h(z)`` by the line of the cell that z lies in."""
    place = z * NODE_ONE
    cell = bisect_right(certificate.nodes, place) - 1
    moved = place - certificate.nodes[cell]
    at_node, slope = certificate.values[hits][cell], certificate.slopes[hits][cell]
    return (at_node + slope * moved) / Fraction(UNIT)


@settings(max_examples=30, deadline=None)
@given(
    z=st.fractions(min_value=0, max_value=200, max_denominator=10**6),
    hits=st.integers(1, 2),
    pair=st.sampled_from(PAIRS),
    is_forward=st.booleans(),
)
def test_the_theorem_holds_between_the_nodes_and_beyond(
    z: Fraction, hits: int, pair: tuple[int, int], *, is_forward: bool
) -> None:
    """(a) to (d), written out anew in rationals, hold at any z for any neighbours of the table."""
    p, q = (Fraction(word, WORD_RANGE) for word in (pair if is_forward else pair[::-1]))
    eta, c = 1 - Fraction(FIRST, WORD_RANGE), Fraction(GOOD.factor, NODE_ONE)
    fewer, more = value(GOOD, hits - 1, z), value(GOOD, hits, z)
    assert value(GOOD, 0, z) >= max(Fraction(0), z - c)
    assert fewer <= more
    assert (1 - eta) * fewer + eta * z <= more
    after_hit = q * value(GOOD, hits - 1, z * p / q)
    assert after_hit + (1 - q) * value(GOOD, hits, z * (1 - p) / (1 - q)) <= more


def with_slope(certificate: Certificate, *, hits: int, cell: int, slope: int) -> Certificate:
    """Return a certificate with another slope in one place."""
    slopes = [list(row) for row in certificate.slopes]
    slopes[hits][cell] = slope
    return replace(certificate, slopes=tuple(map(tuple, slopes)))


def with_lower_node(certificate: Certificate, *, hits: int, node: int, by: int) -> Certificate:
    """Return a certificate whose ``V_h`` is lower at one node, convex as before if by little."""
    before = certificate.slopes[hits][node - 1] - by
    lowered = with_slope(certificate, hits=hits, cell=node - 1, slope=before)
    widths = [following - at for at, following in pairwise(certificate.nodes)]
    raised = certificate.slopes[hits][node] + -(-by * widths[node - 1] // widths[node])
    return with_slope(lowered, hits=hits, cell=node, slope=raised)


ONE = GOOD.nodes.index(NODE_ONE)
MIDDLE = GOOD.nodes.index(GOOD.factor)
FAULTS: dict[str, tuple[str, Callable[[], Certificate]]] = {
    "nodes rise": ("nodes rise", lambda: replace(GOOD, nodes=(0, *GOOD.nodes[2:], 1))),
    "node 0 is left out": (
        "first node is 0",
        lambda: replace(GOOD, nodes=GOOD.nodes[1:], slopes=tuple(row[1:] for row in GOOD.slopes)),
    ),
    "node 1 is left out": (
        "1 is a node",
        lambda: replace(
            GOOD,
            nodes=(*GOOD.nodes[:ONE], *GOOD.nodes[ONE + 1 :]),
            slopes=tuple((*row[:ONE], *row[ONE + 1 :]) for row in GOOD.slopes),
        ),
    ),
    "a slope is missing": (
        "behind each node",
        lambda: replace(GOOD, slopes=(*GOOD.slopes[:-1], GOOD.slopes[-1][1:])),
    ),
    "no hit is paid": ("a hit at least", lambda: replace(GOOD, slopes=GOOD.slopes[:1])),
    "a slope falls": ("convex", lambda: with_slope(GOOD, hits=1, cell=ONE + 1, slope=0)),
    "c is lower than V_0 says": ("z - c", lambda: replace(GOOD, factor=GOOD.factor - 1)),
    "V_0 is negative": ("not negative", lambda: with_slope(GOOD, hits=0, cell=0, slope=-1)),
    "V_0 is lower at a node": (
        "z - c",
        lambda: with_slope(GOOD, hits=0, cell=MIDDLE, slope=SLOPE_ONE // 2),
    ),
    "V_0 ends too flat": (
        "rises by 1",
        lambda: replace(
            GOOD,
            slopes=(tuple(min(slope, SLOPE_ONE - 1) for slope in GOOD.slopes[0]), *GOOD.slopes[1:]),
        ),
    ),
    "hits are counted the other way round": (
        "fall with h",
        lambda: replace(GOOD, slopes=(GOOD.slopes[0], GOOD.slopes[2], GOOD.slopes[1])),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_certificate_with_a_fault_is_refused(fault: str) -> None:
    """Each altered certificate fails at the condition that it breaks."""
    claim, plant = FAULTS[fault]
    check_certificate(GOOD, first=FIRST)
    with pytest.raises(InvariantError, match=claim):
        check_certificate(plant(), first=FIRST)


def test_a_first_word_that_is_lower_is_not_paid() -> None:
    """(c) is exact: with one word less at distance 0 labels cost more than V has."""
    assert least_first(GOOD) == FIRST
    with pytest.raises(InvariantError, match="differing label"):
        check_certificate(GOOD, first=FIRST - 1)


@pytest.mark.parametrize("hits", [1, 2])
def test_one_node_lowered_no_longer_pays(hits: int) -> None:
    """Every V is needed: one that is lower by a tenth between 1 and c fails at a vertex."""
    node = (ONE + MIDDLE) // 2
    lower = GOOD.slopes[hits][node - 1] // 10
    lowered = with_lower_node(GOOD, hits=hits, node=node, by=lower)
    assert all(pays_pair(GOOD, *vertex) for vertex in TABLE.vertices)
    assert not all(pays_pair(lowered, *vertex) for vertex in TABLE.vertices)


def test_a_neighbor_further_away_is_not_paid() -> None:
    """Vertices are at the edge of what is accepted, in both halves of the table."""
    for one, other in TABLE.vertices[:: len(TABLE.vertices) // 6]:
        assert not pays_pair(GOOD, one, other - (one - other) // 50)


def test_both_orders_are_decided() -> None:
    """A pair is accepted or refused whichever of its words comes first."""
    for one, other in TABLE.vertices[::20]:
        further = other - (one - other) // 50
        assert pays_pair(GOOD, other, one)
        assert not pays_pair(GOOD, further, one)
