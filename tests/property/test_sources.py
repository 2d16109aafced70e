"""Tables of any content are the same rows through every source."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from app.data.rows import fingerprint
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.sources import read_rows
from app.data.sources.sql_query_check import check_row_wise
from app.errors import ConfigurationError, DataError
from tests.builders.schema.tables import FORMATS, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.rows import PrivateRows

SCHEMA = Schema(
    label="label",
    classes=("no", "ja", "später"),
    features=(
        NumericFeature(name="float", lower=-1.0, upper=1e6),
        NumericFeature(name="whole", lower=-50.0, upper=2.0**60),
        CategoricalFeature(name="text", categories=("a", "b,\nc", "ü")),
        CategoricalFeature(name="code", categories=("1", "-2", "3000")),
    ),
    missing=("?", "-7"),
)
# What a typed column and the text of a CSV both hold: see docs/sources.md on -7.0.
FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number != -7.0)
# An integer column with a missing value is one of floats in NPZ, so below 2^53.
WHOLES = st.integers(-100, 2**50)
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
) | st.sampled_from(["a", "b,\nc", "ü", "?", ""])
COLUMNS = {
    "label": st.sampled_from(["no", "ja", "später"]),
    "whole": WHOLES,
    "text": st.none() | TEXTS,
    "float": st.none() | FLOATS,
    "code": st.integers(-5, 5) | st.just(3000),
    "other": st.binary(max_size=2).map(lambda body: body.hex()),
}
ROWS = st.lists(st.tuples(*COLUMNS.values()), min_size=1, max_size=12)
WORDS = "select from where order by a b * , ( ) 'x' \"y\" . ; count group join union in as"
SQL = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)


@settings(max_examples=20)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_same_rows_are_the_same_bytes(rows: list[tuple[object, ...]], random: object) -> None:
    """Values, labels and fingerprint do not tell which source the rows came from."""
    expected = _read("csv", rows)
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis's own Random
    for format_name in FORMATS:
        found = _read(format_name, rows)
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.labels.tobytes() == expected.labels.tobytes()
        again = fingerprint(_read(format_name, shuffled), b"key")
        assert again == fingerprint(expected, b"key")


@settings(max_examples=20)
@given(ROWS, st.data())
def test_a_bad_cell_is_named_alike(rows: list[tuple[object, ...]], data: st.DataObject) -> None:
    """Whatever the source, the line names the column and the row, and holds no value."""
    index = data.draw(st.integers(0, len(rows) - 1))
    marked = [*rows[:index], ("marker", *rows[index][1:]), *rows[index + 1 :]]
    for format_name in FORMATS:
        try:
            _read(format_name, marked)
        except DataError as error:
            line = str(error)
        else:
            line = "nothing was refused"
        assert line.startswith(f'data.source: column "label", row {index + 1}')
        assert line.endswith(": is not one of data.classes")


@given(st.text(max_size=60) | SQL)
def test_any_query_is_accepted_or_refused(query: str) -> None:
    """There is no third outcome, and a refusal is one line that names the setting."""
    try:
        check_row_wise(query)
    except ConfigurationError as error:
        line = str(error)
    else:
        line = "data.query: accepted"
        assert query.strip().lower().startswith("select")
    assert line.startswith("data.query: ")
    assert "\n" not in line


def _read(format_name: str, rows: Sequence[tuple[object, ...]]) -> PrivateRows:
    """Write rows as a kind of source and read them."""
    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        source, query = write_table(Path(folder), columns, format_name)
        return read_rows(source, SCHEMA, query=query, rows_expected=len(rows))
