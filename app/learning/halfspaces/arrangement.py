r"""Enumeration of every labelling of given integer points that a halfspace can make.

A halfspace is written as *levels*: integer rows ``(w, b)``; a point ``u`` has
label 1 iff the first of the values ``w . u - b`` that is not zero is positive.
A first level may pass through points, which the next levels then part within
it; on finitely many points that is a halfspace a little tilted and shifted.

**What is enumerated.** Tilting and shifting a hyperplane that parts points
until it touches as many as it can leaves it at a *flag*: a hyperplane through
points, and within it a halfspace of the points on it.  So all dichotomies come
from those of fewer dimensions: between neighbours on a line; in a plane from
pairs of points that see each other (:func:`visible_pairs`); in space from the
planes through three points (:mod:`app.learning.halfspaces.plane_labellings`).

**Degenerate points** are counted as they are: repeated points are one, and
points that span less than the space are projected to coordinates in which
their span is seen whole, which changes no dichotomy.

**No overflow.** Coordinates are integers in ``[0, 2**16]``.  In space a
weight is a sum of two products of differences, at most ``2**33``; every value
is a sum of three terms ``w_i (u_i - p_i)``, at most ``3 * 2**49``, and so is
each of ``w . u`` and ``b``: nothing on the way exceeds ``2**52``.  Levels of
fewer dimensions are smaller.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.halfspaces.plane_labellings import pair_levels, space_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

COORDINATE_MAX: Final = 1 << 16
DIMENSION_MAX: Final = 3
CONSTANT_OFFSETS: Final = (1, -1)


def dichotomy_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfspace for every way in which halfspaces can label the given points.

    Args:
        points: lattice points, coordinates in ``[0, 2**16]``, shape
            ``(m, dim)``, ``dim`` one to three; repeated ones count once.

    Returns:
        Levels ``(w, b)``, shape ``(N, dim, dim + 1)``: the constants 0 and 1,
        then the others.  No two predict alike on the points, and every
        dichotomy by a halfspace is there.  The order depends on the set of
        points only.

    """
    dimension = points.shape[1]
    invariant(1 <= dimension <= DIMENSION_MAX, "halfspaces have one to three dimensions")
    inside = (points >= 0) & (points <= COORDINATE_MAX)
    invariant(bool(inside.all()), "lattice coordinates lie in [0, 2**16]")
    constants = np.zeros((2, dimension, dimension + 1), dtype=np.int64)
    constants[:, 0, dimension] = CONSTANT_OFFSETS
    distinct = np.unique(points, axis=0)
    axes = spanning_axes(distinct)
    if not axes:
        return constants if len(distinct) else constants[:1]
    seen = np.ascontiguousarray(distinct[:, list(axes)])
    proper = (line_levels, plane_levels, space_levels)[len(axes) - 1](seen)
    return np.concatenate([constants, _embedded(proper, axes, dimension)])


def spanning_axes(points: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the fewest coordinates by which all points of a set's affine span differ.

    Args:
        points: shape ``(m, dim)``.

    Returns:
        As many coordinates as the span has dimensions, the first that do.

    """
    offsets = points - points[:1]
    dimension = points.shape[1]
    for size in range(dimension, 0, -1):
        for axes in combinations(range(dimension), size):
            if _spans(offsets[:, list(axes)]):
                return axes
    return ()


def line_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the half-lines to both sides of each midpoint between neighbours, ``(N, 1, 2)``."""
    ordered = np.sort(points[:, 0])
    middles = ordered[:-1] + ordered[1:]
    upper = np.stack([np.full_like(middles, 2), middles], axis=1)
    return _with_complements(upper[:, np.newaxis, :])


def plane_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfplane per non-constant labelling of points in a plane, ``(N, 2, 3)``.

    Of the lines that separate two sets, those that touch both and part them
    crosswise are two, one turned either way.  Directed so that the first set
    is on the left, exactly one of the two meets the first set first; on it the
    last point of the first set and the first of the second are neighbours.  So
    dichotomies and ordered pairs of neighbours correspond one to one, whatever
    lies on a line.
    """
    first, second = visible_pairs(points)
    return pair_levels(points[first], points[second])


def visible_pairs(points: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the ordered pairs of distinct points that have no other point between them.

    Seen from a point, the others lie in directions, reduced fractions; in each
    the nearest one is visible.

    Args:
        points: distinct, shape ``(m, 2)``.

    """
    first, second = np.nonzero(~np.eye(len(points), dtype=np.bool_))
    step = points[second] - points[first]
    distance = np.gcd(step[:, 0], step[:, 1])
    across, along = step[:, 0] // distance, step[:, 1] // distance
    order = np.lexsort((distance, along, across, first))
    keys = np.stack([first, across, along], axis=1)[order]
    nearest = np.ones(len(order), dtype=np.bool_)
    nearest[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    kept = np.sort(order[nearest])
    return first[kept], second[kept]


def _with_complements(levels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each halfspace and then the other side of it; no given point is on all levels."""
    both = np.stack([levels, -levels], axis=1)
    return both.reshape(-1, *levels.shape[1:])


def _spans(offsets: NDArray[np.int64]) -> bool:
    """Tell whether differences to one point span all their coordinates."""
    offsets = offsets[offsets.any(axis=1)]
    if not len(offsets) or offsets.shape[1] == 1:
        return bool(len(offsets))
    rest = offsets[_minors(offsets[0], offsets).any(axis=1)]
    if not len(rest) or offsets.shape[1] == len(("across", "along")):
        return bool(len(rest))
    normal = _minors(offsets[0], rest[:1])[0]
    return bool((offsets * normal).sum(axis=1).any())


def _minors(one: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the 2 x 2 minors of one vector and others: in space, their cross product."""
    pairs = ((1, 2), (2, 0), (0, 1)) if others.shape[1] == DIMENSION_MAX else ((0, 1),)
    return np.stack(
        [one[left] * others[:, right] - one[right] * others[:, left] for left, right in pairs],
        axis=1,
    )


def _embedded(
    levels: NDArray[np.int64], axes: tuple[int, ...], dimension: int
) -> NDArray[np.int64]:
    """Write levels over some coordinates as levels over all."""
    size = len(axes)
    whole = np.zeros((len(levels), dimension, dimension + 1), dtype=np.int64)
    whole[:, :size, list(axes)] = levels[:, :, :size]
    whole[:, :size, dimension] = levels[:, :, size]
    return whole
