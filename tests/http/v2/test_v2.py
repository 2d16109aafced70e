"""The Open Inference Protocol: metadata, probes, batches, selection, and its form of refusals."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from app.answering.answers import Answer
from app.answering.service_slot import OPENING, STOPPED
from app.errors import InvariantError, KeyLimitError, LedgerUnavailableError
from app.http.limits import Limits
from app.http.problems import NO_SUCH_PATH
from app.http.protocols.mlflow import ONE_ROW
from app.http.protocols.v2 import NO_SUCH_MODEL
from app.http.protocols.v2_body import HEADER_LENGTH_SHAPE
from tests.http.doubles import CONFLICT, EXHAUSTED, KEY_RING, Http
from tests.http.v2.inference import INFER, MODEL, NUMERIC_SCHEMA, frame, infer, outputs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = ((41, "Private"), (None, "Private"), (20, "State-gov"))


def error(text: str) -> dict[str, str]:
    """Return the body of a refusal."""
    return {"error": text}


def test_tells_the_server_and_its_extension() -> None:
    """A client finds the name, a version and the binary extension."""
    with Http() as http:
        told = http.get("/v2").json()
    assert told["name"] == "conclave"
    assert told["extensions"] == ["binary_tensor_data"]


def test_tells_one_input_a_feature_where_some_are_categorical() -> None:
    """Numbers are FP64, categories BYTES, a column each."""
    with Http() as http:
        told = http.get(MODEL).json()
    assert told["name"] == "adult-income"
    assert told["inputs"] == [
        {"name": "age", "datatype": "FP64", "shape": [-1, 1]},
        {"name": "workclass", "datatype": "BYTES", "shape": [-1, 1]},
    ]
    assert told["outputs"] == [
        {"name": "label", "datatype": "BYTES", "shape": [-1]},
        {"name": "stable", "datatype": "BOOL", "shape": [-1]},
        {"name": "query_id", "datatype": "INT64", "shape": [-1]},
    ]


def test_tells_one_matrix_where_all_features_are_numeric() -> None:
    """All numbers of a row are one input."""
    with Http() as http:
        http.service.schema = NUMERIC_SCHEMA
        told = http.get(MODEL).json()
    assert told["inputs"] == [{"name": "features", "datatype": "FP64", "shape": [-1, 2]}]


def test_probes_follow_the_release() -> None:
    """Live is always said; ready only of an open release, to whoever asks, by its name."""
    with Http(keys=KEY_RING) as http:
        assert http.get("/v2/health/live").json() == {"live": True}
        assert http.get("/v2/health/ready").json() == {"ready": True}
        assert http.get(f"{MODEL}/ready").json() == {"name": "adult-income", "ready": True}
        assert http.get("/v2/models/another/ready").status_code == 404
        http.slot.stop()
        assert http.get("/v2/health/live").status_code == 200
        assert http.get("/v2/health/ready").json() == error(STOPPED)
    with Http(is_open=False) as http:
        for path in ("/v2/health/ready", f"{MODEL}/ready", MODEL):
            reply = http.get(path)
            assert (reply.status_code, reply.json()) == (503, error(OPENING))
            assert "retry-after" in reply.headers


def test_answers_a_batch_row_by_row() -> None:
    """Labels, whether they are stable, and numbers come in the order of the rows."""
    with Http() as http:
        reply = infer(http, frame(*ROWS), id="a-1")
        again = infer(http, frame(*ROWS))
        single = http.ask([41, "Private"]).json()
    assert outputs_of(reply) == {
        "label": [">50K", "", "<=50K"],
        "stable": [True, False, True],
        "query_id": [1, 2, 3],
    }
    assert reply.json()["model_name"] == "adult-income"
    assert reply.json()["id"] == "a-1"
    assert "id" not in again.json()
    assert outputs_of(again) == outputs_of(reply)
    assert single["replayed"]
    assert single["query_id"] == 1


def test_gives_the_outputs_that_are_asked_for() -> None:
    """Outputs are selected and ordered by the request; an empty selection is none."""
    with Http() as http:
        chosen = infer(http, frame(*ROWS), outputs=[{"name": "query_id"}, {"name": "label"}])
        everything = infer(http, frame(*ROWS), outputs=[])
    assert list(outputs_of(chosen)) == ["query_id", "label"]
    assert list(outputs_of(everything)) == ["label", "stable", "query_id"]


@pytest.mark.parametrize(
    "outputs",
    [
        [{"name": "score"}],
        [{"name": "label"}, {"name": "label"}],
        [{"name": "label", "parameters": {"classification": 2}}],
        [{"name": "label", "parameters": {"shared_memory_region": "here"}}],
    ],
)
def test_refuses_outputs_that_are_not_there(outputs: list[Any]) -> None:
    """An unknown output, one asked for twice, and what tensors cannot carry are refused."""
    with Http() as http:
        reply = infer(http, frame(*ROWS), outputs=outputs)
        assert reply.status_code == 400
        assert set(reply.json()) == {"error"}
        assert http.service.answers == {}


def test_passes_over_what_clients_add() -> None:
    """KServe's model_name, sequence numbers and priorities change nothing."""
    parameters = {"sequence_id": 4, "priority": 1, "binary_data_output": False}
    with Http() as http:
        reply = infer(http, frame(*ROWS), model_name="x", parameters=parameters, outputs=None)
    assert outputs_of(reply)["query_id"] == [1, 2, 3]


