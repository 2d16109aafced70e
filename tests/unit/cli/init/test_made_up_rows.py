"""Made-up rows fit the schema that they are made up for."""

from __future__ import annotations

import csv
import io

import pytest

from app.cli.init.made_up_rows import ROWS_MAX, made_up_csv
from app.errors import ConfigurationError
from app.settings.data_section import DataSettings

TABLES = {
    "source": "records.csv",
    "label": "outcome",
    "classes": ["no", "maybe", "yes"],
    "missing": ["other"],
    "features": [
        {"name": "age", "kind": "numeric", "bounds": [18, 90]},
        {"name": "rate", "kind": "numeric", "bounds": [0, 0.01], "thresholds": [0.001]},
        {"name": "seen", "kind": "date", "bounds": ["2020-02-28", "2020-03-02"]},
        {"name": "smoker", "kind": "boolean", "true_share": 0.3},
        {"name": "region", "kind": "categorical", "categories": ["a,b", "south"]},
        {
            "name": "kind",
            "kind": "categorical",
            "categories": ["x", "y"],
            "category_shares": [0.5, 0.2],
        },
    ],
}


def rows_of(text: str) -> list[dict[str, str]]:
    """Read a CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def test_rows_are_within_the_schema() -> None:
    """Numbers lie within bounds and are as fine as these, texts are categories or other."""
    rows = rows_of(made_up_csv(DataSettings.model_validate(TABLES), 400, 3))
    assert len(rows) == 400
    assert all(18 <= int(row["age"]) <= 90 for row in rows)
    assert all(0 <= float(row["rate"]) <= 0.01 for row in rows)
    assert len({row["rate"] for row in rows}) > 100
    assert {row["smoker"] for row in rows} == {"false", "true"}
    dates = {"2020-02-28", "2020-02-29", "2020-03-01", "2020-03-02"}
    assert {row["seen"] for row in rows} == dates
    assert {row["region"] for row in rows} == {"a,b", "south"}
    assert {row["kind"] for row in rows} == {"x", "y", "other-other"}
    assert {row["outcome"] for row in rows} == {"no", "maybe", "yes"}


def test_a_seed_makes_the_same_rows() -> None:
    """Two runs are alike byte for byte, and another seed makes other rows."""
    data = DataSettings.model_validate(TABLES)
    assert made_up_csv(data, 50, 1) == made_up_csv(data, 50, 1) != made_up_csv(data, 50, 2)


def test_persons_are_made_up_where_the_schema_names_them() -> None:
    """As many persons as are public have a row each, and fewer rows are refused."""
    data = DataSettings.model_validate({**TABLES, "person": "patient", "persons": 20})
    assert len({row["patient"] for row in rows_of(made_up_csv(data, 50, 0))}) == 20
    with pytest.raises(ConfigurationError, match=r"at least data\.persons, 20"):
        made_up_csv(data, 19, 0)


def test_rows_are_named_where_the_schema_names_them() -> None:
    """Each row has an identifier of its own."""
    data = DataSettings.model_validate({**TABLES, "id": "number"})
    assert len({row["number"] for row in rows_of(made_up_csv(data, 50, 0))}) == 50


def test_more_rows_than_a_client_needs_are_refused() -> None:
    """The number of rows has a limit that is named."""
    with pytest.raises(ConfigurationError, match=f"at most {ROWS_MAX}"):
        made_up_csv(DataSettings.model_validate(TABLES), ROWS_MAX + 1, 0)
