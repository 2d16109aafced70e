"""Tensors of the Open Inference Protocol: datatypes, shapes, binary parts, and what is refused."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.data.schema import CategoricalFeature
from tests.http.doubles import SCHEMA, Http
from tests.http.v2.inference import (
    INFER,
    NUMERIC_SCHEMA,
    elements,
    frame,
    infer,
    infer_binary,
    outputs_of,
    tensor,
)

WORK = tensor("workclass", "BYTES", ["Private", "Private"])
NUMPY: dict[str, Any] = {
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    **{f"INT{bits}": np.dtype(f"int{bits}").type for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": np.dtype(f"uint{bits}").type for bits in (8, 16, 32, 64)},
}


def vectors(http: Http) -> list[tuple[Any, ...]]:
    """Return the vectors that were asked, in order."""
    return list(http.service.answers)


@pytest.mark.parametrize("datatype", NUMPY)
def test_takes_every_number_type_in_json_and_in_binary(datatype: str) -> None:
    """Any FP and INT type is the same float64 vector, by either form."""
    numbers = np.array([41, 7], NUMPY[datatype])
    with Http() as http:
        posted = infer(http, [tensor("age", datatype, numbers.tolist()), WORK])
        binary = infer_binary(
            http,
            [
                ("age", datatype, (2, 1), numbers.tobytes()),
                ("workclass", "BYTES", (2,), elements(b"Private", b"Private")),
            ],
        )
        assert vectors(http) == [(41.0, "Private"), (7.0, "Private")]
    assert outputs_of(binary) == outputs_of(posted)


@pytest.mark.parametrize(
    ("datatype", "values", "raw", "name"),
    [
        ("INT64", [7], struct.pack("<q", 7), "7"),
        ("FP64", [7.0], struct.pack("<d", 7.0), "7"),
        ("BOOL", [True], b"\1", "True"),
        ("BOOL", [0], b"\0", "False"),
    ],
)
def test_a_category_may_be_a_number_or_a_boolean(
    datatype: str, values: list[object], raw: bytes, name: str
) -> None:
    """In JSON and in binary it is the name that the same value has in a source."""
    age = struct.pack("<d", 41.0)
    with Http() as http:
        workclass = CategoricalFeature(name="workclass", categories=("7", "True", "False"))
        http.service.schema = replace(SCHEMA, features=(SCHEMA.features[0], workclass))
        infer(http, [tensor("age", "FP64", [41]), tensor("workclass", datatype, values)])
        inputs = [("age", "FP64", (1, 1), age), ("workclass", datatype, (1,), raw)]
        infer_binary(http, inputs)
        assert vectors(http) == [(41.0, name)]


def test_a_binary_fraction_is_taken_as_its_type_has_it() -> None:
    """A float32 stands for the float64 that it is, not for what it was rounded from."""
    with Http() as http:
        raw = np.array([0.1], np.float32).tobytes()
        infer_binary(
            http, [("age", "FP32", (1, 1), raw), ("workclass", "BYTES", (1,), elements(b"x"))]
        )
        assert vectors(http) == [(float(np.float32(0.1)), "x")]


def test_a_json_number_is_taken_as_it_is_written() -> None:
    """0.1 is the float64 that /query reads, whatever FP type is said."""
    with Http() as http:
        infer(http, [tensor("age", "FP32", [0.1]), tensor("workclass", "BYTES", ["x"])])
        assert http.ask([0.1, "x"]).json()["replayed"]


def test_a_matrix_is_cut_into_rows() -> None:
    """All-numeric vectors are rows of one tensor, flat, nested or binary."""
    matrix = np.array([[1.5, 2.0], [3.0, 4.0], [-0.0, 6.0]])
    shape = [3, 2]
    with Http() as http:
        http.service.schema = NUMERIC_SCHEMA
        named = {"name": "features", "shape": shape, "datatype": "FP64"}
        flat = infer(http, [{**named, "data": matrix.ravel().tolist()}])
        assert vectors(http) == [(1.5, 2.0), (3.0, 4.0), (0.0, 6.0)]
        nested = infer(http, [{**named, "data": matrix.tolist()}])
        binary = infer_binary(http, [("features", "FP64", shape, matrix.tobytes())])
        assert len(vectors(http)) == 3
    assert outputs_of(flat) == outputs_of(nested) == outputs_of(binary)


def test_inputs_come_in_any_order_and_either_shape() -> None:
    """Inputs are found by name; [N] stands for [N, 1]."""
    with Http() as http:
        infer(http, [WORK | {"shape": [2]}, tensor("age", "FP64", [1, 2], shape=[2])])
        nested = tensor("age", "FP64", [[1], [2]])
        assert outputs_of(infer(http, [nested, WORK]))["query_id"] == [1, 2]


def test_binary_parts_are_cut_in_the_order_of_the_request() -> None:
    """A binary input may stand before or behind one in JSON."""
    raw = np.array([1.0, 2.0]).tobytes()
    for names in (["age", "workclass"], ["workclass", "age"]):
        parts = {
            "age": ("age", "FP64", (2,), raw),
            "workclass": ("workclass", "BYTES", (2,), elements("é".encode(), b"")),
        }
        with Http() as http:
            infer_binary(http, [parts[name] for name in names])
            assert vectors(http) == [(1.0, "é"), (2.0, "")]


def test_null_is_missing_in_json() -> None:
    """Null stands for a missing value, as in /query."""
    with Http() as http:
        infer(http, frame((None, None)))
        assert http.ask([None, None]).json()["replayed"]


def test_gives_binary_outputs_where_they_are_asked_for() -> None:
    """The request's default holds for outputs that say nothing; each may say otherwise."""
    with Http() as http:
        reply = infer(
            http,
            frame((41, "Private"), (None, "x")),
            parameters={"binary_data_output": True},
            outputs=[
                {"name": "label"},
                {"name": "query_id", "parameters": {"binary_data": False}},
                {"name": "stable"},
            ],
        )
    assert reply.headers["content-type"] == "application/octet-stream"
    length = int(reply.headers["inference-header-content-length"])
    label, query_id, stable = json.loads(reply.content[:length])["outputs"]
    assert query_id["data"] == [1, 2]
    assert label["parameters"] == {"binary_data_size": 12}
    assert "data" not in label
    assert stable["parameters"] == {"binary_data_size": 2}
    assert reply.content[length:] == elements(b">50K", b"") + b"\1\0"


