"""Whatever is posted as an inference or an invocation, nothing breaks or is charged in vain."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.http.doubles import Http
from tests.http.v2.inference import INFER, elements, frame, infer_binary

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each case is a request through the whole application; a tenth of a second pays for 100.
CASES = settings(max_examples=150)
SCALARS = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-(2**70), 2**70),
    some.floats(),
    some.text(max_size=5),
)
VALUES = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3),
    max_leaves=6,
)
NAMES = some.sampled_from(["age", "workclass", "features", "sex", ""]) | some.text(max_size=3)
DATATYPES = some.sampled_from(
    ["FP64", "FP32", "FP16", "INT8", "INT64", "UINT8", "UINT64", "BYTES", "BOOL", "BF16", "fp64"]
)
SHAPES = some.lists(some.integers(-1, 3) | some.just(2**63), max_size=3)
SIZES = some.fixed_dictionaries({"binary_data_size": some.integers(-1, 40)})
TENSORS = some.fixed_dictionaries(
    {"name": NAMES, "shape": SHAPES, "datatype": DATATYPES},
    optional={"data": some.lists(VALUES, max_size=4), "parameters": some.none() | SIZES | VALUES},
)
OUTPUTS = some.lists(
    some.fixed_dictionaries(
        {"name": some.sampled_from(["label", "stable", "query_id", "score"])},
        optional={"parameters": some.dictionaries(some.just("binary_data"), VALUES)},
    ),
    max_size=3,
)
REQUESTS = some.fixed_dictionaries(
    {"inputs": some.lists(TENSORS, max_size=3) | VALUES},
    optional={"outputs": OUTPUTS | VALUES, "id": VALUES, "parameters": VALUES},
)
SPLITS = some.fixed_dictionaries(
    {"columns": some.lists(NAMES), "data": some.lists(some.lists(VALUES))}
)
LENGTHS = some.none() | some.integers(-1, 300)
FORMS = some.dictionaries(
    some.sampled_from(
        ["dataframe_split", "dataframe_records", "instances", "inputs", "params", "more"]
    ),
    VALUES
    | some.lists(some.lists(SCALARS, min_size=2, max_size=2), max_size=3)
    | some.fixed_dictionaries(
        {"columns": some.lists(NAMES), "data": some.lists(some.lists(VALUES))}
    ),
    max_size=2,
)


@pytest.fixture(scope="module")
def http() -> Iterator[Http]:
    """Return one application for all cases; what it answered is forgotten before each."""
    with Http(queries_max=10**9) as made:
        yield made


def post(http: Http, path: str, body: bytes, headers: dict[str, str]) -> int:
    """Post a body; the reply is the protocol's, and only a success asked anything."""
    http.service.windows.clear()
    reply = http.request("POST", path, content=body, headers=headers)
    document: dict[str, Any] = {} if "octet" in reply.headers["content-type"] else reply.json()
    if reply.status_code == 200:
        assert "error" not in document
    else:
        assert reply.status_code in {400, 413, 415, 422}, reply.text
        assert http.service.windows == []
        assert set(document) == {"error"} if path == INFER else "detail" in document
    return reply.status_code


@CASES
@given(
    request=REQUESTS, binary=some.binary(max_size=40), length=some.none() | some.integers(-1, 300)
)
def test_no_inference_breaks_the_server(
    http: Http, request: dict[str, Any], binary: bytes, length: int | None
) -> None:
    """Tensors of any names, shapes, types, values and sizes are answered, or refused uncharged."""
    document = json.dumps(request).encode()
    said = len(document) if length is None else length
    headers = {"Inference-Header-Content-Length": str(said)} if binary or length else {}
    post(http, INFER, document + binary, headers)


@CASES
@given(form=FORMS)
def test_no_invocation_breaks_the_server(http: Http, form: dict[str, Any]) -> None:
    """Frames of any form are answered, or refused uncharged."""
    post(http, "/invocations", json.dumps(form).encode(), {"Content-Type": "application/json"})


@CASES
@given(table=some.binary(max_size=60) | some.text('age,workclss\n\r"1?', max_size=60))
def test_no_table_breaks_the_server(http: Http, table: bytes | str) -> None:
    """A CSV of any bytes is answered, or refused uncharged."""
    body = table if isinstance(table, bytes) else ("age,workclass\n" + table).encode()
    post(http, "/invocations", body, {"Content-Type": "text/csv"})


@CASES
@given(body=some.binary(max_size=80), encoding=some.sampled_from(["gzip", "deflate", "identity"]))
def test_no_bytes_break_the_server(http: Http, body: bytes, encoding: str) -> None:
    """A body of any bytes, compressed or not, is refused, or answered where it is a request."""
    post(http, INFER, body, {"Content-Encoding": encoding})


@CASES
@given(
    cut=some.integers(0, 400),
    byte=some.integers(0, 255),
    rows=some.lists(
        some.tuples(
            some.floats(allow_nan=False, allow_infinity=False),
            some.text(some.characters(codec="utf-8"), max_size=5),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_one_byte_more_or_less_breaks_nothing(
    http: Http, cut: int, byte: int, rows: list[tuple[float, str]]
) -> None:
    """A good request is answered; with a byte changed it is answered or refused uncharged."""
    body = json.dumps({"inputs": frame(*rows)}).encode()
    assert post(http, INFER, body, {}) == 200
    place = cut % len(body)
    post(http, INFER, body[:place] + bytes([byte]) + body[place + 1 :], {})
    post(http, INFER, body[:place], {})


@CASES
@given(
    numbers=some.lists(some.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    texts=some.lists(some.text(some.characters(codec="utf-8"), max_size=5), min_size=5, max_size=5),
)
def test_binary_and_json_are_the_same_queries(
    http: Http, numbers: list[float], texts: list[str]
) -> None:
    """A batch has the same vectors by either form, bit for bit."""
    rows = list(zip(numbers, texts, strict=False))
    post(http, INFER, json.dumps({"inputs": frame(*rows)}).encode(), {})
    asked = dict(http.service.answers)
    raw = struct.pack(f"<{len(rows)}d", *numbers)
    work = elements(*(text.encode() for _, text in rows))
    reply = infer_binary(
        http, [("age", "FP64", (len(rows),), raw), ("workclass", "BYTES", (len(rows),), work)]
    )
    assert reply.status_code == 200
    assert http.service.answers == asked
