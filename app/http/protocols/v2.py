"""The Open Inference Protocol V2 under ``/v2``, for clients of Triton, KServe and MLServer.

In this protocol the release is a model, whose name is the release's name. A request for inference
gets for each row the label, whether the answer is stable, and the answer's number (0 if the
published classifier answered). The values of a tensor are in the body's JSON, or in binary after
the JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from fastapi import Depends, Header, Path
from starlette.requests import Request
from starlette.responses import Response

from app.answering.answer_query import Edge, Step
from app.answering.service import ConclaveService
from app.errors import MalformedBodyError
from app.http.access.access_control import asker_of
from app.http.openapi.body_declarations import gives, takes
from app.http.openapi.protocol_models import (
    V2Inference,
    V2InferenceWithBinary,
    V2Live,
    V2Model,
    V2ModelReady,
    V2Outputs,
    V2Ready,
    V2Server,
    V2Tensor,
)
from app.http.openapi.query_models import documented_key
from app.http.openapi.refusal_replies import ANSWER_REFUSALS, BODY_REFUSALS, refused
from app.http.problems import InvalidParameterError, NotFoundError
from app.http.protocols.mlflow import answer_rows, as_queries
from app.http.protocols.v2_body import (
    HEADER_LENGTH_SHAPE,
    SHAPE,
    header_length,
    parse_inference,
)
from app.http.protocols.v2_tensors import (
    OUTPUTS,
    Values,
    declared_inputs,
    output_values,
    pack,
)
from app.http.query.query_body import idempotency_key
from app.http.route_handling import Api, BusyRoute, CurrentApi, OpenRoute, QueryRoute, router_of
from app.http.version import VERSION
from app.http.wire.headers_and_bodies import (
    ENCODINGS,
    JSON,
    OCTETS,
    JsonReply,
    check_media_type,
    content_encoding,
    inflate,
    read_body,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.answers import Answer
    from app.http.protocols.v2_body import Inference


class OutputTensor(msgspec.Struct, omit_defaults=True):
    """One output tensor, with its values in the reply's JSON or in binary after the JSON."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, int] | None = None
    data: Values | None = None


class InferenceReply(msgspec.Struct, omit_defaults=True):
    """The JSON of the reply to an inference request."""

    model_name: str
    outputs: list[OutputTensor]
    id: str | None = None


def inference_response(
    model_name: str, asked: Inference, answers: Sequence[Answer | None]
) -> Response | JsonReply:
    """Return the reply to an inference request: JSON, with some outputs perhaps in binary."""
    document, pieces = _inference_parts(model_name, asked, answers)
    if not pieces:
        return JsonReply(document)
    length = {"Inference-Header-Content-Length": str(len(document))}
    return Response(b"".join([document, *pieces]), media_type=OCTETS, headers=length)


def inference_document(
    model_name: str, asked: Inference, answers: Sequence[Answer | None]
) -> bytes:
    """Return the reply's JSON with the requested outputs, if none of them is in binary."""
    document, _ = _inference_parts(model_name, asked, answers)
    return document


def _inference_parts(
    model_name: str, asked: Inference, answers: Sequence[Answer | None]
) -> tuple[bytes, list[bytes]]:
    """Return the JSON of a reply, and the pieces of its binary part."""
    pieces: list[bytes] = []
    outputs: list[OutputTensor] = []
    for name, is_binary in asked.outputs:
        values, datatype = output_values(name, answers), OUTPUTS[name]
        tensor = OutputTensor(name, datatype, [len(answers)])
        if is_binary:
            pieces.append(pack(datatype, values))
            tensor.parameters = {"binary_data_size": len(pieces[-1])}
        else:
            tensor.data = values
        outputs.append(tensor)
    return msgspec.json.encode(InferenceReply(model_name, outputs, asked.id)), pieces


