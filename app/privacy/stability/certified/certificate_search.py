"""A floating-point search for a stability table's certificate, which is checked later.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold. The certificate proves that the table is private. It consists of a
number c of at most ``e^epsilon`` and, for each number of unstable answers that are left before the
cutoff, of a function of the likelihood ratio that is linear between given points, the nodes
(``certificate.py``).

The random draws of a relabelling rule, before the first answer, and of a classifier, after the last
one, may share the privacy budget of the answers. The range of a draw is the length of the interval
that contains the logarithms of its likelihood ratios.

At large distances the probabilities of an unstable answer at neighbouring distances have a constant
ratio. With a smaller ratio unstable answers are rarer but delta is larger, so bisection finds the
smallest ratio that the budget allows. The proof file describes how the functions are found:
``app/privacy/stability/certified/certified_table_proof.md``, *The search*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from app.privacy.stability.certified.certificate import (
    NODE_BITS,
    NODE_ONE,
    SLOPE_BITS,
    SLOPE_ONE,
    Certificate,
    start_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NODES_TO_FACTOR: Final = 500
NODES_QUICKLY: Final = 120
"""Nodes between 1 and c, for a table that serves and for a quick look."""
STEP_GROWTH: Final = 1.02
LOG_BELOW_ONE: Final = 0.05
LOG_ABOVE_FACTOR: Final = 0.7
"""How far nodes go below 1 and above c, in parts of ln c."""
RATIO_STEPS: Final = 45
DELTA_KEPT: Final = 1 - 1e-9
LABEL_PART: Final = 0.05
"""Part of delta over T for differing labels, by a line in each V; below the first node they
cost less than V has."""
VERTEX_COUNT: Final = 120
VERTICES_QUICKLY: Final = 40
LAST_VERTEX: Final = 0.01
"""Probability of a hit below which the ratio of neighbours is held."""
ROUNDING: Final = 2e-15
STEP_STEPS_MAX: Final = 60
STEP_TOLERANCE: Final = 1e-5


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes z, the same times ``2**40``, and which of them are 1 and c."""

    z: Floats
    placed: tuple[int, ...]
    one: int
    factor: int


@dataclass(frozen=True, slots=True)
class Searched:
    """A certificate that the search found, before it is checked.

    Attributes:
        certificate: the certificate, with functions in integers.
        ratio: r, the ratio of neighbouring probabilities in the table at large distances.

    """

    certificate: Certificate
    ratio: float


@dataclass(frozen=True, slots=True)
class Around:
    """Bounds on how far the two random draws move likelihood ratios, in units of ``2**-40``.

    Attributes:
        range_before: an upper bound on ``e^range`` for the range of the draw before the first
            answer; 1 if there is no such draw.
        spared_after: a lower bound on ``e^-range`` for the range of the draw after the last answer;
            1 if there is no such draw.

    """

    range_before: int = NODE_ONE
    spared_after: int = NODE_ONE


NO_DRAWS: Final = Around()


def search_certificate(
    *, factor: int, delta: float, cutoff: int, around: Around = NO_DRAWS, quickly: bool = False
) -> Searched:
    """Return a certificate of a stability table for a budget, which must still be checked.

    Args:
        factor: the number c, at most ``e**epsilon``, times ``2**40``.
        delta: the largest delta that the run of answers may cost.
        cutoff: the cutoff T, the number of unstable answers after which the models stop.
        around: bounds on the effect of the random draws before and after the answers.
        quickly: whether to use fewer nodes, for planning.

    """
    line = LABEL_PART * delta / cutoff
    nodes = _nodes(factor, NODES_QUICKLY if quickly else NODES_TO_FACTOR, around.range_before)
    first = _start(nodes, factor, around.spared_after)
    start = np.ldexp(np.array(_summed(nodes, first), dtype=float), -SLOPE_BITS - NODE_BITS)
    low, high = 0.0, 1.0
    for _ in range(RATIO_STEPS):
        ratio = (low + high) / 2
        values = _functions(nodes, start, ratio, cutoff=cutoff, line=line)
        too_much = _cost(nodes, values[-1], around.range_before) > delta * DELTA_KEPT
        low, high = (ratio, high) if too_much else (low, ratio)
    values = _functions(nodes, start, high, cutoff=cutoff, line=line)
    return Searched(_on_integers(nodes, values, factor, first), high)


