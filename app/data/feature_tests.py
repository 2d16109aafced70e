"""The public yes-or-no tests of features (by threshold or category) that hypotheses use.

The tests depend on the public schema, the setting ``bins`` and public points (feature vectors)
only, never on private rows. The setting ``bins`` is the number of intervals into which the cuts
(thresholds) of a numeric feature divide its values. A listed feature is one for which the
configuration lists cuts or categories. The published classifier's cuts come from public points: the
queries so far, or the rows of a public file. ``docs/algorithms.md`` has the rule by which public
points determine the classifier's tests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.schema import BooleanFeature, NumericFeature
from app.learning.encoding.binary_tests import BinaryTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.schema import CategoricalFeature, Schema

    Lists = Mapping[str, Sequence[float | str]]

# A spiked feature may have this times ``bins`` cuts more than another, ...
EXTRA_BINS_MAX: Final = 5
# ... a category held by less than 1 in this times ``bins`` points is rare, ...
RARE_PARTS: Final = 2
# ... and at most 1 in this many points hold a category that is left out.
LEFT_OUT_PARTS: Final = 4


def quantile_cuts(
    public_column: NDArray[np.float64], *, bins: int, extra: int = 0
) -> tuple[float, ...]:
    """Return at most ``bins - 1 + extra`` cuts of a numeric feature, at quantiles of public values.

    If more than half of the points have the same value, there is a cut at this value and one at the
    next value above it. The other cuts are quantiles of the other points. Every cut is the value of
    a point, so the test ``x >= cut`` is true on some points. Duplicate cuts, and cuts below which
    there is no point, are dropped.

    Args:
        public_column: the feature's values, float64, shape ``(points,)``, NaN for missing values.
        bins: two or more.
        extra: the number of additional cuts, 0 or more.

    Returns:
        Increasing cuts; none if there are no points, or if all points have the same value.

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


def cuts_of_shared_values(public_column: NDArray[np.float64], *, bins: int) -> tuple[float, ...]:
    """Return cuts of a numeric feature at values that many public points (feature vectors) share.

    If the points have at most ``bins`` different values, there is a cut at each of them but the
    smallest. Otherwise each value that more than a fraction ``1 / bins`` of the points share gets a
    cut, and so does the next value above it, until there are ``bins - 1`` cuts. The most frequent
    values get their cuts first. If fewer cuts are made in this way, the rest of the ``bins - 1``
    cuts are quantiles of the other points. The smallest value never gets a cut.

    Args:
        public_column: the feature's values, float64, shape ``(points,)``, NaN for missing values.
        bins: two or more.

    Returns:
        Increasing cuts. There are none in two cases: no value is shared by more than a fraction
        ``1 / bins`` of the points, or one value is shared by more than half of the points.
        :func:`quantile_cuts` covers the second case.

    """
    points = np.sort(public_column[~np.isnan(public_column)])
    values, counts = np.unique(points, return_counts=True)
    if len(values) <= bins:
        return tuple(map(float, values[1:]))
    is_shared = bins * counts > len(points)
    if not is_shared.any() or is_spiked(points):
        return ()
    apart: set[float] = set()
    for place in sorted(np.flatnonzero(is_shared), key=lambda each: -counts[each]):
        around = (each for each in (place, place + 1) if 0 < each < len(values))
        apart.update(float(values[each]) for each in around if len(apart) < bins - 1)
    others = points[~np.isin(points, values[is_shared])]
    apart.update(_quantiles(others, count=bins - 1 - len(apart)))
    return tuple(sorted(cut for cut in apart if cut > values[0]))


def is_spiked(public_column: NDArray[np.float64]) -> bool:
    """Return whether more than half of the public values are equal, but not all.

    A feature with such values is called spiked.
    """
    values = np.sort(public_column[~np.isnan(public_column)])
    return len(values) > 0 and bool(values[0] < values[-1]) and bool(_cuts_of_common_value(values))


