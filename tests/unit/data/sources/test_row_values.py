"""A value is matched to public names by what it is, whatever its type and its neighbours."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.field_values import CellError
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.column_values import (
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    Values,
    source_columns,
)
from app.data.vectors import encode, encode_keys, parse_features, replay_key
from tests.builders.schema.golden_tables import encoded_rows

if TYPE_CHECKING:
    from app.data.sources.column_values import ColumnReader

TOKENS = frozenset({"", "?", "99.0"})
AMOUNT = NumericColumn(NumericFeature(name="amount", lower=-10.0, upper=1000.0), TOKENS)
CODE = CategoricalColumn(
    CategoricalFeature(name="code", categories=("1", "01", "2.50", "true", "inf")), TOKENS
)
CLASS = LabelColumn(("1", "0", "07"))
OTHER, MISSING = 5.0, 6.0
NAN = math.nan
NINETY_NINES = (99, 99.0, Decimal("99.00"), np.float32(99), np.int8(99))


@pytest.mark.parametrize(
    ("reader", "values", "encoded"),
    [
        (AMOUNT, (*NINETY_NINES, "99", " 99.00 ", "9.9e1", "099", "?", "", None, NAN), NAN),
        (AMOUNT, (0, -0.0, Decimal("-0.0"), "-0", b"0"), 0.0),
        (AMOUNT, (1, 1.0, Decimal("1.0"), "1", "01", "1.0"), 1.0),
        (AMOUNT, (2**62, 1e300, "1e300"), 1000.0),
        (CODE, (*NINETY_NINES, "99.0", "?", "", None, NAN, Decimal("NaN")), MISSING),
        (CODE, (1, 1.0, Decimal("1.00"), np.uint8(1), "1", b"1"), 0.0),
        (CODE, ("01", b"01"), 1.0),
        (CODE, (2.5, Decimal("2.5"), np.float16(2.5), "2.50"), 2.0),
        (CODE, (True, np.bool(True), "true"), 3.0),
        (CODE, (math.inf, Decimal("Infinity"), "inf", 10**400), 4.0),
        (CODE, ("99", "1.0", "2.5", "True", 0, False, -math.inf, 1.5), OTHER),
        (CLASS, (1, 1.0, Decimal(1), "1"), 0.0),
        (CLASS, (0, -0.0, Decimal("-0"), "0"), 1.0),
        (CLASS, ("07",), 2.0),
    ],
)
def test_a_value_is_matched_by_what_it_is(
    reader: ColumnReader, values: tuple[object, ...], encoded: float
) -> None:
    """A number matches by value, text by spelling, and text of a number is parsed first."""
    for value in values:
        np.testing.assert_equal(reader.read(value), encoded, err_msg=repr(value))
        assert not math.copysign(1, reader.read(value)) < 0


@pytest.mark.parametrize(
    ("reader", "values"),
    [
        (AMOUNT, (True, math.inf, "x", "1e400", 10**400, [1], 1j)),
        (CLASS, (7, "1.0", "", None, NAN, True, b"\xff", [1])),
        (CODE, ([1], 1j, "\udcff", b"\xff")),
    ],
)
def test_what_fits_no_column_is_refused(reader: ColumnReader, values: tuple[object, ...]) -> None:
    """What it says holds no value."""
    for value in values:
        with pytest.raises(CellError, match=r"^is "):
            reader.read(value)


def test_one_type_a_column_is_encoded_as_before() -> None:
    """Sources and arrays with one type a column give the rows that e54552f gave."""
    golden = Path(__file__).with_name("golden_rows.json").read_text(encoding="utf-8")
    assert encoded_rows() == json.loads(golden)


@pytest.mark.parametrize("others", [[], [40.5], [None], ["37"], [Decimal("0.1"), b"a", True]])
def test_neighbours_decide_nothing(others: list[object]) -> None:
    """Beside values of any type the same value is the same code."""
    schema = Schema(
        label="label",
        classes=("0", "1"),
        features=(CategoricalFeature(name="code", categories=("1", "0", "2.0")),),
    )
    column, _ = source_columns(schema)
    values = [1, 0.0, -0.0, 2, *others]
    assert column.encode(Values(values))[:4].tolist() == [0.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize("count", [1, 40])
def test_a_posted_number_is_missing_by_value(count: int) -> None:
    """A query is encoded as a row is, alone or with others, and stays the query that it was."""
    schema = Schema(
        label="label",
        classes=("0", "1"),
        features=(
            NumericFeature(name="amount", lower=-10.0, upper=1000.0),
            NumericFeature(name="age", lower=99.0, upper=100.0),
        ),
        missing=("99", "?"),
    )
    vectors = [parse_features(schema, [99, 5]), parse_features(schema, [98.5, 99.0])] * count
    expected = [[NAN, 99.0], [98.5, NAN]] * count
    np.testing.assert_array_equal(encode(schema, vectors), expected)
    keys = [replay_key(vector) for vector in vectors]
    np.testing.assert_array_equal(encode_keys(schema, keys), expected)
    assert len(set(keys)) == 2
