"""gRPC messages: decoding a call into an inference request, and encoding the answers.

The message types are in a descriptor pool of their own, so that they do not conflict with a client
library in the same process that declares the same names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessages

from app.errors import InvalidFeaturesError, MalformedBodyError
from app.http.problems import InvalidParameterError
from app.http.protocols.v2_body import (
    NOT_SUPPORTED,
    InferenceBody,
    OutputParameters,
    RequestedOutput,
)
from app.http.protocols.v2_tensors import (
    BOOL,
    BYTES,
    INT64,
    OUTPUTS,
    InputParameters,
    InputTensor,
    declared_inputs,
    output_values,
    pack,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.answers import Answer
    from app.data.vectors_and_schema import Schema
    from app.http.protocols.v2_body import Inference

DESCRIPTORS: Final = Path(__file__).with_name("grpc_predict_v2.binpb")
PACKAGE: Final = "inference"
# The member of a tensor's contents that holds values of a datatype; FP16 is raw only.
CONTENTS: Final = {
    BOOL: "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    INT64: "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
}
SHARED_MEMORY: Final = "shared_memory_region"
CLASSIFICATION: Final = "classification"
NO_MESSAGE: Final = "the message is no {kind} of the Open Inference Protocol"
RAW_FOR_EACH: Final = (
    "raw_input_contents holds the values of every input, in order, or of none; an input whose "
    "values are there has no contents"
)
OTHER_CONTENTS: Final = "the input {name} has values in {held}; {datatype} takes {takes}"
RAW_ALONE: Final = "raw_input_contents alone"


def _messages() -> dict[str, Any]:
    """Return the class of each message by its name."""
    files = FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())
    classes = GetMessages(files.file, pool=DescriptorPool())
    return {name.removeprefix(f"{PACKAGE}."): each for name, each in classes.items()}


MESSAGES: Final = _messages()


def read_message(kind: str, sent: bytes) -> Any:  # noqa: ANN401 -- its class is made by its description
    """Return the protobuf message that received bytes encode.

    Raises:
        MalformedBodyError: the bytes are no message of this kind.

    """
    try:
        return MESSAGES[kind].FromString(sent)
    except DecodeError:
        raise MalformedBodyError(NO_MESSAGE.format(kind=kind)) from None


def inference_body(request: Any) -> tuple[InferenceBody, bytes]:  # noqa: ANN401 -- as above
    """Return a gRPC inference request in the form that HTTP's JSON has, and its binary values.

    Args:
        request: a ``ModelInferRequest``.

    Raises:
        MalformedBodyError: the values of a tensor are not in the field that its datatype requires.
        InvalidFeaturesError: a text is not UTF-8.
        InvalidParameterError: the request uses shared memory, or the protocol's option that asks
            for the likeliest classes of an output.

    """
    raw = request.raw_input_contents
    if raw:
        if len(raw) != len(request.inputs) or any(
            each.HasField("contents") for each in request.inputs
        ):
            raise MalformedBodyError(RAW_FOR_EACH)
        inputs = [_raw_tensor(each, len(raw[place])) for place, each in enumerate(request.inputs)]
    else:
        inputs = [_typed_tensor(each) for each in request.inputs]
    outputs = [_requested(each) for each in request.outputs]
    return InferenceBody(inputs, request.id or None, outputs), b"".join(raw)


def _raw_tensor(tensor: Any, size: int) -> InputTensor:  # noqa: ANN401 -- as above
    return InputTensor(
        tensor.name,
        list(tensor.shape),
        tensor.datatype,
        parameters=InputParameters(binary_data_size=size),
    )


def _typed_tensor(tensor: Any) -> InputTensor:  # noqa: ANN401 -- as above
    """Return a tensor with the values of its contents."""
    if SHARED_MEMORY in tensor.parameters:
        raise InvalidParameterError(NOT_SUPPORTED)
    fitting = CONTENTS.get(tensor.datatype)
    held = [field.name for field, _ in tensor.contents.ListFields()]
    if held and held != [fitting]:
        raise MalformedBodyError(
            OTHER_CONTENTS.format(
                name=tensor.name[:100],
                held=", ".join(held),
                datatype=tensor.datatype[:20],
                takes=fitting or RAW_ALONE,
            )
        )
    values = list(getattr(tensor.contents, held[0])) if held else []
    if tensor.datatype == BYTES:
        values = [_text(tensor, value) for value in values]
    return InputTensor(tensor.name, list(tensor.shape), tensor.datatype, values)


def _text(tensor: Any, value: bytes) -> str:  # noqa: ANN401 -- as above
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidFeaturesError(
            feature=tensor.name[:100], problem="must be UTF-8 text"
        ) from None


def _requested(output: Any) -> RequestedOutput:  # noqa: ANN401 -- as above
    """Return an output that is asked for, with what it may not be asked for as."""
    if not output.parameters:
        return RequestedOutput(output.name)
    classes = (
        output.parameters[CLASSIFICATION].int64_param if CLASSIFICATION in output.parameters else 0
    )
    region = SHARED_MEMORY if SHARED_MEMORY in output.parameters else None
    said = OutputParameters(classification=classes, shared_memory_region=region)
    return RequestedOutput(output.name, said)


def inference_reply(
    model_name: str, asked: Inference, answers: Sequence[Answer | None], *, is_raw: bool
) -> bytes:
    """Return a ``ModelInferResponse`` with the requested outputs.

    Args:
        model_name: the release's name.
        asked: the inference request.
        answers: one answer per row; None for a row without an answer.
        is_raw: whether values go into ``raw_output_contents``; they do if the request's values came
            in ``raw_input_contents``.

    """
    reply = MESSAGES["ModelInferResponse"](model_name=model_name, id=asked.id or "")
    for name, _ in asked.outputs:
        values, datatype = output_values(name, answers), OUTPUTS[name]
        tensor = reply.outputs.add(name=name, datatype=datatype, shape=[len(answers)])
        if is_raw:
            reply.raw_output_contents.append(pack(datatype, values))
        else:
            held = [str(each).encode() for each in values] if datatype == BYTES else values
            getattr(tensor.contents, CONTENTS[datatype]).extend(held)
    return _encoded(reply)


def model_metadata(model_name: str, platform: str, schema: Schema) -> bytes:
    """Return a ``ModelMetadataResponse`` with the shapes of inputs and outputs."""
    reply = MESSAGES["ModelMetadataResponse"](name=model_name, platform=platform)
    for each in declared_inputs(schema):
        reply.inputs.add(name=each.name, datatype=each.datatype, shape=[-1, each.width])
    for name, datatype in OUTPUTS.items():
        reply.outputs.add(name=name, datatype=datatype, shape=[-1])
    return _encoded(reply)


def plain_message(kind: str, **members: str | bool) -> bytes:
    """Return a protobuf message with simple fields only."""
    return _encoded(MESSAGES[kind](**members))


def _encoded(message: Any) -> bytes:  # noqa: ANN401 -- as above
    encoded: bytes = message.SerializeToString()
    return encoded
