"""A check finds everything that does not fit, in all columns at once, and shows no value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.checks.dead_features import ALL_MISSING, NO_CATEGORY, ON_ONE_BOUND, dead_features
from app.data.checks.source_check import Finding, Misfit, SourceReport, check_source
from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources import csv_records, csv_source
from app.data.sources.column_values import NearNames
from app.data.sources.sources import ROWS_PER_BLOCK, read_rows
from app.data.vectors import encode
from app.errors import DataError
from tests.builders.schema.schemas import PEOPLE
from tests.builders.schema.tables import FORMATS, write_csv, write_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.data.vectors import Vector

HEADER = "age,hours,work,sex,income\n"
GOOD = "39,40,Private,F,low\n"
OTHER = "50,20,State,M,high\n"


def checked(
    folder: Path,
    text: str,
    *,
    schema: Schema = PEOPLE,
    rows_expected: int | None = None,
    points: tuple[Vector, ...] | None = None,
) -> SourceReport:
    """Check a CSV of this text."""
    path = folder / "people.csv"
    path.write_text(text, encoding="utf-8")
    return check_source(
        str(path),
        schema,
        rows_expected=rows_expected,
        points=None if points is None else encode(schema, points),
        progress=lambda _: None,
    )


def said(report: SourceReport) -> set[tuple[object, ...]]:
    """Return the findings without their words."""
    return {
        (each.column, each.kind.value, each.row_count, each.first_row, each.names)
        for each in report.findings
    }


def test_rows_that_fit_have_no_finding(tmp_path: Path) -> None:
    """Where every cell loads and every feature tells something, nothing is said."""
    report = checked(tmp_path, HEADER + GOOD + OTHER, rows_expected=2)
    assert report == SourceReport(2, (), None)


def test_all_columns_are_told_at_once(tmp_path: Path) -> None:
    """Each kind of misfit is counted, with its first row, whatever comes before it."""
    report = checked(
        tmp_path,
        HEADER
        + GOOD
        + "old,40,private,F,low\n"
        + "39,1e999, State,F,LOW\n"
        + "39,40\n"
        + "39,x,State ,F,middle\n"
        + "39,y,PRIVATE,F,middle\n",
    )
    assert report.row_count == 6
    assert said(report) == {
        ("age", "bad-cell", 1, 2, ()),
        ("hours", "bad-cell", 1, 3, ()),
        ("hours", "bad-cell", 2, 5, ()),
        ("work", "blanks", 2, 3, ("State",)),
        ("work", "near-name", 2, 2, ("Private",)),
        ("income", "bad-cell", 3, 3, ()),
        ("income", "near-name", 1, 3, ("low",)),
        (None, "bad-row", 1, 4, ()),
    }


def test_a_row_of_another_length_moves_no_number(tmp_path: Path) -> None:
    """Rows that are left out count, in whatever block they are."""
    good = ROWS_PER_BLOCK + 5
    text = HEADER + GOOD + "1,2\n" + OTHER * good + "1\n1,2,3\n" + "39,z,State,F,low\n"
    report = checked(tmp_path, text)
    assert report.row_count == good + 5
    assert said(report) == {
        (None, "bad-row", 1, 2, ()),
        (None, "bad-row", 1, good + 3, ()),
        (None, "bad-row", 1, good + 4, ()),
        ("hours", "bad-cell", 1, good + 5, ()),
    }


def test_a_row_of_another_length_is_counted_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of the file or of a block too, so that every later number is right."""
    monkeypatch.setattr(csv_source, "SMALL_BYTES", 1)
    monkeypatch.setattr(csv_records, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_records, "PIECE_BYTES", 16)
    count, last = 30, 30
    for short in range(1, count + 1):
        rows = [GOOD] * count
        rows[-1] = "x,40,Private,F,low\n"
        rows[short - 1] = "39,40\n"
        report = checked(tmp_path, HEADER + "".join(rows), rows_expected=count)
        found = {each.kind: each.first_row for each in report.findings}
        assert report.row_count == count
        assert found[Misfit.BAD_ROW] == short
        assert found.get(Misfit.BAD_CELL) == (None if short == last else last)
        assert Misfit.ROW_COUNT not in found


def test_the_columns_that_are_there_are_checked_without_the_others(tmp_path: Path) -> None:
    """Every missing or doubled column is named, and the rest is read all the same."""
    report = checked(tmp_path, "age,age,work,income\n1,1,private,low\n2,2,x,high\n")
    assert said(report) == {
        ("age", "missing-column", None, None, ()),
        ("hours", "missing-column", None, None, ()),
        ("sex", "missing-column", None, None, ()),
        ("work", "dead-feature", None, None, ()),
        ("work", "near-name", 1, 1, ("Private",)),
    }
    assert {each.problem for each in report.findings} >= {
        "occurs more than once in the header",
        "is missing in the header",
    }


def test_a_column_of_nearly_the_name_is_told(tmp_path: Path) -> None:
    """A header with blanks after its commas has columns of nearly every name."""
    report = checked(tmp_path, HEADER.replace(",", ", ") + GOOD + OTHER)
    assert [each.column for each in report.findings] == ["hours", "work", "sex", "income"]
    told = {each.column: each.problem for each in report.findings}
    assert told["sex"] == (
        'is missing in the header, which has " sex": name it alike in one of them'
    )


