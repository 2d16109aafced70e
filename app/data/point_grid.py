"""The public rule by which public points choose the published classifier's tests.

Everything here is a function of the schema, of ``bins`` and of public points,
and of nothing else: ``docs/algorithms.md`` states it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# A spiked feature may have this times ``bins`` cuts more than another, ...
EXTRA_BINS_MAX: Final = 5
# ... a category held by less than 1 in this times ``bins`` points is rare, ...
RARE_PARTS: Final = 2
# ... and at most 1 in this many points hold a category that is left out.
LEFT_OUT_PARTS: Final = 4


def quantile_cuts(
    public_column: NDArray[np.float64], *, bins: int, extra: int = 0
) -> tuple[float, ...]:
    """Return at most ``bins`` - 1 + ``extra`` cuts at quantiles of public values.

    A value held by over half of the points is set apart first: a cut at it
    and one at the next value above it.  The other cuts are quantiles of the
    other points.  Cuts are values of points, so a test ``x >= cut`` is met by
    some of them; duplicates, and cuts that all points meet, are dropped.

    Args:
        public_column: float64 (m,), NaN where missing.
        bins: two or more.
        extra: cuts in addition, 0 or more.

    Returns:
        Increasing cuts; none where all points hold one value.

    """
    values = np.sort(public_column[~np.isnan(public_column)])
    if not len(values):
        return ()
    apart = _cuts_of_common_value(values)
    others = values[values != apart[0]] if apart else values
    count = bins - 1 + extra
    cuts = {cut for cut in apart[:count] if cut > values[0]}
    cuts.update(_quantiles(others, count=count - len(cuts)))
    return tuple(sorted(cut for cut in cuts if cut > values[0]))


def is_spiked(public_column: NDArray[np.float64]) -> bool:
    """Tell whether over half of the public values are one, and others are not."""
    values = np.sort(public_column[~np.isnan(public_column)])
    return len(values) > 0 and bool(values[0] < values[-1]) and bool(_cuts_of_common_value(values))


def extra_cuts(*, bins: int, spare: int, spiked_count: int) -> int:
    """Return how many cuts more every spiked feature has.

    Args:
        bins: two or more.
        spare: how many tests fewer the features have than without public points.
        spiked_count: how many features are spiked.

    """
    if spiked_count == 0:
        return 0
    return min(EXTRA_BINS_MAX * bins, max(0, spare) // spiked_count)


def frequent_codes(
    public_column: NDArray[np.float64], codes: Sequence[int], *, bins: int
) -> tuple[int, ...]:
    """Return the codes without the rare ones, in their order.

    Rare is what less than one in ``2 bins`` points holds.  The rarest are
    left out first, of equal ones the last, as long as no more than a quarter
    of the points hold one that is left out; the most frequent stays.

    Args:
        public_column: float64 (m,), codes; m is positive.
        codes: what has a test otherwise.
        bins: two or more.

    """
    counts = {code: int((public_column == code).sum()) for code in codes}
    rarest_first = sorted(codes, key=lambda code: (counts[code], -code))
    left_out: set[int] = set()
    held = 0
    for code in rarest_first[:-1]:
        held += counts[code]
        is_rare = RARE_PARTS * bins * counts[code] < len(public_column)
        if not is_rare or LEFT_OUT_PARTS * held > len(public_column):
            break
        left_out.add(code)
    return tuple(code for code in codes if code not in left_out)


def _cuts_of_common_value(values: NDArray[np.float64]) -> list[float]:
    """Return the value held by over half of sorted values and the next one above it."""
    middle = values[len(values) // 2]
    start = int(np.searchsorted(values, middle, side="left"))
    end = int(np.searchsorted(values, middle, side="right"))
    if 2 * (end - start) <= len(values):
        return []
    return [float(middle), *map(float, values[end : end + 1])]


def _quantiles(values: NDArray[np.float64], *, count: int) -> list[float]:
    """Return ``count`` values that part sorted values equally."""
    if not len(values):
        return []
    indices = [len(values) * number // (count + 1) for number in range(1, count + 1)]
    return [float(values[index]) for index in indices]
