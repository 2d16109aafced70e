"""The HTTP shape of scores: what replies have more, and which precisions are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from app.http.openapi.query_models import Answer, Query
from app.http.openapi.read_models import Schema
from app.http.query.query_body import NO_SCORES, PRECISION_SHAPE, REPEATED
from tests.http.doubles import JSON, Http, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELLED = ["query_id", "label", "stable", "phase", "replayed"]
SCORED = [*LABELLED, "score", "bin", "precision"]
HIGH, LOW, UNSTABLE = [41, "Private"], [30, "Private"], [None, "Private"]


@pytest.fixture
def http() -> Iterator[Http]:
    """Return a service of scores in ten bins."""
    with Http() as served:
        served.service.precision = 10
        yield served


def post(http: Http, body: object) -> Any:
    """Post a body, raw where it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http.request("POST", "/query", content=content, headers=JSON)


def refused(detail: str) -> dict[str, object]:
    """Return the problem of a precision."""
    return problem("invalid-parameter", "Invalid parameter", 400, detail)


def test_a_score_has_its_bin_and_precision(http: Http) -> None:
    """The members follow those of a label, in one order, and name the bin's edges."""
    reply = post(http, {"features": HIGH}).json()
    assert list(reply) == SCORED
    assert reply["bin"] == {"lower": 0.9, "upper": 1.0}
    assert reply["score"] == pytest.approx(0.95)
    assert reply["precision"] == 10
    assert set(reply) == set(Answer.model_fields)


def test_a_query_has_bins_of_its_own(http: Http) -> None:
    """A precision beside the features, null for none, reaches the service."""
    assert post(http, {"features": HIGH, "precision": 2}).json()["bin"]["lower"] == 0.5
    assert post(http, {"features": LOW, "precision": None}).json()["precision"] == 10
    for edge in (2, 1000):
        assert post(http, {"features": HIGH, "precision": edge}).json()["precision"] == edge
    assert "precision" in Query.model_fields


def test_an_unstable_score_is_null(http: Http) -> None:
    """There is no score and no bin, and still the precision that was asked for."""
    reply = post(http, {"features": UNSTABLE}).json()
    assert (reply["score"], reply["bin"], reply["label"]) == (None, None, None)
    assert (reply["stable"], reply["precision"]) == (False, 10)


@pytest.mark.parametrize(
    "given", ["1", "0", "-3", "1001", "2.5", "10.0", "true", '"10"', "[10]", "1e2"]
)
def test_what_is_no_precision_is_refused(http: Http, given: str) -> None:
    """Only whole numbers from 2 to 1000 are; nothing is asked."""
    reply = post(http, f'{{"features": [41, "Private"], "precision": {given}}}'.encode())
    assert reply.status_code == 400
    assert reply.json() == refused(PRECISION_SHAPE)
    assert http.service.answers == {}


@pytest.mark.parametrize(
    "twice", [b'"precision": 2, "precision": 3', b'"precision": 2, "precision": null']
)
def test_a_precision_is_named_once(http: Http, twice: bytes) -> None:
    """Two of them have two meanings."""
    reply = post(http, b'{"features": [41, "Private"], ' + twice + b"}")
    assert reply.json() == problem("malformed-body", "Malformed body", 400, REPEATED)


def test_a_stream_takes_a_precision_a_line(http: Http) -> None:
    """Each line has its own, and one that is refused leaves the others."""
    first, second, third = http.stream(
        {"features": HIGH, "precision": 4},
        {"features": HIGH, "precision": 1},
        {"features": LOW},
    )
    assert (first["precision"], third["precision"]) == (4, 10)
    assert second == refused(PRECISION_SHAPE)


def test_labels_are_as_they_were() -> None:
    """Without scores a reply has its five members, and a precision is refused by its name."""
    with Http() as http:
        assert list(post(http, {"features": HIGH}).json()) == LABELLED
        reply = post(http, {"features": LOW, "precision": 10})
        (line,) = http.stream({"features": LOW, "precision": 10})
        assert "precision" not in http.get("/schema").json()
    assert reply.status_code == 400
    assert reply.json() == line == refused(NO_SCORES)
    assert "precision" in NO_SCORES


def test_the_schema_tells_the_default(http: Http) -> None:
    """A client learns from GET /schema that there are scores, and in how many bins."""
    assert http.get("/schema").json()["precision"] == 10
    assert "precision" in Schema.model_fields
