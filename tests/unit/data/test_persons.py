"""Persons: who is one, what their rows weigh, and that nobody is told how many they are."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.data.field_values import CellError
from app.data.persons import WEIGHT_UNITS, PersonColumn, PersonReader, Persons
from app.data.rows import PrivateRows, fingerprint
from app.data.sources import column_values, parquet_source
from app.data.sources.sources import read_rows
from app.errors import DataError, InvariantError
from tests.builders.schema.schemas import PEOPLE
from tests.builders.schema.tables import FORMATS, write_table

if TYPE_CHECKING:
    from tests.builders.schema.tables import Table

KEY = b"a secret of the database"
WHO = PersonColumn(name="who", key=KEY, missing=frozenset({"", "?"}))
TABLE: Table = {
    "age": [39, 50, 5, 20, 30, 91],
    "hours": [40, 13, 10, 10, 0, 40],
    "work": ["Private", "State", "Private", "State", "State", "State"],
    "sex": ["F", "F", "F", "M", "M", "F"],
    "income": ["low", "high", "low", "high", "low", "low"],
    "who": ["ann", "bob", "ann", "ann", "cleo", "bob"],
}


def persons(numbers: list[int]) -> Persons:
    """Return persons of rows with these numbers."""
    count = max(numbers) + 1
    identities = np.arange(16 * count, dtype=np.uint8).reshape(count, 16)
    return Persons(np.array(numbers, dtype=np.int64), identities)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("ids", [TABLE["who"], [70, 8, 70, 70, 9, 8]], ids=["texts", "integers"])
def test_every_source_has_the_same_persons(
    tmp_path: Path, format_name: str, ids: list[object]
) -> None:
    """A person's rows lie anywhere in any source, and the identifier is no feature."""
    table = {**TABLE, "who": ids}
    source, query = write_table(tmp_path, table, format_name)
    rows = read_rows(source, PEOPLE, query=query, person=WHO)
    (tmp_path / "again").mkdir()
    in_csv = read_rows(write_table(tmp_path / "again", table, "csv")[0], PEOPLE, person=WHO)
    assert rows.persons is not None
    assert in_csv.persons is not None
    first = rows.persons.numbers
    assert [list(first).index(number) for number in first] == [0, 1, 0, 0, 4, 1]
    np.testing.assert_array_equal(first, in_csv.persons.numbers)
    np.testing.assert_array_equal(rows.persons.identities, in_csv.persons.identities)
    assert rows.count == 3
    assert rows.values.shape == (6, len(PEOPLE.features))
    assert fingerprint(rows, KEY) == fingerprint(in_csv, KEY)


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("nobody", [None, "?"])
def test_a_row_without_a_person_is_refused_by_its_number(
    tmp_path: Path, format_name: str, nobody: str | None
) -> None:
    """Rows of nobody are not one person's, and no row is dropped."""
    who = ["ann", "bob", "ann", nobody, "cleo", nobody]
    source, query = write_table(tmp_path, {**TABLE, "who": who}, format_name)
    with pytest.raises(DataError) as refused:
        read_rows(source, PEOPLE, query=query, person=WHO)
    place = "row 4 (row 1 of b.parquet)" if format_name == "parts" else "row 4"
    assert str(refused.value) == f'data.source: column "who", {place}: names no person'


@pytest.mark.parametrize("format_name", ["npz", "parquet"])
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_narrow_floats_that_may_stand_for_two_persons_are_refused(
    tmp_path: Path, format_name: str, kind: type[np.floating]
) -> None:
    """From the first whole number on that the type cannot tell from its neighbour."""
    limit = 2.0 ** (np.finfo(kind).nmant + 1)
    for last, is_read in ((limit - 1, True), (limit, False)):
        who = np.array([1, 2, 1, 2, 3, last], dtype=kind)
        source = tmp_path / f"rows.{format_name}"
        columns: dict[str, Any] = {
            name: np.array(cells) for name, cells in {**TABLE, "who": who}.items()
        }
        if format_name == "npz":
            np.savez(source, **columns)
        else:
            parquet.write_table(pa.table(columns), source)
        if is_read:
            assert read_rows(source, PEOPLE, person=WHO).count == 4
            continue
        with pytest.raises(DataError, match='column "who", row 6: is a number whose last digits'):
            read_rows(source, PEOPLE, person=WHO)