@pytest.mark.parametrize("ignored", ["1" * 5000, *("[" * d + "]" * d for d in range(900, 1000, 5))])
def test_refuses_what_only_one_parser_reads(ignored: str) -> None:
    """An ignored member that cannot be searched for repeated names is no failure of the server."""
    body = json.dumps({"inputs": frame(*ROWS)})[:-1] + f', "name": 1, "ignored": {ignored}}}'
    with Http() as http:
        headers = {"content-type": "application/json"}
        reply = http.request("POST", INFER, content=body, headers=headers)
        assert reply.status_code in (200, 400)
    assert set(reply.json()) in ({"error"}, {"model_name", "outputs"})


def test_rows_after_a_halt_are_empty() -> None:
    """A row that came too late has "", false and 0; earlier ones keep their answers."""
    with Http(queries_max=2) as http:
        partly = outputs_of(infer(http, frame(*ROWS)))
        assert partly == {
            "label": [">50K", "", ""],
            "stable": [True, False, False],
            "query_id": [1, 2, 0],
        }
        turned = outputs_of(infer(http, frame(ROWS[2], ROWS[0])))
        assert turned["query_id"] == [0, 1]


def test_a_batch_without_an_answer_is_gone() -> None:
    """Where no row has an answer the request is refused."""
    with Http(queries_max=0) as http:
        reply = infer(http, frame(*ROWS))
    assert (reply.status_code, reply.json()) == (410, error(EXHAUSTED))


@pytest.mark.parametrize("answered_count", [2, 0])
def test_rows_after_a_keys_limit_are_empty(answered_count: int) -> None:
    """A key's limit ends a batch as a halt does: with what it got, or a refusal."""
    with Http() as http:
        answer_many = http.service.answer_many

        async def answer_some(queries: Any) -> Any:
            answers = await answer_many(queries)
            return [*answers[:answered_count], *[KeyLimitError("no more")] * (3 - answered_count)]

        http.service.answer_many = answer_some  # type: ignore[method-assign]  # a key's limit
        reply = infer(http, frame(*ROWS))
    if answered_count:
        assert outputs_of(reply)["query_id"] == [1, 2, 0]
    else:
        assert (reply.status_code, reply.json()) == (429, error("no more"))


def test_the_classifiers_answers_have_no_number() -> None:
    """After the switch a row is stable and its number is 0, as there is none to be charged."""
    with Http() as http:

        async def classify(queries: Sequence[object]) -> list[Answer]:
            return [
                Answer(None, "<=50K", stable=True, phase="classifier", replayed=False)
                for _ in range(len(queries))
            ]

        http.service.answer_many = classify  # type: ignore[method-assign,assignment]  # the switch
        outputs = outputs_of(infer(http, frame(*ROWS)))
    assert outputs == {"label": ["<=50K"] * 3, "stable": [True] * 3, "query_id": [0] * 3}


def test_no_rows_are_no_answers() -> None:
    """A batch of nothing is answered by nothing, also once the release has halted."""
    with Http(queries_max=0) as http:
        assert outputs_of(infer(http, frame())) == {"label": [], "stable": [], "query_id": []}


def test_validates_the_whole_before_anything_is_charged() -> None:
    """One bad row refuses all, by its number and feature; nothing is asked."""
    with Http() as http:
        reply = infer(http, frame(*ROWS, (True, "Private")))
        assert reply.status_code == 422
        assert reply.json() == error("age: must be a number or null (rows[3])")
        assert http.service.windows == []


def test_a_row_alone_is_not_numbered() -> None:
    """What is wrong with a single row is said as of one query."""
    with Http() as http:
        reply = infer(http, frame(("old", "Private")))
    assert reply.json() == error("age: must be a number, not a string")


def test_long_batches_are_asked_in_parts_and_bounded() -> None:
    """The writer gets no more than a window at once; too many rows are refused uncharged."""
    rows = [(age, "Private") for age in range(1100)]
    with Http(limits=Limits(batch_rows_max=1100), queries_max=2000) as http:
        assert outputs_of(infer(http, frame(*rows)))["query_id"] == list(range(1, 1101))
        assert http.service.windows == [512, 512, 76]
        assert infer(http, frame(*rows, (1, "Private"))).status_code == 413
        assert len(http.service.windows) == 3


def test_a_key_is_for_one_row() -> None:
    """An Idempotency-Key binds one vector; with two rows it is refused before the first."""
    key = {"Idempotency-Key": "k"}
    with Http() as http:
        assert outputs_of(infer(http, frame(ROWS[0]), headers=key))["query_id"] == [1]
        conflict = infer(http, frame(ROWS[2]), headers=key)
        two = infer(http, frame(*ROWS), headers=key)
        assert len(http.service.answers) == 1
    assert (conflict.status_code, conflict.json()) == (409, error(CONFLICT))
    assert (two.status_code, two.json()) == (400, error(ONE_ROW))


