"""Exponential weights of all trees over a region, in logs, by factorisation.

With ``Z(region, 0)`` the sum over labels of ``exp(-epsilon (n - n_c) / 2)``
and ``Z(region, D)`` the sum over tests of ``Z(left, D - 1) Z(right, D - 1)``,
``Z(rows, D)`` is the sum of the weights of all parametrised trees.  Every
test counts in every region, and an empty region counts all its trees: its
leaves weigh the number of labels, like any other leaf with no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.hypotheses.regions import Region

UNIT_ROUNDOFF = 2.0**-53
# exp and log of numpy on float64 stay below one unit in the last place; four
# (eight roundoffs) are assumed, which any libm in use satisfies.
FUNCTION_ROUNDOFFS = 8.0
PAIR_DEPTH = 2


def leaf_log_weights(counts: NDArray[np.signedinteger], epsilon: float) -> NDArray[np.float64]:
    """Return the log weight of each label in leaves with the given label counts.

    Args:
        counts: rows of each label, shape ``(L, ...)``.
        epsilon: parameter of the weights.

    """
    errors: NDArray[np.float64] = (counts.sum(axis=0) - counts).astype(np.float64)
    return np.multiply(errors, -0.5 * epsilon)


def log_sum_exp(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the sum of weights over the first axis; all are finite."""
    largest: NDArray[np.float64] = log_weights.max(axis=0)
    total: NDArray[np.float64] = np.exp(log_weights - largest).sum(axis=0)
    return largest + np.log(total)


def log_partition(region: Region, depth: int, epsilon: float) -> float:
    """Return ``log Z(region, depth)``."""
    if depth == 0:
        return float(_leaf_log_partition(region.counts, epsilon))
    return float(log_sum_exp(node_log_weights(region, depth, epsilon)))


def node_log_weights(region: Region, depth: int, epsilon: float) -> NDArray[np.float64]:
    """Return, for each test at a node, ``log Z(left, depth - 1) + log Z(right, depth - 1)``.

    Args:
        region: the rows that reach the node.
        depth: levels of tests left, at least 1.
        epsilon: parameter of the weights.

    Returns:
        Shape ``(t,)``.

    """
    if depth == 1:
        return _single_log_weights(region, epsilon)
    if depth == PAIR_DEPTH:
        return _pair_log_weights(region.pair_counts(), region.counts, epsilon)
    if depth == PAIR_DEPTH + 1:
        return _triple_log_weights(region, epsilon)
    return np.array(
        [
            log_partition(region.restricted(test, 0), depth - 1, epsilon)
            + log_partition(region.restricted(test, 1), depth - 1, epsilon)
            for test in range(region.test_count)
        ]
    )


def draw_log_error(
    *,
    row_count: int,
    epsilon: float,
    depth: int,
    test_count: int,
    class_count: int,
    log_size: float,
) -> float:
    """Bound eta for one whole draw of a tree, in the double arithmetic above.

    Let ``u = 2**-53``.  Every intermediate log lies between
    ``-epsilon row_count / 2`` and ``log_size``, so each of its roundings is at
    most ``u B`` with ``B = epsilon row_count / 2 + log_size + 1``.  Counts are
    exact and ``epsilon / 2`` is too.

    * A label's log weight: one product, ``u B``.
    * The log of a sum of N weights is 1-Lipschitz in its arguments and adds
      ``u B`` for the differences, 8 u for exp, (N - 1) u for the sum,
      ``8 u ln N`` for log and ``u B`` for the last addition: together below
      ``u (2 B + 8 + 9 N)``; an underflow loses less than ``2**-1022``.
    * ``e_0 = u (3 B + 8 + 9 L)``;
      ``e_d = (2 e_(d-1) + u B) + u (2 B + 8 + 9 t)``.
    * A draw at a node with d levels left uses log weights within
      ``2 e_(d-1) + u B`` and loses ``u (B + 8)`` where it subtracts the
      largest and takes exp; a leaf's label loses ``u B + u (B + 8)``.
    * There are ``2**(D - d)`` such nodes and ``2**D`` leaves on a drawn tree;
      its probability is the product of theirs, so the errors add.

    The sum is doubled, which covers the second-order terms and the rounding
    of the bound itself.

    Returns:
        eta, in nats.

    """
    unit = UNIT_ROUNDOFF
    largest = 0.5 * epsilon * row_count + log_size + 1.0
    table_error = unit * (3 * largest + FUNCTION_ROUNDOFFS + 9 * class_count)
    choice_error = unit * (largest + FUNCTION_ROUNDOFFS)
    total = (1 << depth) * (unit * largest + choice_error)
    for levels in range(1, depth + 1):
        weight_error = 2 * table_error + unit * largest
        total += (1 << (depth - levels)) * (weight_error + choice_error)
        table_error = weight_error + unit * (2 * largest + FUNCTION_ROUNDOFFS + 9 * test_count)
    return 2 * total


def _leaf_log_partition(counts: NDArray[np.signedinteger], epsilon: float) -> NDArray[np.float64]:
    return log_sum_exp(leaf_log_weights(counts, epsilon))


def _single_log_weights(region: Region, epsilon: float) -> NDArray[np.float64]:
    inside = region.single_counts()
    outside = region.counts[:, np.newaxis] - inside
    return _leaf_log_partition(inside, epsilon) + _leaf_log_partition(outside, epsilon)


def _triple_log_weights(region: Region, epsilon: float) -> NDArray[np.float64]:
    """Return the log weights of a node with three levels left, from triple counts.

    The side where a test is false holds what is left of the region's counts.
    """
    triples = region.triple_counts()
    pairs, totals = region.pair_counts(), region.counts
    log_weights = np.empty(region.test_count)
    for test in range(region.test_count):
        both, counts = triples[:, test], pairs[:, test, test]
        inside = log_sum_exp(_pair_log_weights(both, counts, epsilon))
        outside = log_sum_exp(_pair_log_weights(pairs - both, totals - counts, epsilon))
        log_weights[test] = inside + outside
    return log_weights


def _pair_log_weights(
    both: NDArray[np.signedinteger], totals: NDArray[np.int64], epsilon: float
) -> NDArray[np.float64]:
    """Return the log weights of a node with two levels left, from pair counts.

    ``both[l, c, b]`` holds the rows where b and c are true; ``only[l, c, b]``
    those where b is true and c is false.  The first axis after the label is
    the child's test c, over which the partitions are summed.

    Args:
        both: rows of each label that satisfy two tests, shape ``(L, t, t)``.
        totals: rows of each label, shape ``(L,)``.
        epsilon: parameter of the weights.

    """
    single = np.diagonal(both, axis1=1, axis2=2)
    only = single[:, np.newaxis, :] - both
    neither = totals[:, np.newaxis, np.newaxis] - single[:, :, np.newaxis] - only
    mixed = _leaf_log_partition(only, epsilon)
    inside = log_sum_exp(_leaf_log_partition(both, epsilon) + mixed)
    outside = log_sum_exp(mixed.T + _leaf_log_partition(neither, epsilon))
    return inside + outside
