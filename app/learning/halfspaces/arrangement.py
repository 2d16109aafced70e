"""Enumeration of every labelling of given integer points that a halfspace can make.

A halfspace is stored as a sequence of *levels*, which are integer vectors ``(w, b)``. A point ``u``
has label 1 if the first of the values ``w . u - b`` that is not zero is positive. The hyperplane of
the first level may contain points, and the further levels decide their labels. On finitely many
points, this is the same as a halfspace whose hyperplane is tilted and shifted a little.

**The enumeration.** Take a hyperplane that divides the points, and tilt and shift it until it
contains as many of the points as possible. The result is a *flag*: a hyperplane through points, and
a halfspace within this hyperplane that labels the points on it. Therefore all labellings follow
from the labellings in fewer dimensions: on a line from neighbouring points; in a plane from the
pairs of points without another point between them (:func:`visible_pairs`); in space from the planes
through three points (:mod:`app.learning.halfspaces.space_labellings`).

**Degenerate points.** Repeated points count as one. If the points lie in a line or a plane, they
are projected to as many coordinates as this line or plane has dimensions. This changes no
labelling.

**No overflow.** Coordinates are integers in ``[0, 2**16]``. In space, a coordinate of w is a sum of
two products of differences, at most ``2**33``. Every value ``w . (u - p)`` of two points u and p is
a sum of three terms ``w_i (u_i - p_i)``, at most ``3 * 2**49``, and so are ``w . u`` and ``b``. No
intermediate result exceeds ``2**52``. Levels in fewer dimensions are smaller.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant
from app.learning.halfspaces.space_labellings import pair_levels, space_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

COORDINATE_MAX: Final = 1 << 16
DIMENSION_MAX: Final = 3
CONSTANT_OFFSETS: Final = (1, -1)


def dichotomy_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfspace for every way in which halfspaces can label the given points.

    Args:
        points: integer coordinates in ``[0, 2**16]``, shape ``(points, dimensions)``, with one to
            three dimensions; repeated points count once.

    Returns:
        The levels ``(w, b)`` of each halfspace, shape ``(halfspaces, dimensions, dimensions + 1)``.
        The first two halfspaces give all points label 0 and label 1. No two halfspaces give the
        points the same labels, and every labelling by a halfspace is included. The order depends on
        the set of points only.

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
    """Return the fewest coordinates that keep the dimension of the points' affine span.

    Args:
        points: integer coordinates, shape ``(points, dimensions)``.

    Returns:
        Indices of coordinates, as many as the dimension of the affine span of the points. Of
        several possible choices it is the first.

    """
    offsets = points - points[:1]
    dimension = points.shape[1]
    for size in range(dimension, 0, -1):
        for axes in combinations(range(dimension), size):
            if _spans(offsets[:, list(axes)]):
                return axes
    return ()


def line_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the two half-lines at each midpoint between neighbouring points on a line.

    Returns:
        The level ``(w, b)`` of each half-line, shape ``(half-lines, 1, 2)``.

    """
    ordered = np.sort(points[:, 0])
    middles = ordered[:-1] + ordered[1:]
    upper = np.stack([np.full_like(middles, 2), middles], axis=1)
    return _with_complements(upper[:, np.newaxis, :])


def plane_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfplane per non-constant labelling of points in a plane.

    Every labelling corresponds to exactly one ordered pair of points without another point between
    them.

    Returns:
        The levels ``(w, b)`` of each halfplane, shape ``(halfplanes, 2, 3)``.

    """
    # Take the two sets of points with label 1 and with label 0.  Exactly two lines touch both
    # sets and have one set on each side.  Direct both lines so that the set with label 1 is on
    # the left.  Then exactly one of them meets the set with label 1 before the other set.  On
    # this line, the last point with label 1 and the first point with label 0 are the pair.
    first, second = visible_pairs(points)
    return pair_levels(points[first], points[second])


def visible_pairs(points: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of all ordered pairs of points that have no other point between them.

    For each point, the directions to all other points are computed as reduced fractions, and in
    each direction only the nearest point is kept.

    Args:
        points: distinct integer points, shape ``(points, 2)``.

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
