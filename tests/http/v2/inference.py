"""Requests of the Open Inference Protocol, made by hand, against the service in memory."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, Final

from app.data.schema import NumericFeature, Schema
from tests.http.doubles import MemoryService

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from tests.http.doubles import Http

MODEL: Final = f"/v2/models/{MemoryService.release_name}"
INFER: Final = f"{MODEL}/infer"
NUMERIC_SCHEMA: Final = Schema(
    label="income",
    classes=("<=50K", ">50K"),
    features=(
        NumericFeature(name="age", lower=17.0, upper=90.0),
        NumericFeature(name="hours", lower=0.0, upper=100.0),
    ),
)


def tensor(name: str, datatype: str, data: Sequence[object], **more: Any) -> dict[str, Any]:
    """Return an input of one value a row, its values in the JSON."""
    shape = [len(data), 1]
    return {"name": name, "shape": shape, "datatype": datatype, "data": list(data), **more}


def frame(*rows: tuple[object, object]) -> list[dict[str, Any]]:
    """Return the inputs of rows of an age and a class of work."""
    return [
        tensor("age", "FP64", [age for age, _ in rows]),
        tensor("workclass", "BYTES", [work for _, work in rows]),
    ]


def infer(http: Http, inputs: object, **more: Any) -> httpx.Response:
    """Post an inference in JSON; ``headers`` go beside it."""
    headers = more.pop("headers", {})
    return http.request("POST", INFER, json={"inputs": inputs, **more}, headers=headers)


def infer_binary(
    http: Http, inputs: Sequence[tuple[str, str, Sequence[int], bytes]], **more: Any
) -> httpx.Response:
    """Post an inference whose tensors follow the JSON: name, datatype, shape and bytes each."""
    tensors = [
        {
            "name": name,
            "shape": list(shape),
            "datatype": datatype,
            "parameters": {"binary_data_size": len(raw)},
        }
        for name, datatype, shape, raw in inputs
    ]
    document = json.dumps({"inputs": tensors, **more}).encode()
    body = b"".join([document, *(raw for *_, raw in inputs)])
    headers = {"Inference-Header-Content-Length": str(len(document))}
    return http.request("POST", INFER, content=body, headers=headers)


def elements(*texts: bytes) -> bytes:
    """Return a binary BYTES tensor."""
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def outputs_of(reply: httpx.Response) -> dict[str, list[Any]]:
    """Return the data of each output of a reply in JSON, whose shapes must be theirs."""
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    outputs = reply.json()["outputs"]
    assert all(output["shape"] == [len(output["data"])] for output in outputs)
    return {output["name"]: output["data"] for output in outputs}
