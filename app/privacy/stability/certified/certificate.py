"""The numeric certificate that proves a stability table private, checked on integers.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold.

A certificate is a convex, piecewise linear function ``V_h`` of ``z >= 0`` for each number ``h =
0..T`` of unstable answers (hits) that are left before the cutoff T; the nodes are the points
between which all these functions are linear. Here ``z`` is a likelihood ratio, and ``V_h(z)``
bounds ``z P(O) - c Q(O)`` over all adversaries and events ``O``, where P and Q are the
distributions of the outputs on two neighbouring data sets and c is at most ``e^epsilon``. The table
makes an answer at distance ``d`` unstable with probability ``p_d = P_d / M``, ``P_d`` being an
integer and ``M = 2**64``. With ``eta = 1 - p_0`` the theorem requires, for ``h = 1..T``::

    (a)  V_0(z) >= max(0, z - c)
    (b)  V_(h-1)(z) <= V_h(z)
    (c)  (1 - eta) V_(h-1)(z) + eta z <= V_h(z)
    (d)  q V_(h-1)(z p / q) + (1 - q) V_h(z (1 - p) / (1 - q)) <= V_h(z)

for every two adjacent entries p, q of the table, in both orders.  Each condition holds at all z if
it holds at the nodes, and if the slopes beyond the last node are at least 1 and do not fall with h.
All numbers here are integers, and nothing is rounded.

If a classifier is drawn after the last answer and shares the answers' privacy account, condition
(a) is replaced by a stronger one, whose right side is :func:`start_value`. If a hypothesis that
relabels is drawn before the first answer, the delta is not ``V_T(1)`` but
:func:`delta_after_draw`. The range of such a draw is the length of the interval that contains the
logarithms of its likelihood ratios.

Proof: ``app/privacy/stability/certified/certified_table_proof.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from app.errors import invariant
from app.privacy.stability.table_inequality import WORD_RANGE

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE_BITS: Final = 40
SLOPE_BITS: Final = 96
NODE_ONE: Final = 1 << NODE_BITS
SLOPE_ONE: Final = 1 << SLOPE_BITS
NODE_COUNT_MAX: Final = 4096


@dataclass(frozen=True)
class Certificate:
    """A numeric proof that a stability table is private: piecewise linear functions ``V_0 .. V_T``.

    Attributes:
        factor: the number c, at most ``e**epsilon``, times ``2**40``.
        nodes: the likelihood ratios between which all functions are linear, from 0 up, times
            ``2**40``.
        slopes: for each function ``V_h`` the slope after each node, times ``2**96``, shape (T + 1,
            nodes), h from 0 to T.

    """

    factor: int
    nodes: tuple[int, ...]
    slopes: tuple[tuple[int, ...], ...]

    @property
    def cutoff(self) -> int:
        """The number of unstable answers that the certificate covers."""
        return len(self.slopes) - 1

    @cached_property
    def values(self) -> tuple[tuple[int, ...], ...]:
        """The certificate's functions at the nodes, times ``2**136``, shape (T + 1, nodes)."""
        widths = [following - node for node, following in pairwise(self.nodes)]
        return tuple(
            tuple(accumulate(map(int.__mul__, slopes, widths), initial=0)) for slopes in self.slopes
        )

    def value_at(self, place: Fraction) -> Fraction:
        """Return the value of the certificate's function ``V_T`` at ``place``, z >= 0, exactly."""
        scaled = place * NODE_ONE
        cell = bisect_right(self.nodes, scaled) - 1
        moved = self.slopes[-1][cell] * (scaled - self.nodes[cell])
        return (self.values[-1][cell] + moved) / (NODE_ONE * SLOPE_ONE)

    @cached_property
    def delta(self) -> int:
        """The delta of a run with T unstable answers, times ``2**136``."""
        return self.values[-1][self.nodes.index(NODE_ONE)]


def delta_after_draw(certificate: Certificate, range_above: int) -> Fraction:
    """Return an upper bound on the delta of a private draw followed by a run of answers.

    Args:
        certificate: the certificate of the run of answers.
        range_above: ``2**40`` times an upper bound on ``e**r``, r being the range of the draw.

    """
    # With E = e^range, the likelihood ratio x of the draw has mean 1 and lies in an interval
    # [t / E, t], t between 1 and E. The mean of the convex V_T of x is at most its mean on the two
    # ends, the value at 1 of the chord between them. For all t between two nodes, the chord from
    # the least lower end to the largest upper end bounds this value.
    whole = Fraction(range_above, NODE_ONE)
    inside = (node for node in certificate.nodes if NODE_ONE < node < range_above)
    ends = [Fraction(1), *(Fraction(node, NODE_ONE) for node in inside), whole]
    return max(_chord_at_one(certificate, a / whole, b) for a, b in pairwise(ends))


def _chord_at_one(certificate: Certificate, lower: Fraction, upper: Fraction) -> Fraction:
    """Return the value at 1 of the chord of ``V_T`` over an interval around 1."""
    weight = (1 - lower) / (upper - lower)
    return weight * certificate.value_at(upper) + (1 - weight) * certificate.value_at(lower)