def test_no_column_at_all_is_told_too(tmp_path: Path) -> None:
    """A file of another kind has every column missing, and nothing else."""
    report = checked(tmp_path, "a;b\n1;2\n", rows_expected=9)
    assert [each.kind for each in report.findings] == [Misfit.MISSING_COLUMN] * 5


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("17,1,State,F,low\n-3,2,State,F,low\n,3,State,F,low\n", ON_ONE_BOUND),
        ("90,1,State,F,low\n99,2,State,F,low\n", ON_ONE_BOUND),
        ("?,1,State,F,low\n,2,State,F,low\n", ALL_MISSING),
        ("20,1,TCP,F,low\n30,2,,F,low\n", NO_CATEGORY),
        ("20,1,?,F,low\n30,2,,F,low\n", ALL_MISSING),
    ],
)
def test_a_dead_feature_is_told_and_refused_alike(tmp_path: Path, rows: str, problem: str) -> None:
    """What a check says of a feature is what an opening refuses it for."""
    report = checked(tmp_path, HEADER + rows)
    (found,) = report.findings
    assert (found.kind, found.problem) == (Misfit.DEAD_FEATURE, problem)
    loaded = read_rows(tmp_path / "people.csv", PEOPLE)
    assert dead_features(PEOPLE, loaded.values) == {found.column: problem}


@pytest.mark.parametrize("value", [18.0, 89.0])
def test_one_value_between_the_bounds_is_alive(tmp_path: Path, value: float) -> None:
    """A constant feature is dull and not wrong: only a bound tells of a wrong schema."""
    report = checked(tmp_path, HEADER + f"{value},1,State,F,low\n" + f"{value},2,State,F,low\n")
    assert report.findings == ()


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_source_is_checked(tmp_path: Path, format_name: str) -> None:
    """The same misfits are found in each kind of source, by the same row numbers."""
    table: dict[str, Sequence[object]] = {
        "age": [20.0, 30.0, 40.0, 50.0],
        "hours": [1.0, None, 3.0, 4.0],
        "work": ["Private", "state", " Private", "x"],
        "sex": ["M", "M", "M", "M"],
        "income": ["low", "high", "Low", "none"],
    }
    source, query = write_table(tmp_path, table, format_name)
    report = check_source(source, PEOPLE, query=query, progress=lambda _: None)
    assert report.row_count == 4
    assert said(report) == {
        ("work", "near-name", 1, 2, ("State",)),
        ("work", "blanks", 1, 3, ("Private",)),
        ("sex", "dead-feature", None, None, ()),
        ("income", "bad-cell", 2, 3, ()),
        ("income", "near-name", 1, 3, ("low",)),
    }


def test_a_source_that_breaks_off_is_told_with_what_was_found(tmp_path: Path) -> None:
    """The place where it breaks is one finding more, and the number of rows is none."""
    text = HEADER + GOOD + "x,1,State,F,low\n" + '2,2,"State,F,low\n'
    report = checked(tmp_path, text, rows_expected=9)
    assert said(report) == {(None, "broken", None, None, ()), ("age", "bad-cell", 1, 2, ())}


def test_a_source_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    """Where there is nothing to read, the one line is that of an opening."""
    with pytest.raises(DataError, match="no such file"):
        check_source(str(tmp_path / "absent.csv"), PEOPLE, progress=lambda _: None)


def test_the_number_of_rows_is_checked(tmp_path: Path) -> None:
    """Fewer rows than the configuration says, and none at all, do not fit."""
    (few,) = checked(tmp_path, HEADER + GOOD, rows_expected=3).findings
    assert few == Finding(kind=Misfit.ROW_COUNT, problem="has 1 rows, and data.rows says 3")
    (none,) = checked(tmp_path, HEADER).findings
    assert none == Finding(kind=Misfit.ROW_COUNT, problem="has no row of data")


def test_the_share_of_public_points_that_equal_a_record(tmp_path: Path) -> None:
    """Points count as often as they occur, once encoded, and rows that do not load do not."""
    points: tuple[Vector, ...] = (
        (39.0, 40.0, "Private", "F"),
        (39.0, 40.0, "Private", "F"),
        (99.0, None, "elsewhere", "F"),
        (50.0, 20.0, "State", "M"),
    )
    text = HEADER + GOOD + "90,?,abroad,F,high\n" + "50,20,State,M,neither\n"
    assert checked(tmp_path, text, points=points).equal_share == 0.75
    assert checked(tmp_path, HEADER.replace("age", "years"), points=points).equal_share is None


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("TCP", "tcp"),
        (" tcp\t", "tcp"),
        ("<=50K.", "<=50K"),
        (">50K", None),
        ("self emp", "Self-emp"),
        ("1.0", "1"),
        ("01", "1"),
        ("10", None),
        ("", None),
        ("-", None),
    ],
)
def test_what_is_near_a_name(text: str, near: str | None) -> None:
    """Blanks, capitals, dashes, points and the spelling of a number are no difference."""
    assert NearNames(("tcp", "<=50K", "Self-emp", "1", "-")).near(text) == near


def test_no_value_is_in_a_report(tmp_path: Path) -> None:
    """A marker in every place of a row that does not fit is in no finding."""
    marker = "31337x"
    table = {name: ["1", marker, f" {marker}"] for name in (*PEOPLE.feature_names, "income")}
    report = check_source(write_csv(tmp_path / "rows.csv", table), PEOPLE, progress=lambda _: None)
    assert report.findings
    assert marker not in repr(report)


def test_numbers_of_a_bound_alone_are_weighed_column_by_column() -> None:
    """Of several dead features each is named with its reason."""
    schema = Schema(
        label="y",
        classes=("a", "b"),
        features=(
            NumericFeature(name="low", lower=0.0, upper=1.0),
            CategoricalFeature(name="kind", categories=("x",)),
            NumericFeature(name="alive", lower=0.0, upper=1.0),
        ),
    )
    values = np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
    assert dead_features(schema, values) == {"low": ON_ONE_BOUND, "kind": NO_CATEGORY}
