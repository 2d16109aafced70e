"""Numbers that are read together are what each cell alone is read as."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data import rows as private_rows
from app.data.field_values import CellError
from app.data.rows import PrivateRows, fingerprint
from app.data.schema import NumericFeature
from app.data.sources.column_values import NumericColumn, SourceColumn

READER = NumericColumn(
    NumericFeature(name="number", lower=-100.0, upper=100.0), frozenset({"", "?", "-9"})
)
# What `float` takes and a decimal number is not, or the other way round, is among these.
ODD = [
    *(
        "nan",
        "inf",
        "-Infinity",
        "1_0",
        "1e400",
        "0x1",
        "१",
        "\uff11",
        "1\n",
        "\n1",
        "1\x0b",
        "\xa01",
    ),
    *("1,5", ",", "e5", "1e", "+-1", " ", "\t", "--1", "1.2.3", "\udc80", "Infinity", "1 2", "."),
]
FINE = [
    "0",
    "-0",
    "-0.0",
    "+1",
    ".5",
    "5.",
    "1e2",
    "-1E-2",
    " 7 ",
    "\t8\t",
    "1e5",
    "-9.0",
    "1e-400",
]


def one_by_one(cells: list[str]) -> list[float] | None:
    """Read each cell alone; None where one does not fit."""
    try:
        return [READER.read(cell) for cell in cells]
    except CellError:
        return None


def same(first: float, second: float) -> bool:
    """Compare the very bits."""
    return np.float64(first).tobytes() == np.float64(second).tobytes()


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_number_is_left_to_be_read_alone(odd: str) -> None:
    """Whatever `float` makes of it, together nothing is read that alone would be refused."""
    assert READER.read_texts(["1", odd, "2"]) is None
    with pytest.raises(CellError):
        READER.read(odd)


def test_decimal_numbers_and_missing_ones_are_read_together() -> None:
    """Bounds, blanks, negative zeros and missing numbers, however spelled, are the same bits."""
    cells = [*FINE, "", "?", "-9"]
    together, alone = READER.read_texts(cells), one_by_one(cells)
    assert together is not None
    assert alone is not None
    assert all(map(same, together, alone))
    assert np.isnan(together[-3:]).all()
    assert math.isnan(together[FINE.index("-9.0")])


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*FINE, "", "?", "-9"]),
            st.text(alphabet="0123456789+-.eE \t,_nif\n", max_size=8),
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
        ),
        max_size=6,
    )
)
def test_together_is_alone_or_nothing(cells: list[str]) -> None:
    """Any cells give the bits that each alone gives, or are left to be read alone."""
    together, alone = READER.read_texts(cells), one_by_one(cells)
    if together is None:
        return
    assert alone is not None
    assert all(map(same, together, alone))


def test_only_numbers_that_hardly_repeat_are_read_together() -> None:
    """A column of few values stays with looking them up; the choice shows in no value."""
    column = SourceColumn("number", READER)
    few = [str(value % 7) for value in range(100)]
    many = [repr(value / 7) for value in range(100)]
    for cells in (few, many, many, few):
        assert column.encode(cells).tolist() == one_by_one(cells)
    assert "0.0" in column
    assert len(column) == 7 + 100


def test_rows_are_sorted_once_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """An opening compares the fingerprint that it has just written without sorting anew."""
    rows = PrivateRows(values=np.arange(6.0).reshape(3, 2), labels=np.array([0, 1, 0]))
    first = fingerprint(rows, b"key")
    assert fingerprint(rows, b"other") != first
    monkeypatch.delattr(private_rows, "_digest")
    assert fingerprint(rows, b"key") == first
    assert "key" not in repr(rows)