def check_certificate(certificate: Certificate, *, first: int, spared: int = NODE_ONE) -> None:
    """Raise an error unless a certificate has the right shape and meets its theorem's conditions.

    Args:
        certificate: the certificate to check.
        first: ``P_0``, the first threshold of the table.
        spared: ``2**40`` times a lower bound on ``e**-r``, r being the range of the private draw
            that follows the answers; ``2**40`` without such a draw.

    Raises:
        InvariantError: a condition of the theorem does not hold.

    """
    nodes, slopes = certificate.nodes, certificate.slopes
    invariant(0 < first < WORD_RANGE, "P_0 lies strictly inside a word")
    invariant(1 < len(nodes) <= NODE_COUNT_MAX, "a certificate has nodes, and not too many")
    invariant(nodes[0] == 0, "the first node is 0")
    invariant(all(a < b for a, b in pairwise(nodes)), "nodes rise")
    invariant(NODE_ONE in nodes, "1 is a node")
    invariant(len(slopes) > 1, "a certificate pays for a hit at least")
    invariant(all(len(each) == len(nodes) for each in slopes), "a slope stands behind each node")
    invariant(all(a <= b for each in slopes for a, b in pairwise(each)), "each V is convex")
    _check_start(certificate)
    if spared < NODE_ONE:
        invariant(spared > 0, "a draw's range is finite")
        values = zip(nodes, certificate.values[0], strict=True)
        paid = all(value >= start_value(node, certificate.factor, spared) for node, value in values)
        invariant(paid, "(a'): V_0 pays for the draw that follows")
    for fewer, more in pairwise(zip(certificate.values, slopes, strict=True)):
        invariant(fewer[1][-1] <= more[1][-1], "slopes at the end do not fall with h")
        rising = all(a <= b for a, b in zip(fewer[0], more[0], strict=True))
        invariant(rising, "(b): V does not fall with h")
        held = _pays_label(nodes, fewer[0], more[0], unstable=first)
        invariant(held, "(c): V pays for a differing label")


def start_value(node: int, factor: int, spared: int) -> int:
    """Return the least value of ``V_0`` at a node, times ``2**136``, if a draw follows the answers.

    ``V_0`` is the certificate's function for no unstable answer left.

    Args:
        node: the node z, a likelihood ratio, times ``2**40``.
        factor: the certificate's factor c, at most ``e**epsilon``, times ``2**40``.
        spared: ``2**40`` times a lower bound on ``e**-r``, r being the range of the private draw
            that follows the answers; below ``2**40``.

    """
    if node << NODE_BITS <= factor * spared:
        return 0
    if node * spared >= factor << NODE_BITS:
        return (node - factor) * SLOPE_ONE
    # (z + c s - 2 sqrt(z c s)) / (1 - s), every term times 2^176; the root is rounded down.
    root = math.isqrt(node * factor * spared << (352 - 3 * NODE_BITS))
    above = (node << 136) + (factor * spared << 96) - 2 * root
    return -(-above // (NODE_ONE - spared))


def _check_start(certificate: Certificate) -> None:
    """Assert (a), whose right side is linear between nodes but for c itself."""
    factor, start = certificate.factor, certificate.values[0]
    invariant(factor > 0, "c is above 0")
    invariant(certificate.slopes[0][0] >= 0, "(a): V_0 is not negative")
    invariant(certificate.slopes[0][-1] >= SLOPE_ONE, "(a): V_0 rises by 1 at the end")
    above = all(
        value >= (node - factor) * SLOPE_ONE
        for node, value in zip(certificate.nodes, start, strict=True)
    )
    invariant(above, "(a): V_0 is z - c at least")


def _pays_label(
    nodes: Sequence[int], fewer: Sequence[int], more: Sequence[int], *, unstable: int
) -> bool:
    """Decide (c) at the nodes; beyond the last it follows from slopes of 1 at least."""
    released = WORD_RANGE - unstable
    return all(
        unstable * before + released * node * SLOPE_ONE <= WORD_RANGE * after
        for node, before, after in zip(nodes, fewer, more, strict=True)
    )


def least_first(certificate: Certificate) -> int:
    """Return the smallest first threshold of a stability table that a certificate accepts."""
    released = WORD_RANGE
    for fewer, more in pairwise(certificate.values):
        for node, before, after in zip(certificate.nodes, fewer, more, strict=True):
            gained = node * SLOPE_ONE - before
            if gained > 0:
                released = min(released, WORD_RANGE * (after - before) // gained)
    return WORD_RANGE - released


def pays_pair(certificate: Certificate, one: int, other: int) -> bool:
    """Return whether a certificate accepts two neighbouring thresholds, in both orders."""
    return _pays_order(certificate, one, other) and _pays_order(certificate, other, one)


def _pays_order(certificate: Certificate, hit: int, hit_other: int) -> bool:
    """Decide (d) at the nodes, where p and q are so many words out of ``2**64``.

    Beyond the last node it follows from slopes that do not fall with h.
    """
    none, none_other = WORD_RANGE - hit, WORD_RANGE - hit_other
    after_hit = _places(certificate.nodes, hit, hit_other)
    after_none = _places(certificate.nodes, none, none_other)
    lines = zip(certificate.values, certificate.slopes, strict=True)
    return all(
        hit_other * fewer[i] + fewer_slopes[i] * x + none_other * more[j] + more_slopes[j] * y
        <= WORD_RANGE * value
        for (fewer, fewer_slopes), (more, more_slopes) in pairwise(lines)
        for (i, x), (j, y), value in zip(after_hit, after_none, more, strict=True)
    )


def _places(nodes: Sequence[int], factor: int, divisor: int) -> list[tuple[int, int]]:
    """Return for each node z the cell of ``z factor / divisor``, and how far in that lies.

    The distance from the cell's node is given times ``divisor``.
    """
    found, cell, last = [], 0, len(nodes) - 1
    for node in nodes:
        moved = node * factor
        while cell < last and nodes[cell + 1] * divisor <= moved:
            cell += 1
        found.append((cell, moved - nodes[cell] * divisor))
    return found