def test_one_output_alone_may_be_binary() -> None:
    """Without a default an output's own wish counts; INT64 is little-endian."""
    with Http() as http:
        wish = [{"name": "query_id", "parameters": {"binary_data": True}}, {"name": "label"}]
        reply = infer(http, frame((41, "Private")), outputs=wish)
    length = int(reply.headers["inference-header-content-length"])
    assert reply.content[length:] == struct.pack("<q", 1)


UNFIT: dict[str, tuple[list[Any], str]] = {
    "a boolean tensor": ([tensor("age", "BOOL", [True, False]), WORK], "age: takes an FP or INT"),
    "texts for numbers": ([tensor("age", "BYTES", ["1", "2"]), WORK], "age: takes an FP or INT"),
    "no datatype": (
        [tensor("age", "FP64", [1, 2]), tensor("workclass", "INT4", [1, 2])],
        "workclass: takes BYTES, BOOL, or an FP or INT datatype",
    ),
    "numeric strings": ([tensor("age", "FP64", ["1", "2"]), WORK], "age: must be a number"),
    "booleans": ([tensor("age", "INT8", [True, False]), WORK], "age: must be a number"),
    "a fraction as INT64": ([tensor("age", "INT64", [1, 1.5]), WORK], "age: holds a number"),
    "too large an INT8": ([tensor("age", "INT8", [1, 128]), WORK], "age: holds a number"),
    "a negative UINT": ([tensor("age", "UINT64", [1, -1]), WORK], "age: holds a number"),
    "too large a number": ([tensor("age", "FP64", [1, 10**400]), WORK], "age: must be a finite"),
    "an unknown input": ([*frame((1, "x")), tensor("sex", "BYTES", ["f"])], "sex: is not an"),
    "an absent input": ([WORK], "age: is an input that is absent"),
    "no inputs": ([], "age: is an input that is absent"),
    "no boolean": (
        [tensor("age", "FP64", [1]), tensor("workclass", "BOOL", [2])],
        "workclass: holds a value that is no BOOL",
    ),
    "a table among texts": (
        [tensor("age", "FP64", [1]), tensor("workclass", "BYTES", [{}])],
        "workclass: must be a string",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_names_the_feature_that_does_not_fit(case: str) -> None:
    """What does not fit the schema is 422 by the feature's name, and uncharged."""
    inputs, text = UNFIT[case]
    with Http() as http:
        reply = infer(http, inputs)
        assert reply.status_code == 422, reply.text
        assert reply.json()["error"].startswith(text)
        assert http.service.windows == []


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_names_the_feature_of_a_number_that_is_none(token: str) -> None:
    """A client whose JSON has NaN is told the feature, as a binary NaN is."""
    body = json.dumps({"inputs": frame((1, "x"))}).replace("[1]", f"[{token}]")
    with Http() as http:
        posted = http.request("POST", INFER, content=body)
        raw = np.array([float(token)]).tobytes()
        work = ("workclass", "BYTES", (1,), elements(b"x"))
        binary = infer_binary(http, [("age", "FP64", (1,), raw), work])
        assert http.service.windows == []
    assert (posted.status_code, binary.status_code) == (422, 422)
    assert posted.json() == binary.json() == {"error": "age: must be a finite number"}


def test_bytes_must_be_text() -> None:
    """An element that is not UTF-8 is refused by its feature."""
    with Http() as http:
        age = ("age", "FP64", (1,), np.ones(1).tobytes())
        reply = infer_binary(http, [age, ("workclass", "BYTES", (1,), elements(b"\xff"))])
    assert (reply.status_code, reply.json()) == (422, {"error": "workclass: must be UTF-8 text"})


AGE: dict[str, Any] = {"name": "age", "datatype": "FP64"}
MALFORMED: dict[str, list[Any]] = {
    "fewer values than the shape": [AGE | {"shape": [3, 1], "data": [1, 2]}, WORK],
    "a negative shape": [AGE | {"shape": [-1, 1], "data": []}, WORK],
    "a wide shape": [AGE | {"shape": [1, 2], "data": [1, 2]}, WORK],
    "no shape": [AGE | {"shape": [], "data": [1]}, WORK],
    "three dimensions": [AGE | {"shape": [2, 1, 1], "data": [1, 2]}, WORK],
    "an endless shape": [AGE | {"shape": [10**18, 1], "data": [1, 2]}, WORK],
    "different numbers of rows": [tensor("age", "FP64", [1]), WORK],
    "an input twice": [*frame((1, "x")), tensor("age", "FP64", [1])],
    "no values": [AGE | {"shape": [2, 1]}, WORK],
    "values twice": [tensor("age", "FP64", [1, 2], parameters={"binary_data_size": 0}), WORK],
    "more bytes than there are": [
        AGE | {"shape": [2], "parameters": {"binary_data_size": 16}},
        WORK,
    ],
    "a negative size": [AGE | {"shape": [2], "parameters": {"binary_data_size": -8}}, WORK],
    "uneven nesting": [AGE | {"shape": [2, 1], "data": [[1], [2, 3]]}, WORK],
    "nesting that stops": [AGE | {"shape": [2, 1], "data": [[1], 2]}, WORK],
}


@pytest.mark.parametrize("case", MALFORMED)
def test_refuses_tensors_that_contradict_themselves(case: str) -> None:
    """Shapes, sizes and values that do not go together are malformed, and uncharged."""
    with Http() as http:
        reply = infer(http, MALFORMED[case])
        assert reply.status_code == 400, reply.text
        assert set(reply.json()) == {"error"}
        assert http.service.windows == []


@pytest.mark.parametrize(
    "raw", [b"\1", b"\1\0\0\0", struct.pack("<I", 2**32 - 1) + b"x", elements(b"a", b"b"), b""]
)
def test_refuses_binary_texts_that_do_not_end(raw: bytes) -> None:
    """An element that is cut, too long or one too many is malformed."""
    with Http() as http:
        age = ("age", "FP64", (1,), np.ones(1).tobytes())
        reply = infer_binary(http, [age, ("workclass", "BYTES", (1,), raw)])
    assert (reply.status_code, set(reply.json())) == (400, {"error"})


def test_refuses_bytes_behind_the_last_tensor() -> None:
    """What no input speaks for is not passed over."""
    document = json.dumps({"inputs": frame((1, "x"))}).encode()
    headers = {"Inference-Header-Content-Length": str(len(document))}
    with Http() as http:
        reply = http.request("POST", INFER, content=document + b"x", headers=headers)
    assert reply.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"inputs": 1}',
        b'{"inputs": [1]}',
        b'{"inputs": [{"name": "age"}]}',
        b'{"inputs": [' + b"[" * 20_000,
        b'{"inputs": [], "inputs": []}',
        b'{"inputs": [], "id": 7}',
        b'{"inputs": [], "outputs": "label"}',
        b'\xef\xbb\xbf{"inputs": []}',
        b'{"inputs": "\xff"}',
    ],
)
def test_refuses_what_is_no_inference_request(body: bytes) -> None:
    """A body of another shape is refused, in the protocol's form."""
    with Http() as http:
        reply = http.request("POST", INFER, content=body)
        assert http.service.windows == []
    assert reply.status_code in {400, 422}
    assert set(reply.json()) == {"error"}


@pytest.mark.parametrize("member", ["name", "shape", "datatype", "data", "inputs"])
def test_refuses_a_member_named_twice(member: str) -> None:
    """A body with two meanings is refused."""
    text = json.dumps({"inputs": frame((1, "x"))})
    first = f'"{member}": '
    at = text.index(first)
    value = json.JSONDecoder().raw_decode(text, at + len(first))[0]
    doubled = f"{text[:at]}{first}{json.dumps(value)}, {text[at:]}"
    with Http() as http:
        reply = http.request("POST", INFER, content=doubled)
        assert http.service.windows == []
    assert reply.status_code == 400


def test_an_id_that_is_no_text_is_refused() -> None:
    """A lone surrogate, which no reply could give back, is refused before anything is asked."""
    body = json.dumps({"id": "\ud800", "inputs": frame((1, "x"))})
    with Http() as http:
        reply = http.request("POST", INFER, content=body)
        assert http.service.windows == []
    assert reply.status_code == 400