def test_another_number_of_persons_is_refused(tmp_path: Path) -> None:
    """The public number is checked as the number of rows is."""
    source, _ = write_table(tmp_path, TABLE, "csv")
    assert read_rows(source, PEOPLE, person=_expecting(3)).count == 3
    with pytest.raises(DataError, match=r"^data\.persons: says 6, but the source has 3 persons$"):
        read_rows(source, PEOPLE, person=_expecting(6))


def _expecting(count: int) -> PersonColumn:
    return PersonColumn(name="who", key=KEY, missing=frozenset({""}), count=count)


def test_an_identifier_is_found_by_its_value() -> None:
    """A number is one person whatever its type; a text is one by its spelling."""
    reader = PersonReader(WHO)
    seven = reader.read("7")
    for value in (7, 7.0, np.int32(7), np.float32(7), Decimal("7.00"), b"7", memoryview(b"7")):
        assert reader.read(value) == seven
    assert reader.read("07") != seven
    assert reader.read(UUID(int=7)) == reader.read("00000000-0000-0000-0000-000000000007")


def test_long_identifiers_are_not_merged() -> None:
    """Two integers beyond the digits of a double are two persons; such a double is refused."""
    reader = PersonReader(WHO)
    assert reader.read(2**53) != reader.read(2**53 + 1)
    for value, problem in (
        (2.0**53, "last digits"),
        (0.5, "whole number"),
        (float("inf"), "whole number"),
        (True, "whole number"),
        (object(), "whole number"),
        (float("nan"), "names no person"),
        (Decimal("nan"), "names no person"),
    ):
        with pytest.raises(CellError, match=problem):
            reader.read(value)


def test_an_identifier_is_kept_as_a_keyed_digest_only() -> None:
    """The same persons under another key have other identities."""
    found = []
    for key in (KEY, b"another"):
        reader = PersonReader(PersonColumn(name="who", key=key, missing=frozenset()))
        numbers = np.array([reader.read("marker"), reader.read("other")], dtype=np.int64)
        found.append(reader.persons(numbers))
        assert b"marker" not in found[-1].identities.tobytes()
    assert not np.intersect1d(found[0].identities.view("V16"), found[1].identities.view("V16")).size
    assert "marker" not in repr(found[0])