def _start(nodes: _Nodes, factor: int, spared: int) -> tuple[int, ...]:
    """Return the slopes of ``V_0``: without a draw after the answers, ``max(0, z - c)`` exactly.

    Else each is the least that reaches f at the next node, and falls behind none before it.
    """
    if spared >= NODE_ONE:
        return tuple(SLOPE_ONE if node >= factor else 0 for node in nodes.placed)
    slopes, slope, value = [], 0, 0
    for node, following in pairwise(nodes.placed):
        wanted = start_value(following, factor, spared) - value
        slope = max(slope, -(-wanted // (following - node)))
        value += slope * (following - node)
        slopes.append(slope)
    return (*slopes, max(slope, SLOPE_ONE))


def _summed(nodes: _Nodes, slopes: tuple[int, ...]) -> tuple[int, ...]:
    """Return a function at the nodes, of its slopes behind them."""
    widths = [following - node for node, following in pairwise(nodes.placed)]
    return tuple(accumulate(map(int.__mul__, slopes, widths), initial=0))


def _cost(nodes: _Nodes, values: Floats, range_before: int) -> float:
    """Return ``V_T(1)``, or the largest mean over a draw before the answers."""
    if range_before <= NODE_ONE:
        return float(values[nodes.one])
    whole = range_before / NODE_ONE
    inside = nodes.z[(nodes.z > 1) & (nodes.z < whole)]
    ends = np.concatenate([[1.0], inside, [whole]])
    lower, upper = ends[:-1] / whole, ends[1:]
    weight = (1 - lower) / (upper - lower)
    above, below = _at(nodes.z, values, upper), _at(nodes.z, values, lower)
    return float((weight * above + (1 - weight) * below).max())


def _nodes(factor: int, count: int, range_before: int) -> _Nodes:
    """Place nodes evenly in ln z from 1 to c, and ever further apart beyond both ends.

    Below 1 they are as close as between as far as a draw before the answers reaches.
    """
    length = math.log(factor / NODE_ONE)
    step = length / count
    reached = math.ceil(math.log(range_before / NODE_ONE) / step)
    below = [step * (index + 1) for index in range(reached)]
    further = _widening(step, LOG_BELOW_ONE * length)
    below += [step * reached + each for each in further]
    between = [step * index for index in range(count)]
    above = _widening(step, LOG_ABOVE_FACTOR * length)
    logs = [-log for log in reversed(below)] + between
    placed = [0, *(round(math.exp(log) * NODE_ONE) for log in logs)]
    placed += [factor, *(round(math.exp(length + log) * NODE_ONE) for log in above)]
    one = len(below) + 1
    return _Nodes(np.array(placed, dtype=float) / NODE_ONE, tuple(placed), one, one + count)


def _widening(step: float, length: float) -> list[float]:
    found, reached = [], 0.0
    while reached < length:
        reached += step
        found.append(reached)
        step *= STEP_GROWTH
    return found


def _functions(
    nodes: _Nodes, start: Floats, ratio: float, *, cutoff: int, line: float
) -> list[Floats]:
    """Return ``V_0, ..., V_T`` at the nodes for one ratio, of ``V_0`` there."""
    functions = [start]
    for _ in range(cutoff):
        functions.append(_following(nodes, functions[-1], ratio))
    return [function + hits * line * nodes.z for hits, function in enumerate(functions)]


def _following(nodes: _Nodes, fewer: Floats, ratio: float) -> Floats:
    """Return ``V_h`` from ``V_(h-1)``: equality of one order below c, of the other above.

    Below c the order with p < q meets the slope behind a node, above c that with p > q the
    slope before it; at c both meet.
    """
    z, middle = nodes.z, nodes.factor
    widths = np.diff(z)
    lower, upper = _at(z, fewer, z * ratio).tolist(), _at(z, fewer, z / ratio).tolist()
    up = (widths / (z[:-1] * (1 - ratio) + (z[:-1] == 0))).tolist()
    down = (z[1:] * (1 / ratio - 1) / widths).tolist()
    weight, before = down[middle - 1], up[middle - 1]
    meeting = upper[middle] + weight * before * lower[middle - 1] / (1 + before)
    found = [0.0] * len(z)
    found[middle] = meeting / (1 + weight - weight / (1 + before))
    for index in range(middle - 1, 0, -1):
        found[index] = (found[index + 1] + up[index] * lower[index]) / (1 + up[index])
    for index in range(middle + 1, len(z)):
        share = down[index - 1]
        found[index] = (upper[index] + share * found[index - 1]) / (1 + share)
    return np.array(found)


def _at(z: Floats, values: Floats, places: Floats) -> Floats:
    """Interpolate, and go on beyond the last node, where (c) asks for a slope of 1 at least."""
    slope = max(1.0, (values[-1] - values[-2]) / (z[-1] - z[-2]))
    beyond = values[-1] + (places - z[-1]) * slope
    return np.where(places > z[-1], beyond, np.interp(places, z, values))


def _on_integers(
    nodes: _Nodes, values: list[Floats], factor: int, first: tuple[int, ...]
) -> Certificate:
    """Round slopes, so that each function is convex and ends as steeply as the one before.

    Those of ``V_0`` are given.
    """
    rows = [first]
    end = max(1.0, math.ldexp(first[-1], -SLOPE_BITS))
    for function in values[1:]:
        inside = np.maximum.accumulate(np.diff(function) / np.diff(nodes.z))
        end = max(end, float(inside[-1]))
        rows.append(tuple(int(math.ldexp(slope, SLOPE_BITS)) for slope in [*inside.tolist(), end]))
    return Certificate(factor, nodes.placed, tuple(rows))


@dataclass(frozen=True, slots=True)
class Chance:
    """The probabilities of an unstable and a stable answer, each with full precision.

    They are stored separately, so that the smaller one loses no digits.
    """

    hit: float
    none: float

    @classmethod
    def at(cls, place: float) -> Chance:
        """Return the probabilities p and 1 - p for which ``ln(-ln(1 - p))`` equals ``place``."""
        return cls(-math.expm1(-math.exp(place)), math.exp(-math.exp(place)))


def search_pairs(
    searched: Searched, label_loss: float, *, quickly: bool = False
) -> list[tuple[Chance, Chance]]:
    """Return the corners of a polygon; a certificate accepts every pair of thresholds in it.

    The pairs are thresholds that a stability table may have at neighbouring distances.

    Args:
        searched: the certificate.
        label_loss: the probability of a stable answer at distance 0.
        quickly: whether to compute fewer corners, for planning.

    """
    count = VERTICES_QUICKLY if quickly else VERTEX_COUNT
    first, last = math.log(-math.log(label_loss)), math.log(-math.log1p(-LAST_VERTEX))
    accepts = _acceptance(searched.certificate)
    found, width = [], -math.log(searched.ratio)
    for place in np.linspace(first, last, count).tolist():
        width = _widest(accepts, place, guess=width)
        found.append((Chance.at(place), Chance.at(place - width)))
    return found


def _widest(accepts: Callable[[Chance, Chance], bool], place: float, *, guess: float) -> float:
    """Return the widest step from a place that is accepted, nearly; 0 where none is."""
    chance, width = Chance.at(place), guess
    accepted, rejected = 0.0, math.inf
    for _ in range(STEP_STEPS_MAX):
        if accepts(chance, Chance.at(place - width)):
            accepted = width
        else:
            rejected = width
        if rejected - accepted < STEP_TOLERANCE * rejected:
            break
        width = 1.3 * width if math.isinf(rejected) else (accepted + rejected) / 2
    return accepted


def _acceptance(certificate: Certificate) -> Callable[[Chance, Chance], bool]:
    """Return (d) at all nodes, both orders, in doubles."""
    nodes = np.array(certificate.nodes, dtype=float) / NODE_ONE
    slopes = np.ldexp(np.array(certificate.slopes, dtype=float), -SLOPE_BITS)
    values = np.ldexp(np.array(certificate.values, dtype=float), -SLOPE_BITS - NODE_BITS)

    def after(functions: slice, factor: float, divisor: float) -> Floats:
        places = nodes * (factor / divisor)
        cells = np.searchsorted(nodes, places, side="right") - 1
        moved = places - nodes[cells]
        return np.asarray(divisor * (values[functions, cells] + slopes[functions, cells] * moved))

    def in_order(one: Chance, other: Chance) -> bool:
        left = after(slice(None, -1), one.hit, other.hit) + after(
            slice(1, None), one.none, other.none
        )
        return bool((left <= values[1:] * (1 - ROUNDING * other.hit)).all())

    def accepts(one: Chance, other: Chance) -> bool:
        return in_order(one, other) and in_order(other, one)

    return accepts
