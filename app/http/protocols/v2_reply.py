"""The outputs of an inference: labels, whether they are stable, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from app.http.protocols.v2_tensors import BOOL, BYTES, INT64, pack
from app.http.wire.bodies import OCTETS
from app.http.wire.json_reply import JsonReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.answering.types import Answer
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