@pytest.mark.parametrize(
    ("failure", "status"), [(LedgerUnavailableError("down"), 503), (InvariantError("secret"), 500)]
)
def test_failures_have_the_protocols_form(failure: Exception, status: int) -> None:
    """What is not the client's fault is told in the same form, and no secret with it."""
    with Http() as http:
        http.service.failure = failure
        reply = infer(http, frame(*ROWS))
    assert (reply.status_code, set(reply.json())) == (status, {"error"})
    assert "secret" not in reply.text


def test_a_failure_amid_a_batch_says_what_is_recorded() -> None:
    """Rows that were answered before a failure are counted, so that asking again is sensible."""
    rows = [(age, "Private") for age in range(600)]
    with Http() as http:
        answer_many = http.service.answer_many

        async def fail_later(queries: Any) -> Any:
            if http.service.windows:
                http.service.failure = LedgerUnavailableError("down")
            return await answer_many(queries)

        http.service.answer_many = fail_later  # type: ignore[method-assign]  # the fault
        reply = infer(http, frame(*rows))
    assert reply.status_code == 503
    assert reply.json()["error"].startswith("down; 512 rows of this request are answered")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/no-such-path", 404),
        ("GET", "/v2/models/adult-income/versions/1", 404),
        ("GET", INFER, 405),
        ("DELETE", "/v2", 405),
    ],
)
def test_the_routers_refusals_have_the_protocols_form(method: str, path: str, status: int) -> None:
    """A path or a method that is not there is said as the protocol says errors."""
    with Http() as http:
        reply = http.request(method, path)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/json"
    assert set(reply.json()) == {"error"}
    assert ("allow" in reply.headers) == (status == 405)


def test_refuses_another_model() -> None:
    """There is one model; another name is not found, whatever the body."""
    with Http() as http:
        reply = http.request("POST", "/v2/models/other/infer", content=b"{")
        assert (reply.status_code, reply.json()) == (404, error(NO_SUCH_MODEL))
        assert http.get("/v2x").json()["detail"] == NO_SUCH_PATH


def test_needs_a_key_where_there_are_keys() -> None:
    """Without a key the refusal has the protocol's form and both challenges."""
    with Http(keys=KEY_RING) as http:
        reply = infer(http, frame(*ROWS))
    assert reply.status_code == 401
    assert set(reply.json()) == {"error"}
    assert len(reply.headers.get_list("www-authenticate")) == 2


@pytest.mark.parametrize("kind", [None, "application/json", "application/octet-stream"])
def test_takes_bodies_of_these_types(kind: str | None) -> None:
    """No type is needed; clients send JSON or octets."""
    headers = {} if kind is None else {"Content-Type": kind}
    body = json.dumps({"inputs": frame(*ROWS)}).encode()
    with Http() as http:
        assert outputs_of(http.request("POST", INFER, content=body, headers=headers))


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "text/csv"}, {"Content-Encoding": "br"}], ids=str
)
def test_refuses_other_types_and_encodings(headers: dict[str, str]) -> None:
    """Another type, or a compression that is not known, is refused unread."""
    with Http() as http:
        reply = http.request("POST", INFER, content=b"{}", headers=headers)
    assert (reply.status_code, set(reply.json())) == (415, {"error"})


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress)],
    ids=["gzip", "upper case", "deflate"],
)
def test_takes_compressed_bodies(encoding: str, compress: Any) -> None:
    """Both compressions that tritonclient can send are read."""
    body = compress(json.dumps({"inputs": frame(*ROWS)}).encode())
    with Http() as http:
        reply = http.request("POST", INFER, content=body, headers={"Content-Encoding": encoding})
    assert outputs_of(reply)["query_id"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"not gzip", 400),
        (gzip.compress(b'{"inputs": []}')[:-4], 400),
        (gzip.compress(b"{}") + b"more", 400),
        (gzip.compress(bytes(10_000_000)), 413),
    ],
    ids=["broken", "cut", "lengthened", "a bomb"],
)
def test_refuses_what_does_not_decompress(body: bytes, status: int) -> None:
    """Broken, cut or lengthened streams are malformed, and a bomb is too large."""
    with Http(limits=Limits(body_bytes_max=100_000)) as http:
        reply = http.request("POST", INFER, content=body, headers={"Content-Encoding": "gzip"})
    assert (reply.status_code, set(reply.json())) == (status, {"error"})


@pytest.mark.parametrize("length", ["", "-1", "1.0", "10000", "9" * 30, "\u00b2"])
def test_refuses_a_header_length_that_is_none(length: str) -> None:
    """The length of the JSON is a whole number of at most the body's."""
    headers = [(b"Inference-Header-Content-Length", length.encode("latin-1"))]
    with Http() as http:
        reply = http.request("POST", INFER, content=b'{"inputs": []}', headers=headers)
    assert (reply.status_code, reply.json()) == (400, error(HEADER_LENGTH_SHAPE))