MEDIA_TYPES: Final = frozenset({JSON, OCTETS})
PLATFORM: Final = "conclave"
EXTENSIONS: Final = ("binary_tensor_data",)
NO_SUCH_MODEL: Final = "there is no such model; the only one has the name of the release"


query_router = router_of(QueryRoute)
infer_router = router_of(BusyRoute)
probe_router = router_of(OpenRoute)


def service_of_model(api: Api, name: str) -> ConclaveService:
    """Return the service that answers queries to a model; refuse any name but the release's.

    Raises:
        NotFoundError: the name is not the release's name.

    """
    service = api.slot.service
    if name != service.release_name:
        raise NotFoundError(NO_SUCH_MODEL)
    return service


async def _service_of_path(
    api: CurrentApi, name: Annotated[str, Path(description="the release's name")]
) -> ConclaveService:
    """Return the service of the model in the path; raises as :func:`service_of_model` does."""
    return service_of_model(api, name)


async def _documented_length(
    length: Annotated[
        int | None,
        Header(
            alias="Inference-Header-Content-Length",
            ge=0,
            description="bytes of the JSON, where binary tensors follow it",
        ),
    ] = None,
) -> None:
    """Put a header into the document; the route reads it itself."""
    del length


OfModel = Annotated[ConclaveService, Depends(_service_of_path)]


@query_router.get("/v2")
async def server() -> V2Server:
    """Return the server's name, its version and its protocol extensions."""
    return V2Server(name=PLATFORM, version=VERSION, extensions=EXTENSIONS)


@probe_router.get("/v2/health/live")
async def live() -> V2Live:
    """Report that the process is running."""
    return V2Live(live=True)


@probe_router.get("/v2/health/ready")
async def server_ready(api: CurrentApi) -> V2Ready:
    """Report that the release is open, in any phase; refuse if it is not."""
    api.slot.check_open()
    return V2Ready(ready=True)


@query_router.get(
    "/v2/models/{name}",
    response_model_exclude_unset=True,
    responses=refused(NotFoundError(NO_SUCH_MODEL), in_v2_form=True),
)
async def model(service: OfModel) -> V2Model:
    """Return the declared inputs and outputs of the model."""
    inputs = [
        V2Tensor(name=each.name, datatype=each.datatype, shape=[-1, each.width])
        for each in declared_inputs(service.schema)
    ]
    outputs = [
        V2Tensor(name=name, datatype=datatype, shape=[-1]) for name, datatype in OUTPUTS.items()
    ]
    return V2Model(name=service.release_name, platform=PLATFORM, inputs=inputs, outputs=outputs)


@probe_router.get(
    "/v2/models/{name}/ready", responses=refused(NotFoundError(NO_SUCH_MODEL), in_v2_form=True)
)
async def model_ready(service: OfModel) -> V2ModelReady:
    """Report that the release has this name and is open."""
    return V2ModelReady(name=service.release_name, ready=True)


@infer_router.post(
    "/v2/models/{name}/infer",
    response_model=None,
    response_class=Response,
    dependencies=[Depends(_service_of_path), Depends(documented_key), Depends(_documented_length)],
    responses=gives({JSON: V2Outputs, OCTETS: V2InferenceWithBinary})
    | refused(
        NotFoundError(NO_SUCH_MODEL),
        *BODY_REFUSALS,
        *ANSWER_REFUSALS,
        InvalidParameterError(HEADER_LENGTH_SHAPE),
        MalformedBodyError(SHAPE),
        in_v2_form=True,
    ),
    openapi_extra=takes({JSON: V2Inference, OCTETS: V2InferenceWithBinary}),
)
async def infer(api: CurrentApi, request: Request) -> Response | JsonReply:
    """Return the answers to all rows of a batch, after validating and committing them."""
    service = service_of_model(api, request.path_params["name"])
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
    )
    queries = as_queries(asked.vectors, key, asker_of(request.scope))
    api.observe(Step.VALIDATE, Edge.AFTER)
    answers = await answer_rows(service, queries)
    return inference_response(service.release_name, asked, answers)
