"""Labellings of points in space by halfspaces, found from the planes through three points.

A plane through at least three points, together with a labelling of the points on it by a halfplane,
is called a flag. Every halfspace labelling of points that span the space comes from at least one
flag, and in general from eight. The points are labelled by every flag, and equal labellings are
counted once. A flag and its reverse give opposite labels, so only the one that gives the first
point label 0 is kept until the end. The work depends on the points only.

A halfspace is stored as a sequence of *levels*, which are integer vectors ``(w, b)``. A point u has
label 1 if the first of the values ``w . u - b`` that is not zero is positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Labels held at once, one byte each.
LABELS_PER_BLOCK: Final = 1 << 23
WORD_BYTES: Final = 8
NO_POINT: Final = -1
# For a dropped coordinate, the two that are kept; any with a weight may be dropped.
KEPT_AXES: Final = np.array([[1, 2], [0, 2], [0, 1]], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class _Flags:
    """Flags as arrays of one length, R.

    Attributes:
        planes: indices of planes.
        first: the point on the plane, labelled 1, that starts the directed line;
            the label of all points on the plane where there is no second.
        second: the point, labelled 0, that ends it, or :data:`NO_POINT`.
        words: packed labels of all points, shape ``(R, words)``.
        is_reversed: whether the labels are those of the flag's complement.

    """

    planes: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    words: NDArray[np.uint64]
    is_reversed: NDArray[np.bool_]

    def take(self, indices: NDArray[np.intp]) -> _Flags:
        """Return the flags at some indices."""
        return _Flags(
            self.planes[indices],
            self.first[indices],
            self.second[indices],
            self.words[indices],
            self.is_reversed[indices],
        )


def space_levels(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfspace for every labelling of points in space, except the constant ones.

    Args:
        points: distinct integer points that span the space, shape ``(points, 3)``.

    Returns:
        The levels ``(w, b)`` of each halfspace, shape ``(halfspaces, 3, 4)``; each halfspace is
        followed by its complement.

    """
    planes = planes_through(points)
    flags = _distinct(list(_flags(points, planes)))
    half = _levels(points, planes, flags)
    return np.stack([half, -half], axis=1).reshape(-1, *half.shape[1:])


