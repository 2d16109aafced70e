"""Errors say nothing of the records: neighbours refuse the same requests, byte for byte.

Two releases on records that differ in one row, features and label, get the same requests
at three points of their lives: fresh, after some answers, and halted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.builders.server.http_release import SmallRelease, agreed, private_rows, split
from tests.builders.server.serving import NDJSON, Served

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = {"Content-Type": "application/json"}
KEY = "one-key"
# What must be refused at any time: method, path, and what else the request has.
BAD_REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "no JSON": ("POST", "/query", {"content": "{", "headers": JSON}),
    "no object": ("POST", "/query", {"json": [1, 2]}),
    "no features": ("POST", "/query", {"json": {}}),
    "a member more": ("POST", "/query", {"json": {"features": agreed(1), "more": 1}}),
    "a member twice": (
        "POST",
        "/query",
        {"content": '{"features": [1, "rare"], "features": [2, "rare"]}', "headers": JSON},
    ),
    "too few values": ("POST", "/query", {"json": {"features": [1]}}),
    "too many values": ("POST", "/query", {"json": {"features": [1, "rare", 3]}}),
    "a text for a number": ("POST", "/query", {"json": {"features": ["old", "rare"]}}),
    "a number for a text": ("POST", "/query", {"json": {"features": [1, 2]}}),
    "an unknown feature": ("POST", "/query", {"json": {"features": {"age": 1, "sex": "f"}}}),
    "an endless number": ("POST", "/query", {"content": '{"features": [1e999, "rare"]}'}),
    "a media type": ("POST", "/query", {"content": "x", "headers": {"Content-Type": "text/csv"}}),
    "a key that is none": (
        "POST",
        "/query",
        {"json": {"features": agreed(1)}, "headers": {"Idempotency-Key": "two words"}},
    ),
    "another vector for a key": (
        "POST",
        "/query",
        {"json": {"features": split(900)}, "headers": {"Idempotency-Key": KEY}},
    ),
    "bad lines": (
        "POST",
        "/query/stream",
        {"content": '{"features": [1]}\nno json\n{"features": 7}\n', "headers": NDJSON},
    ),
    "tensors of two lengths": (
        "POST",
        "/v2/models/members/infer",
        {
            "json": {
                "inputs": [
                    {"name": "age", "shape": [2], "datatype": "FP64", "data": [1, 2]},
                    {"name": "group", "shape": [1], "datatype": "BYTES", "data": ["rare"]},
                ]
            }
        },
    ),
    "a model that is none": ("POST", "/v2/models/none/infer", {"json": {"inputs": []}}),
    "a frame of no form": ("POST", "/invocations", {"json": {"rows": [agreed(1)]}}),
    "a page that is none": ("GET", "/ledger?limit=none", {}),
    "no classifier yet": ("GET", "/classifier", {}),
    "a path that is none": ("GET", "/no-such-path", {}),
    "a method that is none": ("DELETE", "/query", {}),
    "statistics that are not there": ("POST", "/statistics", {"json": {"hypotheses": []}}),
}
# A request has its number, whoever asks; a reply has its time.
OWN_HEADERS = frozenset({"date", "x-request-id"})


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """Serve two releases whose records differ in one row."""
    rows = private_rows()
    other = [("99.9", "rare", "no"), *rows[1:]]
    assert rows[0] != other[0]
    one, two = (
        SmallRelease(tmp_path_factory.mktemp(name)).write(given).settings()
        for name, given in (("one", rows), ("two", other))
    )
    with Served(one) as first, Served(two) as second:
        for served in (first, second):
            served.answer(agreed(1), KEY)
        yield first, second


def refusal(served: Served, name: str) -> tuple[int, list[tuple[str, str]], bytes]:
    """Send a bad request and return all of the reply but what is its own."""
    method, path, options = BAD_REQUESTS[name]
    reply = served.run(served._client.request(method, path, **options))
    headers = [(key, text) for key, text in reply.headers.items() if key not in OWN_HEADERS]
    return reply.status_code, headers, reply.content


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_fresh_release_refuses_alike(neighbours: tuple[Served, Served], name: str) -> None:
    """Whatever is wrong with a request, neighbours say it in the same bytes."""
    one, other = (refusal(served, name) for served in neighbours)
    assert one == other
    assert one[0] >= 400 or name == "bad lines"


def test_a_halted_release_refuses_alike(neighbours: tuple[Served, Served]) -> None:
    """After the halt new vectors and every bad request are refused in the same bytes."""
    for served in neighbours:
        for number in range(30):
            if served.budget()["phase"] != "ensemble":
                break
            served.answer(split(number))
        assert served.budget()["phase"] == "halted"
    one, other = (served.query(agreed(77)) for served in neighbours)
    assert one.status_code == other.status_code == 410
    assert one.content == other.content
    for name in BAD_REQUESTS:
        one_refusal, other_refusal = (refusal(served, name) for served in neighbours)
        assert one_refusal == other_refusal, name
