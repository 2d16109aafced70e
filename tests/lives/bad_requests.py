"""Requests that are refused, or nearly: some hundreds, whatever phase a release is in."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

from tests.lives.bad_bodies import (
    BAD_READS,
    BODIES,
    CSV,
    GOOD,
    HEADERS,
    INFER,
    KEYS,
    MEDIA_TYPES,
    METHODS,
    PATHS,
    POSTED,
    READ,
    TENSOR_CHANGES,
    UNKNOWN_PATHS,
    VALUES,
)
from tests.lives.exchange import JSON, NDJSON, Request

if TYPE_CHECKING:
    from collections.abc import Iterator


def bad_requests() -> Iterator[Request]:
    """Yield all of them; those that carry a good vector come with one of their own."""
    yield from _routes()
    yield from _bodies()
    yield from _values()
    yield from _headers()
    yield from _lines()
    yield from _tensors()
    yield from _frames()
    yield from _statistics()


def _routes() -> Iterator[Request]:
    yield from (
        Request(method, path)
        for path in PATHS
        for method in METHODS
        if (method, path) not in READ and method != "POST"
    )
    yield from (Request("POST", path, JSON, b"{}") for path in PATHS if path not in POSTED)
    yield from (Request(method, path) for path in UNKNOWN_PATHS for method in ("GET", "POST"))
    yield from (Request("GET", path) for path in BAD_READS)
    yield Request("TRACE", "/query")
    yield Request("QUERY", "/query")


def _bodies() -> Iterator[Request]:
    """Yield every body to every route that takes one."""
    for path in POSTED:
        media = NDJSON if path == "/query/stream" else JSON
        yield from (Request("POST", path, media, body) for body in BODIES)


def _values() -> Iterator[Request]:
    """Yield every value at every place of a vector, by order and by name."""
    names = ("age", "income", "group")
    for place, name in enumerate(names):
        for value in VALUES:
            vector: list[Any] = [*GOOD]
            vector[place] = value
            if value is None or (name == "group" and isinstance(value, str) and value):
                continue  # it is answered
            yield _query({"features": vector})
            yield _query({"features": dict(zip(names, vector, strict=True))})
    yield _query({"features": {"age": 1, "income": 2}})
    yield _query({"features": {"age": 1, "income": 2, "group": "rare", "more": 3}})
    yield _query({"features": {"Age": 1, "income": 2, "group": "rare"}})
    yield _query({"features": GOOD[:2]})
    yield _query({"features": [*GOOD, 1]})
    yield _query({"features": [GOOD]})


def _query(document: object, **headers: str) -> Request:
    return Request("POST", "/query", {**JSON, **headers}, json.dumps(document).encode())


def _headers() -> Iterator[Request]:
    """Yield media types, encodings, lengths, keys and hosts that do not fit."""
    body = json.dumps({"features": GOOD[:2]}).encode()
    for path in POSTED:
        for media in MEDIA_TYPES:
            yield Request("POST", path, {"content-type": media}, body)
        for coding in ("gzip", "deflate", "br", "gzip, gzip", "identity", "nonsense"):
            yield Request("POST", path, {**JSON, "content-encoding": coding}, body)
        yield Request(
            "POST", path, {**JSON, "content-encoding": "gzip"}, gzip.compress(b"{}", mtime=0)
        )
        bomb = gzip.compress(b" " * 6_000_000, mtime=0)
        yield Request("POST", path, {**JSON, "content-encoding": "gzip"}, bomb)
        yield Request("POST", path, {**JSON, "content-length": "5000000"}, body)
        yield Request("POST", path, {**JSON, "content-length": "nonsense"}, body)
        yield Request("POST", path, JSON, b" " * 4_300_000)
    for key in KEYS:
        yield _query({"features": GOOD[:2]}, **{"idempotency-key": key})
        yield Request("POST", "/query/stream", {**NDJSON, "idempotency-key": key}, body)
    pairs = [("content-type", "application/json"), *[("idempotency-key", "a")] * 2]
    yield Request("POST", "/query", pairs, body)
    yield from (
        Request(method, path, {**JSON, **headers}, body if method == "POST" else b"")
        for headers in HEADERS
        for method, path in (("POST", "/query"), ("GET", "/classifier"), ("GET", "/schema"))
    )


def _lines() -> Iterator[Request]:
    """Yield streams of bad lines, which are refused one by one."""
    lines = [body for body in BODIES if len(body) < 1000 and b"\n" not in body]
    # Of those that might be answered, none: the corpus changes nothing.
    bad = [line for line in lines if b"[1, 2" not in line]
    yield Request("POST", "/query/stream", NDJSON, b"\n".join(bad))
    yield Request("POST", "/query/stream", NDJSON, b"\r\n".join(bad))
    yield Request("POST", "/query/stream", NDJSON, b"\n\n\n")
    yield Request("POST", "/query/stream", NDJSON, b"x" * 300_000 + b"\n{}\n")
    yield Request(
        "POST", "/query/stream", NDJSON, tuple(line + b"\n" for line in bad if line.strip())
    )


def _tensor(name: str, data: list[Any], **changes: object) -> dict[str, Any]:
    kind = "BYTES" if name == "group" else "FP64"
    return {"name": name, "shape": [len(data)], "datatype": kind, "data": data, **changes}


def _tensors() -> Iterator[Request]:
    """Yield inference requests that do not fit the model."""
    good = [_tensor("age", [1.0]), _tensor("income", [2.0]), _tensor("group", ["common"])]
    documents: list[Any] = [
        {"inputs": None},
        {"inputs": []},
        {"inputs": {}},
        {"inputs": good[:2]},
        {"inputs": [*good, good[0]]},
        {"inputs": [*good, _tensor("more", [1])]},
        {"inputs": good, "outputs": [{"name": "none"}]},
        {"inputs": good, "outputs": 7},
        {"inputs": good, "id": 7},
        {"inputs": good, "parameters": 7},
    ]
    documents += [{"inputs": [good[0] | change, *good[1:]]} for change in TENSOR_CHANGES]
    documents += [{"inputs": [*good[:2], good[2] | change]} for change in TENSOR_CHANGES]
    for document in documents:
        yield Request("POST", INFER, JSON, json.dumps(document).encode())
    for length in ("0", "5", "99999", "-1", "x"):
        headers = {**JSON, "inference-header-content-length": length}
        yield Request("POST", INFER, headers, json.dumps({"inputs": good[:2]}).encode())


def _frames() -> Iterator[Request]:
    """Yield bodies that MLflow's protocol does not know."""
    columns = ["age", "income", "group"]
    for document in (
        {"rows": [GOOD]},
        {"dataframe_split": None},
        {"dataframe_split": {"columns": columns}},
        {"dataframe_split": {"columns": columns, "data": [[1]]}},
        {"dataframe_split": {"columns": columns[:2], "data": [[1, 2]]}},
        {"dataframe_split": {"columns": [*columns, "age"], "data": [[*GOOD, 1]]}},
        {"dataframe_records": 7},
        {"dataframe_records": [7]},
        {"dataframe_records": [{"age": 1}]},
        {"dataframe_records": [{"age": "x", "income": 1, "group": "rare"}]},
        {"instances": [[1]]},
        {"instances": [GOOD], "inputs": [GOOD]},
        {"inputs": {"age": [1], "income": []}},
        {"inputs": {"age": 1}},
        {"instances": [GOOD], "params": 7},
    ):
        yield Request("POST", "/invocations", JSON, json.dumps(document).encode())
    for table in (
        b"",
        b"age\n1\n",
        b"age,income,group\n1,2\n",
        b"age,income,group\nx,2,rare\n",
        b"age,income,group,age\n1,2,rare,1\n",
        b'age,income,group\n1,2,"rare\n',
        b"age,income,group\n\xff,2,rare\n",
        b"age,income,group\n" + b"1,2,3,4\n",
    ):
        yield Request("POST", "/invocations", CSV, table)


def _statistics() -> Iterator[Request]:
    """Yield hypotheses that are none."""
    leaf = {"label": "yes"}
    lists: tuple[Any, ...] = (
        None,
        7,
        {},
        [],
        [7],
        [{}],
        [{"tree": None}],
        [{"tree": {"label": "none"}}],
        [{"tree": leaf, "more": 1}],
        [{"tree": {"feature": 9, "at_least": 1, "true": leaf, "false": leaf}}],
        [{"tree": {"feature": 0, "true": leaf, "false": leaf}}],
        [{"tree": {"feature": 0, "at_least": "x", "true": leaf, "false": leaf}}],
        [{"tree": {"feature": 2, "at_least": 1, "true": leaf, "false": leaf}}],
        [{"tree": {"feature": 0, "at_least": 50, "true": leaf}}],
        [{"tree": leaf}] * 2000,
    )
    for hypotheses in lists:
        body = json.dumps({"hypotheses": hypotheses}).encode()
        yield Request("POST", "/statistics", JSON, body)
    yield Request("POST", "/statistics", JSON, b'{"hypothesis": []}')
