"""Parsing of a public division of the feature space, given as the feature tests of a decision tree.

The tests are listed in preorder: a test, then everything on its false side, then everything on its
true side. An empty text stands for a cell, which is a part of the division. For example,
``["age >= 40", "", "region = north", "", ""]`` has three cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.data.schema import NumericFeature
from app.errors import ConfigurationError
from app.learning.cells.cell_class import CellSplits
from app.learning.encoding.binary_tests import BinaryTest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.schema import Feature, Schema

CELL = ""
AT_LEAST = " >= "
IS = " = "
UNKNOWN_SHARE = 0.5
IN_WORDS = (
    'must be "feature >= number" of a number, "feature >= date" of a date, "feature = category", '
    'or "" for a cell'
)


def read_splits(schema: Schema, written: Sequence[str], *, section: str) -> CellSplits:
    """Return the public cells into which a configured tree of feature tests divides vectors.

    Args:
        schema: the public schema.
        written: the tests in preorder, with an empty text for each cell.
        section: the section of the configuration for error messages, ``hypotheses`` or
            ``classifier``.

    Raises:
        ConfigurationError: an entry is not a test, or the list ends too early or too late; the
            error names the entry.

    """
    tests: list[BinaryTest] = []
    branches: list[list[int]] = []
    cell_count = 0
    open_sides: list[tuple[int, int] | None] = [None]  # None is the root's place
    for index, text in enumerate(written):
        key = f"{section}.cells[{index}]"
        if not open_sides:
            raise ConfigurationError(key, "follows the last side of the last test")
        place, node = open_sides.pop(), len(tests)
        if text == CELL:
            node, cell_count = ~cell_count, cell_count + 1
        else:
            tests.append(_test(schema, key, text))
            branches.append([0, 0])
            open_sides += [(node, 1), (node, 0)]
        if place is not None:
            branches[place[0]][place[1]] = node
    if open_sides:
        raise ConfigurationError(f"{section}.cells", "ends before every test has both of its sides")
    return CellSplits(tuple(tests), tuple((low, high) for low, high in branches))


def _test(schema: Schema, key: str, text: str) -> BinaryTest:
    """Read one test; of names that start alike the one that the text goes on after counts."""
    for index, feature in enumerate(schema.features):
        sign = AT_LEAST if isinstance(feature, NumericFeature) else IS
        name, found, value = text.partition(feature.name + sign)
        if found and not name:
            return _of_feature(schema, key, index, feature, value)
    raise ConfigurationError(key, IN_WORDS)


def _of_feature(schema: Schema, key: str, index: int, feature: Feature, value: str) -> BinaryTest:
    if isinstance(feature, NumericFeature):
        cut = _cut(key, feature, value)
        if not feature.lower < cut <= feature.upper:
            raise ConfigurationError(key, "must cut between the bounds of the feature")
        return BinaryTest(
            feature_index=index, cut=cut, category_code=None, public_frequency=UNKNOWN_SHARE
        )
    known = {name: code for code, name in enumerate(feature.categories)}
    known |= dict.fromkeys(schema.missing, feature.missing_code)
    if value not in known:
        raise ConfigurationError(key, "names no category of the feature")
    return BinaryTest(
        feature_index=index,
        cut=None,
        category_code=known[value],
        public_frequency=UNKNOWN_SHARE,
    )


def _cut(key: str, feature: NumericFeature, value: str) -> float:
    try:
        return feature.cut(value)
    except ValueError:
        raise ConfigurationError(key, IN_WORDS) from None