@pytest.mark.parametrize("row_count", [1, 2, 3, 7, 682, 4097, WEIGHT_UNITS // 2 + 1, WEIGHT_UNITS])
def test_the_weights_of_a_person_add_up_to_one_at_most(row_count: int) -> None:
    """Rounded down, and exactly in doubles: the loss is under r/M; to the nearest is over 1."""
    weights = persons([0] * row_count + [1]).weights
    total = Fraction(float(weights[:row_count].sum()))
    assert total == Fraction(row_count * (WEIGHT_UNITS // row_count), WEIGHT_UNITS)
    assert 1 - Fraction(row_count, WEIGHT_UNITS) < total <= 1
    assert weights[-1] == 1.0


def test_weights_to_the_nearest_would_be_unsound() -> None:
    """The planted fault: some number of rows would weigh more than one person."""
    row_counts = np.arange(1, 4097)
    totals = row_counts * np.floor(WEIGHT_UNITS / row_counts + 0.5)
    assert (totals > WEIGHT_UNITS).any()
    assert (row_counts * (WEIGHT_UNITS // row_counts) <= WEIGHT_UNITS).all()


def test_a_person_of_more_rows_than_units_weighs_nothing() -> None:
    """Weight 0 is a function of the person's own rows."""
    weights = persons([0] * (WEIGHT_UNITS + 1) + [1]).weights
    assert not weights[:-1].any()


def test_the_rows_of_persons_are_together_and_in_the_order_of_the_source() -> None:
    """A person may occur twice, as where persons are drawn with replacement."""
    positions, offsets = persons([1, 0, 1, 2, 0, 1]).positions(np.array([1, 2, 1]))
    np.testing.assert_array_equal(positions, [0, 2, 5, 3, 0, 2, 5])
    np.testing.assert_array_equal(offsets, [0, 3, 4, 7])


def test_persons_beyond_sixteen_bits_are_together_too() -> None:
    """Rows are put in the order of their persons, however many there are."""
    numbers = np.random.default_rng(2).permutation(np.arange(200_000) % 70_000)
    grouped = persons(numbers.tolist())
    positions, offsets = grouped.positions(np.arange(70_000))
    np.testing.assert_array_equal(positions, np.argsort(numbers, kind="stable"))
    np.testing.assert_array_equal(np.diff(offsets), np.bincount(numbers))


@pytest.mark.parametrize("format_name", ["parquet", "parts"])
def test_persons_are_looked_up_some_blocks_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    """How many rows are looked up together shows in nothing."""
    source, query = write_table(tmp_path, TABLE, format_name)
    whole = read_rows(source, PEOPLE, query=query, person=WHO)
    monkeypatch.setattr(column_values, "ROWS_LOOKED_UP_TOGETHER", 1)
    monkeypatch.setattr(parquet_source, "ROWS_PER_BATCH", 2)
    rows = read_rows(source, PEOPLE, query=query, person=WHO)
    assert fingerprint(rows, KEY) == fingerprint(whole, KEY)


def test_the_fingerprint_has_persons() -> None:
    """Other persons, or rows that are grouped otherwise, are other data; the order is no matter."""
    values, labels = np.arange(4.0)[:, np.newaxis], np.zeros(4, dtype=np.int64)

    def of(numbers: list[int], order: list[int]) -> str:
        given = persons(numbers)
        numbered = Persons(given.numbers[order], given.identities)
        return fingerprint(PrivateRows(values[order], labels[order], numbered), KEY)

    same = of([0, 1, 0, 2], [0, 1, 2, 3])
    assert of([0, 1, 0, 2], [3, 1, 0, 2]) == same
    assert of([1, 0, 1, 2], [0, 1, 2, 3]) != same
    assert of([0, 1, 1, 2], [0, 1, 2, 3]) != same
    assert fingerprint(PrivateRows(values, labels), KEY) != same


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_row_has_its_own_person_over_many_blocks(tmp_path: Path, format_name: str) -> None:
    """The person is read with its row, in whichever block the row lies."""
    generator = np.random.default_rng(4)
    hours = generator.integers(0, 100, 9_000).tolist()
    table = {name: [values[0]] * len(hours) for name, values in TABLE.items()}
    table |= {"hours": hours, "who": [f"person {hour // 7}" for hour in hours]}
    source, query = write_table(tmp_path, table, format_name)
    rows = read_rows(source, PEOPLE, query=query, person=WHO)
    assert rows.persons is not None
    read, numbers = rows.values[:, 1].astype(np.int64) // 7, rows.persons.numbers
    pairs = set(zip(read.tolist(), numbers.tolist(), strict=True))
    assert len(pairs) == rows.count == 15


@pytest.mark.parametrize("format_name", ["csv", "sqlite"])
def test_rows_that_are_left_out_take_no_person_with_them(tmp_path: Path, format_name: str) -> None:
    """Blank lines, and rows that a query leaves out: all others keep their own persons."""
    kept = [place for place, hours in enumerate(TABLE["hours"]) if hours != 13]
    table = {name: [values[place] for place in kept] for name, values in TABLE.items()}
    if format_name == "csv":
        path = Path(write_table(tmp_path, table, "csv")[0])
        header, first, *others = path.read_text(encoding="utf-8").splitlines()
        path.write_text("\n".join([header, first, "", "", *others]), encoding="utf-8")
        rows = read_rows(path, PEOPLE, person=WHO)
    else:
        source, query = write_table(tmp_path, TABLE, "sqlite")
        rows = read_rows(source, PEOPLE, query=f"{query} where hours <> 13", person=WHO)
    assert rows.persons is not None
    numbers = rows.persons.numbers.tolist()
    assert rows.values[:, 1].tolist() == table["hours"]
    found = dict(zip(table["who"], numbers, strict=True))
    assert [found[who] for who in table["who"]] == numbers
    assert sorted(found.values()) == [0, 1, 2]


def test_persons_read_after_a_filter_are_caught() -> None:
    """The planted fault: persons of the rows that are left are not those of all rows."""
    numbered = persons([0, 1, 1, 2, 0])
    values, labels = np.zeros((5, 1)), np.array([1, 1, 0, 1, 1])
    filtered = Persons(numbered.numbers[labels == 1], numbered.identities)
    with pytest.raises(InvariantError, match="every row has one person"):
        PrivateRows(values=values, labels=labels, persons=filtered)
    with pytest.raises(InvariantError, match="every person has a row"):
        Persons(numbered.numbers[:3], numbered.identities)
