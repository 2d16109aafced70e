"""The operations of other protocols, Open Inference and MLflow's, for the OpenAPI document."""

from __future__ import annotations

from typing import Final

from app.errors import MalformedBodyError
from app.http.openapi.operation import (
    ANSWER_REFUSALS,
    BODY_REFUSALS,
    IDEMPOTENCY_KEY,
    Operation,
    content_of,
    parameter,
    request_body,
)
from app.http.problems import InvalidParameterError, NotFoundError
from app.http.protocols import mlflow as invocations
from app.http.protocols import v2, v2_body
from app.http.wire.bodies import CSV, JSON, OCTETS

MODEL_NAME: Final = {
    **parameter("name", "path", {"type": "string"}, "the release's name"),
    "required": True,
}
HEADER_LENGTH: Final = parameter(
    "Inference-Header-Content-Length",
    "header",
    {"type": "integer", "minimum": 0},
    "bytes of the JSON, where binary tensors follow it",
)
INFERENCE_BODY: Final = request_body("V2Inference", JSON)
INFERENCE_BODY["requestBody"]["content"][OCTETS] = content_of("V2InferenceWithBinary")
INVOCATION_BODY: Final = request_body("Invocation", JSON)
INVOCATION_BODY["requestBody"]["content"][CSV] = content_of("InvocationCsv")
PROTOCOL_OPERATIONS: Final = {
    "/v2": Operation("The server's name, version and extensions", "V2Server"),
    "/v2/health/live": Operation("Whether the process answers", "V2Live"),
    "/v2/health/ready": Operation("Whether the release is open, in whatever phase", "V2Ready"),
    "/v2/models/{name}": Operation(
        "The model's inputs and outputs",
        "V2Model",
        refusals=(NotFoundError(v2.NO_SUCH_MODEL),),
        more={"parameters": [MODEL_NAME]},
    ),
    "/v2/models/{name}/ready": Operation(
        "Whether the release has this name and is open",
        "V2ModelReady",
        refusals=(NotFoundError(v2.NO_SUCH_MODEL),),
        more={"parameters": [MODEL_NAME]},
    ),
    "/v2/models/{name}/infer": Operation(
        "Ask a query a row",
        "V2Outputs",
        refusals=(
            NotFoundError(v2.NO_SUCH_MODEL),
            *BODY_REFUSALS,
            *ANSWER_REFUSALS,
            InvalidParameterError(v2_body.HEADER_LENGTH_SHAPE),
            MalformedBodyError(v2_body.SHAPE),
        ),
        more={"parameters": [MODEL_NAME, HEADER_LENGTH, IDEMPOTENCY_KEY], **INFERENCE_BODY},
        other_forms={OCTETS: content_of("V2InferenceWithBinary")},
    ),
    "/invocations": Operation(
        "Ask a query a row, as MLflow's scoring server is asked",
        "Predictions",
        refusals=(*BODY_REFUSALS, *ANSWER_REFUSALS, MalformedBodyError(invocations.SHAPE)),
        more={"parameters": [IDEMPOTENCY_KEY], **INVOCATION_BODY},
    ),
    "/ping": Operation("Whether the release is open, in whatever phase", "Status"),
}