def planes_through(points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distinct planes through three points that are not on a line.

    Args:
        points: distinct integer points, shape ``(points, 3)``.

    Returns:
        The integers ``(w_1, w_2, w_3, b)`` of each plane ``w . u = b``, without a common factor;
        the first weight that is not zero is positive.

    """
    found: list[NDArray[np.int64]] = []
    for index, start in enumerate(points[:-2]):
        steps = points[index + 1 :] - start
        one, other = (steps[side] for side in np.triu_indices(len(steps), 1))
        normals = _cross(one, other)
        normals = normals[normals.any(axis=1)]
        offsets = (normals * start).sum(axis=1, keepdims=True)
        found.append(_sorted_rows(_reduced(np.hstack([normals, offsets]))))
    return _sorted_rows(np.concatenate(found))


def _flags(points: NDArray[np.int64], planes: NDArray[np.int64]) -> Iterator[_Flags]:
    """Yield the flags of all planes, in blocks of planes that hold equally many points."""
    counts = np.empty(len(planes), dtype=np.intp)
    for block in _blocks(np.arange(len(planes)), len(points)):
        counts[block] = (_plane_values(planes[block], points) == 0).sum(axis=1)
    for count in np.unique(counts):
        # As many labels at once as all pairs on these planes may give.
        width = len(points) * int(count) ** 2
        for block in _blocks(np.flatnonzero(counts == count), width):
            yield _plane_flags(points, planes, block, on_count=int(count))


def _plane_flags(
    points: NDArray[np.int64], planes: NDArray[np.int64], block: NDArray[np.intp], *, on_count: int
) -> _Flags:
    """Return the flags of planes that each hold ``on_count`` points."""
    values = _plane_values(planes[block], points)
    members = np.nonzero(values == 0)[1].reshape(len(block), on_count)
    seen = _seen_within(points, planes[block], members)
    place, first, second = _flag_pairs(seen)
    has_pair = second != NO_POINT
    inner = np.broadcast_to(first[:, np.newaxis], (len(place), on_count)) == 1
    inner[has_pair] = _pair_labels(seen[place[has_pair]], first[has_pair], second[has_pair])
    labels = values[place] > 0
    labels[np.arange(len(place))[:, np.newaxis], members[place]] = inner
    is_reversed = labels[:, 0].copy()
    labels ^= is_reversed[:, np.newaxis]
    return _Flags(
        planes=block[place],
        first=np.where(has_pair, members[place, first], first),
        second=np.where(has_pair, members[place, second], second),
        words=_packed(labels),
        is_reversed=is_reversed,
    )


def _seen_within(
    points: NDArray[np.int64], planes: NDArray[np.int64], members: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Return points on planes in two coordinates that tell them apart, ``(planes, s, 2)``."""
    return points[members[:, :, np.newaxis], _kept_axes(planes)[:, np.newaxis, :]]


def _kept_axes(planes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return all coordinates but the first that has a weight, shape ``(planes, 2)``."""
    kept: NDArray[np.intp] = KEPT_AXES[(planes[:, :3] != 0).argmax(axis=1)]
    return kept


def _flag_pairs(
    seen: NDArray[np.int64],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the dichotomies on each plane: pairs that see each other, and the constants.

    Args:
        seen: points on planes in two coordinates, shape ``(planes, s, 2)``.

    Returns:
        Place of the plane, of the first and of the second point; for a
        constant its label and :data:`NO_POINT`.

    """
    count = seen.shape[1]
    visible = np.zeros((len(seen), count, count), dtype=np.bool_)
    for first, second in combinations(range(count), 2):
        visible[:, first, second] = visible[:, second, first] = _sees(seen, first, second)
    place, starts, ends = np.nonzero(visible)
    every = np.tile(np.arange(len(seen)), 2)
    labels = np.repeat(np.arange(2), len(seen))
    return (
        np.concatenate([every, place]),
        np.concatenate([labels, starts]),
        np.concatenate([np.full_like(every, NO_POINT), ends]),
    )


def _sees(seen: NDArray[np.int64], first: int, second: int) -> NDArray[np.bool_]:
    """Tell on which planes no point lies between two points."""
    step = seen[:, [second]] - seen[:, [first]]
    offset = seen - seen[:, [first]]
    on_line = step[..., 0] * offset[..., 1] == step[..., 1] * offset[..., 0]
    along = (step * offset).sum(axis=2)
    between = on_line & (along > 0) & (along < (step * step).sum(axis=2))
    return ~np.asarray(between.any(axis=1))


def _pair_labels(
    seen: NDArray[np.int64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Return the labels of points on planes, shape ``(R, s)``: left, or on it before the middle."""
    rows = np.arange(len(seen))
    start, end = seen[rows, first][:, np.newaxis], seen[rows, second][:, np.newaxis]
    step, offset, rest = end - start, seen - start, end - seen
    left = step[..., 0] * offset[..., 1] - step[..., 1] * offset[..., 0]
    before = (step * offset).sum(axis=2) < (step * rest).sum(axis=2)
    labels: NDArray[np.bool_] = (left > 0) | ((left == 0) & before)
    return labels


def _levels(
    points: NDArray[np.int64], planes: NDArray[np.int64], flags: _Flags
) -> NDArray[np.int64]:
    """Write flags as levels, negated where their complement is meant, shape ``(R, 3, 4)``."""
    levels = np.zeros((len(flags.planes), 3, 4), dtype=np.int64)
    levels[:, 0] = planes[flags.planes]
    is_constant = flags.second == NO_POINT
    levels[is_constant, 1, 3] = 1 - 2 * flags.first[is_constant]
    paired = np.flatnonzero(~is_constant)
    kept = _kept_axes(planes[flags.planes[paired]])
    start = np.take_along_axis(points[flags.first[paired]], kept, axis=1)
    end = np.take_along_axis(points[flags.second[paired]], kept, axis=1)
    inner = pair_levels(start, end)
    for level in (1, 2):
        for axis in (0, 1):
            levels[paired, level, kept[:, axis]] = inner[:, level - 1, axis]
        levels[paired, level, 3] = inner[:, level - 1, 2]
    levels[flags.is_reversed] *= -1
    return levels


def pair_levels(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one halfplane per pair of points, which gives label 1 on the left of the pair's line.

    On the line itself, the half that begins with the first point of the pair has label 1.

    Args:
        first: the first point of each pair, where the directed line starts, with label 1, shape
            ``(pairs, 2)``.
        second: the second point of each pair, to which the line leads, with label 0, shape
            ``(pairs, 2)``.

    Returns:
        The levels ``(w, b)`` of each halfplane, shape ``(pairs, 2, 3)``.

    """
    step = second - first
    levels = np.empty((len(first), 2, 3), dtype=np.int64)
    levels[:, 0, 0] = -step[:, 1]
    levels[:, 0, 1] = step[:, 0]
    levels[:, 0, 2] = step[:, 0] * first[:, 1] - step[:, 1] * first[:, 0]
    levels[:, 1, :2] = -2 * step
    levels[:, 1, 2] = -((first + second) * step).sum(axis=1)
    return levels


def _distinct(blocks: list[_Flags]) -> _Flags:
    """Return the first flag of every dichotomy but the constant, in the flags' order."""
    flags = _Flags(
        planes=np.concatenate([block.planes for block in blocks]),
        first=np.concatenate([block.first for block in blocks]),
        second=np.concatenate([block.second for block in blocks]),
        words=np.concatenate([block.words for block in blocks]),
        is_reversed=np.concatenate([block.is_reversed for block in blocks]),
    )
    order = np.lexsort(tuple(flags.words.T))  # stable: of equals, the first flag leads
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = _differs(flags.words[order])
    kept = np.sort(order[is_new])
    return flags.take(kept[flags.words[kept].any(axis=1)])


def _differs(ordered: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Tell which rows after the first differ from the one before."""
    return np.asarray((ordered[1:] != ordered[:-1]).any(axis=1))


def _sorted_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return distinct rows in lexicographic order."""
    ordered = rows[np.lexsort(tuple(rows.T[::-1]))]
    is_new = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = _differs(ordered)
    return ordered[is_new]


def _reduced(planes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divide planes by their common factor; make the first weight that is not zero positive."""
    factor = np.gcd.reduce(planes, axis=1)
    leading = planes[np.arange(len(planes)), (planes[:, :3] != 0).argmax(axis=1)]
    reduced: NDArray[np.int64] = planes // (factor * np.sign(leading))[:, np.newaxis]
    return reduced


def _plane_values(planes: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``w . u - b`` of every plane at every point, shape ``(planes, m)``."""
    values = -planes[:, 3:] + planes[:, :1] * points[:, 0]
    values += planes[:, 1:2] * points[:, 1]
    values += planes[:, 2:3] * points[:, 2]
    return values


def _cross(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return cross products, row by row."""
    pairs = ((1, 2), (2, 0), (0, 1))
    return np.stack(
        [one[:, left] * other[:, right] - one[:, right] * other[:, left] for left, right in pairs],
        axis=1,
    )


def _packed(labels: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack the labels of each row into words, padded with zeros."""
    packed = np.packbits(labels, axis=1)
    padding = -packed.shape[1] % WORD_BYTES
    return np.pad(packed, ((0, 0), (0, padding))).view(np.uint64)


def _blocks(indices: NDArray[np.intp], width: int) -> Iterator[NDArray[np.intp]]:
    """Yield parts of indices that need at most :data:`LABELS_PER_BLOCK` labels, ``width`` each."""
    step = max(1, LABELS_PER_BLOCK // width)
    for start in range(0, len(indices), step):
        yield indices[start : start + step]
