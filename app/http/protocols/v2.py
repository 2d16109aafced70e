"""``/v2``: the Open Inference Protocol, for clients of Triton, KServe and MLServer.

The outputs of an inference: labels, whether they are stable, and their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from app.answering.types import Edge, Step
from app.http.access.door import asker_of
from app.http.problems import NotFoundError
from app.http.protocols.mlflow import answer_rows, as_queries
from app.http.protocols.v2_body import header_length, parse_inference
from app.http.protocols.v2_tensors import BOOL, BYTES, INT64, declared_inputs, pack
from app.http.query.query_body import idempotency_key
from app.http.version import VERSION
from app.http.wire.bodies import (
    ENCODINGS,
    JSON,
    OCTETS,
    check_media_type,
    content_encoding,
    inflate,
    read_body,
)
from app.http.wire.fast import JsonReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from app.answering.service import ConclaveService
    from app.answering.types import Answer
    from app.http.endpoint import Api
    from app.http.protocols.v2_body import Inference

LABEL: Final = "label"
STABLE: Final = "stable"
QUERY_ID: Final = "query_id"
OUTPUTS: Final = {LABEL: BYTES, STABLE: BOOL, QUERY_ID: INT64}

Values = list[str] | list[bool] | list[int]


class OutputTensor(msgspec.Struct, omit_defaults=True):
    """One output; its values are here or in the binary part."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, int] | None = None
    data: Values | None = None


class InferenceReply(msgspec.Struct, omit_defaults=True):
    """The JSON of an inference's reply."""

    model_name: str
    outputs: list[OutputTensor]
    id: str | None = None


def inference_response(
    model_name: str, asked: Inference, answers: Sequence[Answer | None]
) -> Response | JsonReply:
    """Return the outputs that were asked for, in JSON, or some in the binary part behind it."""
    pieces: list[bytes] = []
    outputs: list[OutputTensor] = []
    for name, is_binary in asked.outputs:
        values, datatype = _values(name, answers), OUTPUTS[name]
        tensor = OutputTensor(name, datatype, [len(answers)])
        if is_binary:
            pieces.append(pack(datatype, values))
            tensor.parameters = {"binary_data_size": len(pieces[-1])}
        else:
            tensor.data = values
        outputs.append(tensor)
    document = msgspec.json.encode(InferenceReply(model_name, outputs, asked.id))
    if not pieces:
        return JsonReply(document)
    length = {"Inference-Header-Content-Length": str(len(document))}
    return Response(b"".join([document, *pieces]), media_type=OCTETS, headers=length)


def _values(name: str, answers: Sequence[Answer | None]) -> Values:
    """Return an output's values; "", false and 0 stand for a row without an answer."""
    if name == LABEL:
        return ["" if each is None else each.label or "" for each in answers]
    if name == STABLE:
        return [each is not None and each.stable for each in answers]
    return [0 if each is None else each.query_id or 0 for each in answers]


MEDIA_TYPES: Final = frozenset({JSON, OCTETS})
PLATFORM: Final = "conclave"
EXTENSIONS: Final = ("binary_tensor_data",)
NO_SUCH_MODEL: Final = "there is no such model; the only one has the name of the release"


async def server(api: Api, request: Request) -> Response:
    """Give the server's name, its version and the extensions that it knows."""
    del api, request
    return _json({"name": PLATFORM, "version": VERSION, "extensions": EXTENSIONS})


async def live(api: Api, request: Request) -> Response:
    """Say that the process answers."""
    del api, request
    return _json({"live": True})


async def server_ready(api: Api, request: Request) -> Response:
    """Say that the release is open, in whatever phase; refuse while it is not."""
    del request
    api.slot.check_open()
    return _json({"ready": True})


async def model(api: Api, request: Request) -> Response:
    """Give the model's inputs and outputs."""
    service = _service_of_model(api, request)
    inputs = [
        {"name": each.name, "datatype": each.datatype, "shape": [-1, each.width]}
        for each in declared_inputs(service.schema)
    ]
    outputs = [
        {"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in OUTPUTS.items()
    ]
    described = {"platform": PLATFORM, "inputs": inputs, "outputs": outputs}
    return _json({"name": service.release_name} | described)


async def model_ready(api: Api, request: Request) -> Response:
    """Say that the release has this name and is open."""
    service = _service_of_model(api, request)
    return _json({"name": service.release_name, "ready": True})


async def infer(api: Api, request: Request) -> Response | JsonReply:
    """Validate every row of a batch, wait until their answers are committed, and give them."""
    service = _service_of_model(api, request)
    headers, bytes_max = request.headers, api.limits.body_bytes_max
    check_media_type(headers, MEDIA_TYPES, encodings=ENCODINGS)
    key = idempotency_key(headers)
    sent = await read_body(request, bytes_max=bytes_max)
    api.observe(Step.VALIDATE, Edge.BEFORE)
    body = inflate(sent, content_encoding(headers), bytes_max=bytes_max)
    asked = await parse_inference(
        service.schema,
        body,
        header_length(headers, body),
        rows_max=api.limits.batch_rows_max,
        offered=OUTPUTS,
    )
    queries = as_queries(asked.vectors, key, asker_of(request.scope))
    api.observe(Step.VALIDATE, Edge.AFTER)
    answers = await answer_rows(service, queries)
    return inference_response(service.release_name, asked, answers)


def _service_of_model(api: Api, request: Request) -> ConclaveService:
    service = api.slot.service
    if request.path_params["name"] != service.release_name:
        raise NotFoundError(NO_SUCH_MODEL)
    return service


def _json(document: object) -> Response:
    body = msgspec.json.encode(document)
    return Response(body, media_type=JSON, headers={"cache-control": "no-store"})
