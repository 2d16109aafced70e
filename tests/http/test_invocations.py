"""MLflow's scoring protocol: its forms, its replies, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.data.schema import NumericFeature, Schema
from app.http.access.keys import Role
from app.http.limits import Limits
from app.http.protocols.mlflow import ONE_ROW, REPEATED_FORM, SPLIT_SHAPE
from tests.http.doubles import (
    CONFLICT,
    EXHAUSTED,
    JSON,
    KEY_RING,
    KEYS,
    Http,
    assert_problem,
    problem,
)

PATH = "/invocations"
CSV = {"Content-Type": "text/csv"}
LABELS = {"predictions": [">50K", None, "<=50K"]}
COLUMNS = ["workclass", "age"]
FORMS: dict[str, dict[str, Any]] = {
    "split": {
        "dataframe_split": {
            "columns": COLUMNS,
            "index": [7, 8, 9],
            "data": [["Private", 41], ["Private", None], ["State-gov", 20]],
        }
    },
    "split without columns": {
        "dataframe_split": {"data": [[41, "Private"], [None, "Private"], [20, "State-gov"]]}
    },
    "records": {
        "dataframe_records": [
            {"age": 41, "workclass": "Private"},
            {"workclass": "Private", "age": None},
            {"age": 20.0, "workclass": "State-gov"},
        ]
    },
    "instances": {
        "instances": [[41, "Private"], {"age": None, "workclass": "Private"}, [20, "State-gov"]]
    },
    "inputs by name": {
        "inputs": {"age": [41, None, 20], "workclass": ["Private", "Private", "State-gov"]}
    },
    "inputs by row": {"inputs": [[41, "Private"], [None, "Private"], [20, "State-gov"]]},
    "with parameters": {
        "inputs": [[41, "Private"], [None, "Private"], [20, "State-gov"]],
        "params": {"temperature": 1},
        "signature_name": "serving_default",
    },
}


def invoke(http: Http, body: object, **headers: str) -> Any:
    """Post a body as JSON."""
    return http.request("POST", PATH, content=json.dumps(body), headers=JSON | headers)


@pytest.mark.parametrize("form", FORMS)
def test_takes_every_form(form: str) -> None:
    """All forms of the same rows are the same queries, and the same as /query's."""
    with Http() as http:
        reply = invoke(http, FORMS[form])
        assert reply.json() == LABELS
        assert reply.headers["content-type"] == "application/json"
        assert list(http.service.answers) == [
            (41.0, "Private"),
            (None, "Private"),
            (20.0, "State-gov"),
        ]
        assert http.ask([41, "Private"]).json()["replayed"]


@pytest.mark.parametrize("header", ["text/csv", "text/csv; charset=utf-8"])
def test_takes_a_table(header: str) -> None:
    """A CSV has its columns in any order; an empty cell and a missing token are missing."""
    table = "\ufeffworkclass,age\r\nPrivate, 41\r\nPrivate,\r\n\r\nState-gov,2e1\r\n"
    with Http() as http:
        reply = http.request("POST", PATH, content=table.encode(), headers={"Content-Type": header})
        assert reply.json() == LABELS
        http.request("POST", PATH, content=b"age,workclass\n?,?\n", headers=CSV)
        assert http.ask([None, None]).json()["replayed"]


def test_one_row_of_values_by_name_is_a_row() -> None:
    """Inputs without lists are one vector."""
    with Http() as http:
        reply = invoke(http, {"inputs": {"age": 41, "workclass": "Private"}})
    assert reply.json() == {"predictions": [">50K"]}


def test_a_single_feature_needs_no_list() -> None:
    """Where a row is one value it may stand alone."""
    features = (NumericFeature(name="age", lower=0.0, upper=90.0),)
    with Http() as http:
        http.service.schema = Schema(label="income", classes=("a", "b"), features=features)
        assert invoke(http, {"instances": [41, [20], {"age": 50}]}).status_code == 200
        assert invoke(http, {"inputs": [41, 3]}).status_code == 200
        assert list(http.service.answers) == [(41.0,), (20.0,), (50.0,), (3.0,)]


def test_rows_after_a_halt_are_null() -> None:
    """Rows that came too late have no label; a request without an answer is refused."""
    with Http(queries_max=1) as http:
        assert invoke(http, FORMS["records"]).json() == {"predictions": [">50K", None, None]}
        reply = invoke(http, {"inputs": [[20, "State-gov"]]})
    assert_problem(reply, problem("budget-exhausted", "Privacy budget exhausted", 410, EXHAUSTED))


