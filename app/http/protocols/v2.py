"""``/v2``: the Open Inference Protocol, for clients of Triton, KServe and MLServer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from app.answering.steps import Edge, Step
from app.http.access.door import asker_of
from app.http.protocols.batches import answer_rows, as_queries
from app.http.protocols.v2_body import header_length, parse_inference
from app.http.protocols.v2_reply import OUTPUTS, inference_response
from app.http.protocols.v2_tensors import declared_inputs
from app.http.query.query_body import idempotency_key
from app.http.refusals import NotFoundError
from app.http.version import VERSION
from app.http.wire.bodies import JSON, OCTETS, check_media_type, content_encoding, read_body
from app.http.wire.inflate import ENCODINGS, inflate
from app.http.wire.json_reply import JsonReply

if TYPE_CHECKING:
    from starlette.requests import Request

    from app.answering.types import AnsweringService
    from app.http.endpoint import Api

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


def _service_of_model(api: Api, request: Request) -> AnsweringService:
    service = api.slot.service
    if request.path_params["name"] != service.release_name:
        raise NotFoundError(NO_SUCH_MODEL)
    return service


def _json(document: object) -> Response:
    body = msgspec.json.encode(document)
    return Response(body, media_type=JSON, headers={"cache-control": "no-store"})
