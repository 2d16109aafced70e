"""A data dictionary is read from a CSV or from a Table Schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from app.cli.init.columns import Column
from app.cli.init.dictionary import (
    LEFT_OUT,
    NO_KIND_YET,
    csv_dictionary,
    read_dictionary,
    table_schema,
)
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

CSV = """\
name,kind,low,high,values,description
age,integer,18,90,,years
region,category,,,north|south; east,
grade,number,,,1;2;3,
smoker,boolean,,,,
shown,bool,,,y|n,
born,date,1900-01-01,2026-12-31,,
seen,time,,,,
record,id,,,,
outcome,label,,,no|yes,
"""


def test_a_csv_says_what_columns_hold() -> None:
    """Ends make a range, values make categories, and the label has its classes."""
    found = csv_dictionary(CSV)
    assert list(found.columns.values()) == [
        Column(name="age", kind="numeric", bounds=(18, 90)),
        Column(name="region", kind="categorical", categories=("north", "south; east")),
        Column(name="grade", kind="categorical", categories=("1", "2", "3")),
        Column(name="smoker", kind="boolean", categories=("false", "true")),
        Column(name="shown", kind="categorical", categories=("y", "n")),
        Column(name="born", kind="date", bounds=(-25567.0, 20818.0)),
        Column(name="seen", left_out=NO_KIND_YET),
        Column(name="record", left_out=LEFT_OUT),
        Column(name="outcome", kind="categorical", categories=("no", "yes")),
    ]
    assert found.label == "outcome"


def test_a_table_schema_says_the_same(tmp_path: Path) -> None:
    """Types and constraints are read; a primary key is no feature."""
    schema = {
        "fields": [
            {"name": "record", "type": "string"},
            {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": "90"}},
            {"name": "region", "constraints": {"enum": ["north", "south"]}},
            {"name": "grade", "type": "integer", "constraints": {"enum": [1, 2]}},
            {"name": "smoker", "type": "boolean"},
            {"name": "height", "type": "number"},
            {"name": "born", "type": "date", "constraints": {"minimum": "1900-01-01"}},
            {"name": "seen", "type": "duration"},
        ],
        "primaryKey": "record",
        "missingValues": ["", "NA"],
    }
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema))
    found = read_dictionary(path)
    assert list(found.columns.values()) == [
        Column(name="record", kind="categorical", left_out=LEFT_OUT),
        Column(name="age", kind="numeric", bounds=(18, 90)),
        Column(name="region", kind="categorical", categories=("north", "south")),
        Column(name="grade", kind="categorical", categories=("1", "2")),
        Column(name="smoker", kind="boolean", categories=("false", "true")),
        Column(name="height", kind="numeric"),
        Column(name="born", kind="date"),
        Column(name="seen", left_out=NO_KIND_YET),
    ]
    assert (found.label, found.missing) == (None, ("NA",))


@pytest.mark.parametrize("missing", [None, "NA", 3])
def test_missing_values_that_are_no_list_are_passed_over(missing: object) -> None:
    """A null is no failure, and a text is not taken for a list of its characters."""
    fields = [{"name": "smoker", "type": "boolean"}]
    assert table_schema(json.dumps({"fields": fields, "missingValues": missing})).missing == ()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("column,kind\nage,number\n", "must name the columns name and kind"),
        ("name,kind\nage,nmuber\n", "row 1: kind is none of"),
        ("name,kind\n,number\n", "row 1: has no name"),
        ("name,kind,low,high\nage,number,90,18\n", "row 1: the low end"),
        ("name,kind,low,high\nage,number,low,18\n", "row 1: low is not a finite number"),
        ("name,kind,low\nborn,date,1900\n", "row 1: low is not a date such as"),
        ("name,kind,values\nx,category,a|a\n", "row 1: values repeat"),
        ("name,kind\nage,number\nage,number\n", "names a column twice"),
        ("name,kind\na,label\nb,label\n", "row 2: is a second label"),
        ('name,kind\n"a,label\n', "a quote is stray"),
        (f"name,kind\n{'x' * 140_000},label\n", "has a cell above 131072 characters"),
    ],
)
def test_an_entry_that_makes_no_sense_is_named(rows: str, problem: str) -> None:
    """The refusal names the option and the row."""
    with pytest.raises(ConfigurationError, match=f"^--dictionary: .*{problem}"):
        csv_dictionary(rows)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "is no Table Schema"),
        ('{"fields": [{}]}', r"fields\[0\]: has no name"),
        ('{"fields": [{"name": "a", "type": "colour"}]}', r"fields\[0\]: kind is none of"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(text: str, problem: str) -> None:
    """The refusal names the option and the field."""
    with pytest.raises(ConfigurationError, match=f"^--dictionary: .*{problem}"):
        table_schema(text)


def test_a_dictionary_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A file that is not there ends in one line."""
    with pytest.raises(ConfigurationError, match=r"^--dictionary: cannot read"):
        read_dictionary(tmp_path / "absent.csv")