def test_no_rows_have_no_predictions() -> None:
    """An empty frame is answered by an empty list."""
    with Http() as http:
        assert invoke(http, {"dataframe_records": []}).json() == {"predictions": []}


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({}, 400, REPEATED_FORM),
        ({"instances": [[1, "x"]], "inputs": [[1, "x"]]}, 400, REPEATED_FORM),
        ({"data": [[1, "x"]]}, 400, "the body is not JSON of the right shape"),
        ([[1, "x"]], 400, "the body is not JSON of the right shape"),
        ({"dataframe_split": {"columns": ["age", "age"], "data": []}}, 400, SPLIT_SHAPE),
        ({"dataframe_split": {"columns": COLUMNS, "data": [["x"]]}}, 400, SPLIT_SHAPE),
        ({"dataframe_split": {"columns": COLUMNS}}, 400, "the body is not JSON of the right"),
        ({"inputs": {"age": [1, 2], "workclass": ["x"]}}, 400, "inputs by name"),
        ({"inputs": {"age": [1], "workclass": "x"}}, 400, "inputs by name"),
        ({"inputs": {"age": [1]}}, 422, "workclass: is absent"),
        ({"inputs": {}}, 422, "age: is absent"),
        ({"instances": [[1, "x"], [1]]}, 422, "features: must be 2 values, got 1 (rows[1])"),
        ({"instances": [1]}, 422, "features: must be a list"),
        ({"instances": [[True, "x"]]}, 422, "age: must be a number or null"),
        ({"dataframe_records": [{"age": "1", "workclass": "x"}]}, 422, "age: must be a number"),
        (
            {"dataframe_split": {"columns": [*COLUMNS, "sex"], "data": [["x", 1, "f"]]}},
            422,
            "sex: is not a feature",
        ),
    ],
)
def test_refuses_what_does_not_fit(body: object, status: int, text: str) -> None:
    """A form that contradicts itself, or rows that are no vectors, are problems, uncharged."""
    with Http() as http:
        reply = invoke(http, body)
        assert http.service.windows == []
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["detail"].startswith(text)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"inputs": [[NaN, "x"]]}', 422),
        ('{"inputs": [[1e999, "x"]]}', 422),
        ('{"inputs": [[1, "\\ud800"]]}', 422),
        ('{"params": {"a": NaN}, "inputs": [[1, "x"]]}', 400),
        ('{"inputs": [[1, "x"]], "inputs": [[2, "x"]]}', 400),
        ('{"dataframe_records": [{"age": 1, "age": 2, "workclass": "x"}]}', 400),
        ("{", 400),
        ("[" * 20_000, 400),
    ],
)
def test_refuses_json_that_is_none_or_has_two_meanings(body: str, status: int) -> None:
    """NaN names its feature; the rest is malformed."""
    with Http() as http:
        reply = http.request("POST", PATH, content=body, headers=JSON)
        assert http.service.windows == []
    assert reply.status_code == status


@pytest.mark.parametrize(
    ("table", "status"),
    [
        (b"", 400),
        (b"age,age\n1,2\n", 400),
        (b"age,workclass\n1\n", 400),
        (b'age,workclass\n1,"x\n', 400),
        (b"age,workclass\n1,\xff\n", 400),
        (b"age,workclass\nNaN,x\n", 422),
        (b"age,workclass\n1e999,x\n", 422),
        (b"age,workclass\nold,x\n", 422),
        (b"age\n1\n", 422),
        (b"age,workclass,sex\n1,x,f\n", 422),
        (b"age,workclass\n", 422),
        (b"1,x", 422),
    ],
)
def test_refuses_tables_that_do_not_fit(table: bytes, status: int) -> None:
    """What is no CSV is malformed; a cell or a column that does not fit is named."""
    with Http() as http:
        reply = http.request("POST", PATH, content=table, headers=CSV)
        assert http.service.windows == []
    assert reply.status_code == status, reply.text


def test_a_key_is_for_one_row() -> None:
    """A key binds one vector, and more rows than one are refused with it."""
    key = {"Idempotency-Key": "k"}
    with Http() as http:
        assert invoke(http, {"inputs": [[41, "x"]]}, **key).status_code == 200
        other = invoke(http, {"inputs": [[42, "x"]]}, **key)
        many = invoke(http, {"inputs": [[41, "x"], [42, "x"]]}, **key)
    assert_problem(
        other, problem("idempotency-conflict", "Idempotency key used before", 409, CONFLICT)
    )
    assert_problem(many, problem("invalid-parameter", "Invalid parameter", 400, ONE_ROW))


def test_refuses_too_many_rows_and_other_types() -> None:
    """Rows have a maximum, and a body that is neither JSON nor CSV is not read."""
    with Http(limits=Limits(batch_rows_max=2)) as http:
        assert invoke(http, FORMS["records"]).status_code == 413
        refused = http.request("POST", PATH, content=b"x", headers={"Content-Type": "text/html"})
    assert refused.status_code == 415


def test_ping_follows_the_release() -> None:
    """A ping is answered while the release is open, to who may query."""
    with Http(keys=KEY_RING) as http:
        assert http.get("/ping").status_code == 401
        headers = {"Authorization": f"Bearer {KEYS[Role.QUERY]}"}
        assert http.get("/ping", headers=headers).json() == {"status": "ready"}
    with Http(is_open=False) as http:
        assert http.get("/ping").status_code == 503