def extra_cuts(*, bins: int, spare: int, spiked_count: int) -> int:
    """Return the number of additional cuts (thresholds) for each spiked feature.

    A feature is spiked if more than half of the public points (feature vectors), but not all, have
    the same value.

    Args:
        bins: two or more.
        spare: the number of feature tests that were left out, for example those of rare
            categories; at most this number of cuts is added in total.
        spiked_count: the number of spiked features.

    """
    if spiked_count == 0:
        return 0
    return min(EXTRA_BINS_MAX * bins, max(0, spare) // spiked_count)


def frequent_codes(
    public_column: NDArray[np.float64], codes: Sequence[int], *, bins: int
) -> tuple[int, ...]:
    """Return a feature's category codes in order, without the codes of rare categories.

    The code of a category is the number that stands for it in encoded values. A category is rare if
    less than a fraction ``1 / (2 * bins)`` of the public points have it. Rare categories are left
    out one by one, starting with the rarest; of two equally rare ones, the one with the larger code
    is left out first. At most a quarter of the points have a category that is left out. The most
    frequent category is never left out.

    Args:
        public_column: the code of each point's category, float64, shape ``(points,)``, at least
            one point.
        codes: the codes of all categories that may have a feature test.
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


def public_tests(
    schema: Schema, *, bins: int, listed: Lists | None = None
) -> tuple[BinaryTest, ...]:
    """Return the yes-or-no tests that the section ``[hypotheses]`` configures, feature by feature.

    A listed numeric feature has the listed cuts. Any other has its thresholds in the schema or, if
    there are none, ``bins - 1`` equally spaced cuts between its bounds. A listed categorical
    feature has one test for each listed category. Any other has one test for each category, one for
    a text that is none of the categories and, if the schema has texts for missing values, one for a
    missing value. If a feature would have only the first two of these tests, the second is dropped,
    since it is the opposite of the first. A boolean feature has a test for true and, if the schema
    has texts for missing values, one for a missing value.

    Args:
        schema: the public schema.
        bins: the number of equal intervals, two or more.
        listed: lists of cuts or categories by feature name, which take precedence.

    """
    return _tests(schema, bins=bins, listed=listed or {}, public_values=None)


def classifier_tests(
    schema: Schema,
    *,
    bins: int,
    listed: Lists | None = None,
    public_values: NDArray[np.float64],
    for_trees: bool = False,
) -> tuple[BinaryTest, ...]:
    """Return the yes-or-no tests of the published classifier, in the order of the schema.

    They are the tests of :func:`public_tests`, with two exceptions. A numeric feature without a
    list has its cuts at quantiles of the public points (:func:`quantile_cuts`), or equally spaced
    cuts if there are no points or all have the same value; thresholds in the schema are not used.
    For trees, rare categories have no test; in return, at most as many additional cuts are made for
    features of which more than half of the points have the same value. So there are never more
    tests than there would be without public points.

    Args:
        schema: the public schema.
        bins: a numeric feature has at most ``bins - 1`` cuts, apart from additional ones.
        listed: lists of cuts or categories by feature name, which take precedence.
        public_values: feature values of the points, encoded by the public schema, float64, shape
            ``(points, features)``; there may be no points.
        for_trees: whether the tests are for decision trees.

    """
    lists = listed or {}
    tests = _tests(
        schema, bins=bins, listed=lists, public_values=public_values, for_trees=for_trees
    )
    if not for_trees:
        return tests
    spiked_count = sum(
        isinstance(feature, NumericFeature)
        and feature.name not in lists
        and is_spiked(public_values[:, index])
        for index, feature in enumerate(schema.features)
    )
    without_points = _tests(schema, bins=bins, listed=lists, public_values=public_values[:0])
    spare = len(without_points) - len(tests)
    extra = extra_cuts(bins=bins, spare=spare, spiked_count=spiked_count)
    return _tests(
        schema, bins=bins, listed=lists, public_values=public_values, for_trees=True, extra=extra
    )


def with_shared_values(
    schema: Schema, *, bins: int, listed: Lists, public_values: NDArray[np.float64]
) -> dict[str, Sequence[float | str]]:
    """Return lists of cuts or categories, with new ones for values that many public points share.

    Each numeric feature that has no list gets the cuts of :func:`cuts_of_shared_values`, if there
    are any.

    Args:
        schema: the public schema.
        bins: two or more, as for :func:`cuts_of_shared_values`.
        listed: lists of cuts or categories by feature name, which are returned unchanged.
        public_values: feature values of the points, encoded by the public schema, float64, shape
            ``(points, features)``; there may be no points.

    """
    found = {
        feature.name: cuts_of_shared_values(public_values[:, index], bins=bins)
        for index, feature in enumerate(schema.features)
        if isinstance(feature, NumericFeature)
    }
    return {**{name: cuts for name, cuts in found.items() if cuts}, **listed}


def equal_cuts(*, lower: float, upper: float, bins: int) -> tuple[float, ...]:
    """Return the ``bins - 1`` distinct cuts that divide the interval [lower, upper] equally."""
    whole = upper - lower
    # A multiple of a very wide range overflows, and a fraction of it does not.
    parts = (whole * index / bins for index in range(1, bins))
    if not math.isfinite(whole * (bins - 1)):
        parts = (whole / bins * index for index in range(1, bins))
    return tuple(dict.fromkeys(lower + part for part in parts))


def _tests(
    schema: Schema,
    *,
    bins: int,
    listed: Lists,
    public_values: NDArray[np.float64] | None,
    for_trees: bool = False,
    extra: int = 0,
) -> tuple[BinaryTest, ...]:
    """Return all tests, feature by feature."""
    tests: list[BinaryTest] = []
    for index, feature in enumerate(schema.features):
        column = None if public_values is None else public_values[:, index]
        values = listed.get(feature.name)
        if isinstance(feature, NumericFeature):
            cuts = _cuts(feature, values, bins=bins, public_column=column, extra=extra)
            tests.extend(_numeric_tests(index, feature, cuts, column))
        else:
            codes = _codes(feature, values, schema)
            if for_trees and values is None and column is not None and len(column):
                codes = frequent_codes(column, codes, bins=bins)
            tests.extend(_categorical_tests(index, feature, codes, column))
    return tuple(tests)


def _cuts(
    feature: NumericFeature,
    values: Sequence[float | str] | None,
    *,
    bins: int,
    public_column: NDArray[np.float64] | None,
    extra: int,
) -> tuple[float, ...]:
    """Return the cuts of a feature: its list, its grid, quantiles or equal ones."""
    if values is not None:
        return tuple(dict.fromkeys(feature.cut(value) for value in values))
    equal = equal_cuts(lower=feature.lower, upper=feature.upper, bins=bins)
    if public_column is None:
        return equal if feature.thresholds is None else feature.thresholds
    extra = extra if is_spiked(public_column) else 0
    return quantile_cuts(public_column, bins=bins, extra=extra) or equal


def _codes(
    feature: CategoricalFeature, values: Sequence[float | str] | None, schema: Schema
) -> tuple[int, ...]:
    """Return the codes that have a test; a listed token of ``missing`` is missing's."""
    if values is not None:
        known = {category: code for code, category in enumerate(feature.categories)}
        return tuple(dict.fromkeys(known.get(str(value), feature.missing_code) for value in values))
    if isinstance(feature, BooleanFeature):
        # It is true, or it is not; no value is other.
        is_true = len(feature.categories) - 1
        return (is_true, feature.missing_code) if schema.missing else (is_true,)
    codes = range(feature.missing_code + 1 if schema.missing else feature.missing_code)
    is_pair_of_complements = len(codes) == len(("category", "other"))
    return tuple(codes[:1] if is_pair_of_complements else codes)


def _numeric_tests(
    index: int,
    feature: NumericFeature,
    cuts: tuple[float, ...],
    public_column: NDArray[np.float64] | None,
) -> list[BinaryTest]:
    """Return one test a cut."""
    shares = dict(zip(feature.thresholds or (), feature.threshold_shares or (), strict=False))
    spread = feature.upper - feature.lower
    return [
        BinaryTest(
            feature_index=index,
            cut=cut,
            category_code=None,
            public_frequency=shares.get(cut, (feature.upper - cut) / spread)
            if public_column is None or not len(public_column)
            else float((public_column >= cut).mean()),
        )
        for cut in cuts
    ]


def _categorical_tests(
    index: int,
    feature: CategoricalFeature,
    codes: tuple[int, ...],
    public_column: NDArray[np.float64] | None,
) -> list[BinaryTest]:
    """Return one test a code."""
    return [
        BinaryTest(
            feature_index=index,
            cut=None,
            category_code=code,
            public_frequency=_category_frequency(feature, code)
            if public_column is None or not len(public_column)
            else float((public_column == code).mean()),
        )
        for code in codes
    ]


def _category_frequency(feature: CategoricalFeature, code: int) -> float:
    """Return a code's public share: as given; what is left, for other; else equal shares."""
    shares = feature.category_shares
    if shares is not None and code < len(shares):
        return shares[code]
    if shares is not None and code == feature.other_code:
        return max(0.0, 1.0 - sum(shares))
    return 1.0 / (len(feature.categories) + 1)
