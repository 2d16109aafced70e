"""The public binary tests of a schema: for ``[hypotheses]`` and for ``[classifier]``.

Nothing here sees a private row.  The published classifier's cuts come from
public points, the queries asked so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.point_grid import extra_cuts, frequent_codes, is_spiked, quantile_cuts
from app.data.schema import NumericFeature
from app.learning.encoding.binary_tests import BinaryTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.data.schema import CategoricalFeature, Schema

    Lists = Mapping[str, Sequence[float | str]]


def public_tests(
    schema: Schema, *, bins: int, listed: Lists | None = None
) -> tuple[BinaryTest, ...]:
    """Return the tests of ``[hypotheses]``, feature by feature in schema order.

    A numeric feature has its list's cuts, else its thresholds, else ``bins``
    - 1 cuts equally spaced between its bounds.  A categorical one has its
    list's categories, else one test a category, one for other and, where
    ``missing`` is not empty, one for missing; of two tests that are
    complements (one category and other) the second is dropped.

    Args:
        schema: the public schema.
        bins: number of equal intervals, two or more.
        listed: lists by feature name, which win.

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
    """Return the tests of ``[classifier]``, feature by feature in schema order.

    As :func:`public_tests`, save that a numeric feature without a list has
    its cuts at quantiles of the public points
    (:func:`app.data.point_grid.quantile_cuts`), and equally spaced ones where
    no two public points differ in it; a public grid of the feature counts
    only if it is among the lists.  For trees, whose size depends on the
    number of tests alone, rare categories have none, and spiked features
    share what is spared: there are never more tests than without points.

    Args:
        schema: the public schema.
        bins: ``bins`` - 1 cuts a numeric feature, at most, but for spiked ones.
        listed: lists by feature name, which win.
        public_values: float64 (m, d), encoded public points; m may be 0.
        for_trees: whether the class takes every test.

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


def equal_cuts(*, lower: float, upper: float, bins: int) -> tuple[float, ...]:
    """Return the ``bins`` - 1 distinct cuts that part [lower, upper] equally."""
    cuts = (lower + (upper - lower) * index / bins for index in range(1, bins))
    return tuple(dict.fromkeys(cuts))


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
        return tuple(dict.fromkeys(float(value) for value in values))
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
