"""Booleans and dates over HTTP: every route takes what a source holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.data.field_values import day_in
from app.data.schema import BooleanFeature, CategoricalFeature, DateFeature, Schema
from tests.http.doubles import JSON, Http
from tests.http.v2.inference import elements, infer, infer_binary, tensor

SCHEMA = Schema(
    label="income",
    classes=("<=50K", ">50K"),
    features=(
        BooleanFeature(name="member"),
        DateFeature(
            name="born", lower=day_in("1900-01-01") or 0.0, upper=day_in("2026-12-31") or 0.0
        ),
        CategoricalFeature(name="floor", categories=("1", "2")),
    ),
)
DAY = 18_321.0
ASKED = ("true", DAY, "2")
ROW = {"member": True, "born": "2020-02-29", "floor": 2}
"""A row of a pandas frame as a dictionary, its date as text."""


def served() -> Http:
    """Return a server whose schema has the kinds."""
    http = Http()
    http.service.schema = SCHEMA
    return http


@pytest.mark.parametrize(
    "row", [ROW, {"member": "TRUE", "born": "2020-02-29T12:00:00", "floor": "2"}]
)
def test_every_route_takes_a_row(row: dict[str, Any]) -> None:
    """A query, a line of a stream and MLflow's rows are one vector."""
    with served() as http:
        http.ask(row)
        http.ask(list(row.values()))
        line = json.dumps({"features": row}).encode()
        http.request("POST", "/query/stream", content=line)
        http.request("POST", "/invocations", json={"dataframe_records": [row]}, headers=JSON)
        assert list(http.service.answers) == [ASKED]


@pytest.mark.parametrize("cells", ["true,2020-02-29,2", "1,2020-02-29 00:00:00,2"])
def test_a_csv_is_read_as_a_source_is(cells: str) -> None:
    """The texts of a CSV are the values that the same texts are in a source."""
    with served() as http:
        body = f"member,born,floor\n{cells}\n,,\n"
        reply = http.request(
            "POST", "/invocations", content=body.encode(), headers={"Content-Type": "text/csv"}
        )
        assert reply.status_code == 200
        assert list(http.service.answers) == [ASKED, (None, None, None)]


def test_tensors_of_booleans_and_texts_are_taken() -> None:
    """BOOL and BYTES fit a boolean, BYTES a date, in JSON and in binary."""
    with served() as http:
        day, floor = tensor("born", "BYTES", ["2020-02-29"]), tensor("floor", "INT64", [2])
        for member in (tensor("member", "BOOL", [True]), tensor("member", "BYTES", ["True"])):
            assert infer(http, [member, day, floor]).status_code == 200
        reply = infer_binary(
            http,
            [
                ("member", "BOOL", (1, 1), b"\1"),
                ("born", "BYTES", (1, 1), elements(b"2020-02-29")),
                ("floor", "BYTES", (1, 1), elements(b"2")),
            ],
        )
        assert reply.status_code == 200
        assert list(http.service.answers) == [ASKED]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        (ROW | {"member": "yes"}, "member: must be true, false or null"),
        (ROW | {"born": 18321}, "born: must be a date such as 2026-12-31 or null"),
        (ROW | {"born": "2021-02-29"}, "born: must be a date such as 2026-12-31 or null"),
        (ROW | {"floor": [2]}, "floor: must be a string, a number or null"),
    ],
)
def test_another_value_is_refused_by_its_feature(row: dict[str, Any], detail: str) -> None:
    """The detail says what fits, and not the value; nothing is asked."""
    with served() as http:
        reply = http.ask(row)
        assert (reply.status_code, reply.json()["detail"]) == (422, detail)
        assert not http.service.answers


def test_the_schema_says_the_kinds() -> None:
    """A client learns them, and the bounds of a date as dates."""
    with served() as http:
        features = http.request("GET", "/schema").json()["features"]
    assert features == [
        {"name": "member", "kind": "boolean"},
        {"name": "born", "kind": "date", "bounds": ["1900-01-01", "2026-12-31"]},
        {"name": "floor", "kind": "categorical", "categories": ["1", "2"]},
    ]
