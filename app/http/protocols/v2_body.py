"""Parsing of an inference request, from bytes to validated rows, before any charge.

The requests are those of the Open Inference Protocol, in which the release is a model with inputs
(the features) and outputs. A body is JSON, after which it may have a binary part with the values of
some tensors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import MalformedBodyError
from app.http.problems import InvalidParameterError
from app.http.protocols.mlflow import validated
from app.http.protocols.v2_tensors import OUTPUTS, InputTensor, read_rows
from app.http.query.query_body import refuse_repeated_members

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from app.data.vectors_and_schema import Schema, Vector

HEADER_LENGTH: Final = "inference-header-content-length"
DIGITS_MAX: Final = 18
SHAPE: Final = (
    'send an inference request of the Open Inference Protocol, {"inputs": [{"name": ..., '
    '"shape": [...], "datatype": ..., "data": [...]}]}; GET /v2/models/NAME lists the inputs'
)
HEADER_LENGTH_SHAPE: Final = (
    "Inference-Header-Content-Length is the number of bytes of the JSON in front of the binary "
    "data, sent once and at most the length of the body"
)
NOT_SUPPORTED: Final = "shared memory and classification are not supported; send and take tensors"
# How often each name may occur in a request, by what it is a member of.
INPUT_MEMBERS: Final = (b'"shape"', b'"datatype"', b'"data"')


class OutputParameters(msgspec.Struct):
    """The options of one requested output; unknown members are ignored."""

    binary_data: bool | None = None
    classification: int | None = None
    shared_memory_region: str | None = None


class RequestedOutput(msgspec.Struct):
    """One output tensor that a client requests."""

    name: str
    parameters: OutputParameters | None = None


class RequestParameters(msgspec.Struct):
    """The options of an inference request; unknown members are ignored."""

    binary_data_output: bool | None = None


class InferenceBody(msgspec.Struct):
    """The JSON of an inference request; unknown members are ignored."""

    inputs: list[InputTensor]
    id: str | None = None
    outputs: list[RequestedOutput] | None = None
    parameters: RequestParameters | None = None


@dataclass(frozen=True, slots=True)
class Inference:
    """An inference request after its rows were validated.

    Attributes:
        vectors: the feature vectors, one per row.
        id: the client's identifier of the request, which the reply repeats; None without one.
        outputs: the names of the requested outputs, in order, each with whether its values go into
            the binary part of the reply.

    """

    vectors: list[Vector]
    id: str | None
    outputs: list[tuple[str, bool]]


_BODY: Final = msgspec.json.Decoder(InferenceBody)


def header_length(headers: Headers, body: bytes) -> int:
    """Return the number of JSON bytes at the start of an inference request's body.

    The header ``Inference-Header-Content-Length`` states the number; without this header, all bytes
    are JSON.

    Raises:
        InvalidParameterError: the header is not a whole number up to the length of the body.

    """
    sent = headers.getlist(HEADER_LENGTH)
    if not sent:
        return len(body)
    text = sent[0].strip(" \t")
    is_number = len(sent) == 1 and text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX
    if not is_number or int(text) > len(body):
        raise InvalidParameterError(HEADER_LENGTH_SHAPE)
    return int(text)


async def parse_inference(
    schema: Schema, body: bytes, json_length: int, *, rows_max: int
) -> Inference:
    """Return the inference request in a body; raises as :func:`checked_inference` does.

    Args:
        schema: the public schema.
        body: the posted body, after decompression.
        json_length: the number of bytes at the start of the body that are JSON; binary tensors
            follow.
        rows_max: the largest number of rows in a request.

    """
    document, binary = body[:json_length], body[json_length:]
    try:
        decoded = _BODY.decode(document)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # NaN and 1e999 are no JSON, but a client that sends them is told the feature.
        loose = _decode_loosely(document)
        await validated(schema, read_rows(schema, loose.inputs, binary), rows_max=rows_max)
        raise MalformedBodyError(SHAPE) from None
    _refuse_repeats(document, decoded)
    return await checked_inference(schema, decoded, binary, rows_max=rows_max)


async def checked_inference(
    schema: Schema, body: InferenceBody, binary: bytes, *, rows_max: int
) -> Inference:
    """Return a decoded inference request after validating every row.

    Args:
        schema: the public schema.
        body: the decoded request, from JSON or from gRPC.
        binary: the values of the input tensors that declare a binary size, in their order.
        rows_max: the largest number of rows in a request.

    Raises:
        MalformedBodyError: the body is no request of the protocol.
        InvalidFeaturesError: inputs or values do not fit the schema.
        InvalidParameterError: the request asks for outputs that the model does not have.
        TooLargeError: there are more than ``rows_max`` rows.

    """
    outputs = _requested(body)
    rows = read_rows(schema, body.inputs, binary)
    return Inference(await validated(schema, rows, rows_max=rows_max), body.id, outputs)


def _decode_loosely(document: bytes) -> InferenceBody:
    """Return a request whose JSON only the standard library takes."""
    try:
        return msgspec.convert(json.loads(document.decode("utf-8")), InferenceBody)
    except (ValueError, RecursionError):  # msgspec's own errors are values' too
        raise MalformedBodyError(f"the body is not JSON of the right shape; {SHAPE}") from None


def _requested(body: InferenceBody) -> list[tuple[str, bool]]:
    """Return the outputs to give, each with whether it is binary."""
    is_binary = body.parameters is not None and bool(body.parameters.binary_data_output)
    if not body.outputs:
        return [(name, is_binary) for name in OUTPUTS]
    requested: dict[str, bool] = {}
    for output in body.outputs:
        if output.name not in OUTPUTS or output.name in requested:
            raise InvalidParameterError(
                f"outputs are {', '.join(OUTPUTS)}, each named once, not {output.name[:100]}"
            )
        requested[output.name] = is_binary
        said = output.parameters
        if said is None:
            continue
        if said.classification or said.shared_memory_region is not None:
            raise InvalidParameterError(NOT_SUPPORTED)
        if said.binary_data is not None:
            requested[output.name] = said.binary_data
    return list(requested.items())


def _refuse_repeats(document: bytes, body: InferenceBody) -> None:
    """Refuse a member that is named twice; the whole is only searched where one may be."""
    inputs_count = len(body.inputs)
    named_count = inputs_count + len(body.outputs or ())
    if (
        any(document.count(member) > inputs_count for member in INPUT_MEMBERS)
        or document.count(b'"name"') > named_count
        or document.count(b'"inputs"') > 1
    ):
        refuse_repeated_members(document)
