"""Input and output tensors of the Open Inference Protocol, in JSON and in binary.

In this protocol the release is a model. Its inputs are the features; its outputs are ``label``,
``stable`` (a boolean) and ``query_id`` (the answer's number). A body is JSON, after which it may
have a binary part with the values of some tensors.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from app.errors import InvalidFeaturesError, MalformedBodyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.answering.answers import Answer
    from app.data.vectors_and_schema import Schema

FEATURES: Final = "features"
FP64: Final = "FP64"
BYTES: Final = "BYTES"
BOOL: Final = "BOOL"
TRUTHS: Final = frozenset({0, 1})
INT64: Final = "INT64"
# Letters of the struct module, which reads little-endian as the extension has it.
FLOAT_LETTERS: Final = {"FP16": "e", "FP32": "f", FP64: "d"}
WHOLE_LETTERS: Final = {
    "INT8": "b",
    "INT16": "h",
    "INT32": "i",
    INT64: "q",
    "UINT8": "B",
    "UINT16": "H",
    "UINT32": "I",
    "UINT64": "Q",
}
LETTERS: Final = FLOAT_LETTERS | WHOLE_LETTERS
BOOL_LETTER: Final = "?"
LENGTH: Final = struct.Struct("<I")

LABEL: Final = "label"
STABLE: Final = "stable"
QUERY_ID: Final = "query_id"
OUTPUTS: Final = {LABEL: BYTES, STABLE: BOOL, QUERY_ID: INT64}

Values = list[str] | list[bool] | list[int]


class InputParameters(msgspec.Struct):
    """The options of one input; unknown members are ignored."""

    binary_data_size: int | None = None
    shared_memory_region: str | None = None


class InputTensor(msgspec.Struct):
    """One input tensor, with its values in the JSON or in the binary part."""

    name: str
    shape: list[int]
    datatype: str
    data: list[object] | None = None
    parameters: InputParameters | None = None

    @property
    def binary_size(self) -> int | None:
        """The tensor's number of bytes in the binary part; None if its values are in the JSON."""
        return None if self.parameters is None else self.parameters.binary_data_size


class DeclaredInput(NamedTuple):
    """The declaration of one model input: name, datatype and number of values per row."""

    name: str
    datatype: str
    width: int


def declared_inputs(schema: Schema) -> list[DeclaredInput]:
    """Return the model's inputs: one for all features, or one for each if not all are numbers."""
    if all(schema.numeric_flags):
        return [DeclaredInput(FEATURES, FP64, len(schema.feature_names))]
    return [
        DeclaredInput(name, FP64 if is_numeric else BYTES, 1)
        for name, is_numeric in zip(schema.feature_names, schema.numeric_flags, strict=True)
    ]


def read_rows(
    schema: Schema, tensors: Sequence[InputTensor], binary: bytes
) -> list[Sequence[object]]:
    """Return the rows of an inference request in schema order, not yet validated.

    Args:
        schema: the public schema.
        tensors: the input tensors, in the order of the request.
        binary: the bytes of the body after its JSON.

    Raises:
        InvalidFeaturesError: an input is unknown or missing, or has another datatype.
        MalformedBodyError: a tensor's shape, number of values or size is wrong.

    """
    declared = {each.name: each for each in declared_inputs(schema)}
    columns = _columns(declared, tensors, binary)
    for name in declared:
        if name not in columns:
            raise InvalidFeaturesError(feature=name, problem="is an input that is absent")
    if len(declared) == 1:
        (only,) = declared.values()
        values = columns[only.name]
        return [values[at : at + only.width] for at in range(0, len(values), only.width)]
    if len({len(values) for values in columns.values()}) > 1:
        raise MalformedBodyError("the inputs have different numbers of rows")
    return list(zip(*(columns[name] for name in declared), strict=True))


def output_values(name: str, answers: Sequence[Answer | None]) -> Values:
    """Return the values of one output; a row without an answer has "", false or 0, by its type."""
    if name == LABEL:
        return ["" if each is None else each.label or "" for each in answers]
    if name == STABLE:
        return [each is not None and each.stable for each in answers]
    return [0 if each is None else each.query_id or 0 for each in answers]


def pack(datatype: str, values: Sequence[str | bool | int | float]) -> bytes:
    """Return the values of an output tensor as bytes of the protocol's binary form."""
    if datatype == BYTES:
        texts = [str(value).encode() for value in values]
        return b"".join(part for text in texts for part in (LENGTH.pack(len(text)), text))
    if datatype == BOOL:
        return bytes(map(bool, values))
    return struct.pack(f"<{len(values)}{LETTERS[datatype]}", *values)


def _columns(
    declared: dict[str, DeclaredInput], tensors: Sequence[InputTensor], binary: bytes
) -> dict[str, Sequence[object]]:
    """Return the values of each input by its name, the binary part cut in request order."""
    columns: dict[str, Sequence[object]] = {}
    start = 0
    for tensor in tensors:
        if tensor.name not in declared:
            raise InvalidFeaturesError(
                feature=tensor.name[:100], problem="is not an input of this model"
            )
        if tensor.name in columns:
            raise MalformedBodyError(f"the input {tensor.name} is given twice")
        size = tensor.binary_size
        if size is not None and not 0 <= size <= len(binary) - start:
            raise MalformedBodyError("binary_data_size is more than the body holds")
        piece = None if size is None else binary[start : start + size]
        columns[tensor.name] = _values(declared[tensor.name], tensor, piece)
        start += size or 0
    if start != len(binary):
        raise MalformedBodyError("the body goes on after the last input's binary data")
    return columns


def _values(declared: DeclaredInput, tensor: InputTensor, binary: bytes | None) -> Sequence[object]:
    """Return the values of one input, row after row."""
    _check_datatype(declared, tensor.datatype)
    count = _count(declared, tensor)
    if (binary is None) == (tensor.data is None):
        raise MalformedBodyError(
            f"the input {tensor.name} needs its values once, in data or as binary_data_size bytes"
        )
    if binary is not None:
        return _unpack(tensor, binary, count)
    values = _flat(tensor)
    if len(values) != count:
        raise MalformedBodyError(
            f"the input {tensor.name} has {len(values)} values, and its shape says {count}"
        )
    if tensor.datatype in WHOLE_LETTERS:
        _check_whole(tensor, values)
    return _truths(tensor, values) if tensor.datatype == BOOL else values


def _check_datatype(declared: DeclaredInput, datatype: str) -> None:
    # Values of categories, booleans and dates are looked at one by one.
    fitting = LETTERS if declared.datatype == FP64 else {BYTES, BOOL, *LETTERS}
    if datatype not in fitting:
        numbers = "an FP or INT datatype"
        takes = numbers if declared.datatype == FP64 else f"{BYTES}, {BOOL}, or {numbers}"
        raise InvalidFeaturesError(
            feature=declared.name, problem=f"takes {takes}, not {datatype[:20]}"
        )


def _count(declared: DeclaredInput, tensor: InputTensor) -> int:
    """Return the number of values that a shape says; [N] stands for [N, 1]."""
    shape, width = tensor.shape, declared.width
    fits = shape[1:] == [width] or len(shape) == 1 == width
    if not fits or shape[0] < 0:
        also = " or [N]" if width == 1 else ""
        raise MalformedBodyError(
            f"the input {tensor.name} takes a shape [N, {width}]{also}, not {str(shape)[:100]}"
        )
    return shape[0] * width


def _flat(tensor: InputTensor) -> list[object]:
    """Return the values in the JSON, which may be nested as the shape is."""
    data = tensor.data or []
    if len(tensor.shape) == 1 or not data or not isinstance(data[0], list):
        return data
    flat: list[object] = []
    for row in data:
        if not isinstance(row, list) or len(row) != tensor.shape[1]:
            raise MalformedBodyError(f"the data of {tensor.name} are not nested as its shape says")
        flat += row
    return flat


def _truths(tensor: InputTensor, values: Sequence[object]) -> Sequence[object]:
    """Return booleans, which JSON may have as 0 and 1; null stays, where a value is missing."""
    if any(not isinstance(value, int | None) or value not in {None, *TRUTHS} for value in values):
        raise InvalidFeaturesError(feature=tensor.name, problem=f"holds a value that is no {BOOL}")
    return [None if value is None else bool(value) for value in values]


def _check_whole(tensor: InputTensor, values: Sequence[object]) -> None:
    """Refuse a number that the declared datatype cannot hold; other values are refused later."""
    letter = WHOLE_LETTERS[tensor.datatype]
    try:
        for value in values:
            if isinstance(value, (int, float)):
                struct.pack(letter, value)
    except struct.error:
        raise InvalidFeaturesError(
            feature=tensor.name, problem=f"holds a number that {tensor.datatype} cannot hold"
        ) from None


def _unpack(tensor: InputTensor, binary: bytes, count: int) -> Sequence[object]:
    """Return the values of a binary tensor."""
    if tensor.datatype == BYTES:
        values = list(_strings(tensor, binary))
        fits = len(values) == count
    else:
        is_bool = tensor.datatype == BOOL
        layout = struct.Struct(f"<{BOOL_LETTER if is_bool else LETTERS[tensor.datatype]}")
        fits = layout.size * count == len(binary)
        values = [value for (value,) in layout.iter_unpack(binary)] if fits else []
    if not fits:
        raise MalformedBodyError(
            f"the input {tensor.name} has {len(binary)} binary bytes, which is not what its "
            f"shape and {tensor.datatype} say"
        )
    return values


def _strings(tensor: InputTensor, binary: bytes) -> Iterator[str]:
    """Yield the elements of a binary BYTES tensor: a length in four bytes, then UTF-8."""
    start = 0
    while start < len(binary):
        if len(binary) - start < LENGTH.size:
            raise MalformedBodyError(f"the binary data of {tensor.name} end within a length")
        (length,) = LENGTH.unpack_from(binary, start)
        start += LENGTH.size
        if length > len(binary) - start:
            raise MalformedBodyError(f"the binary data of {tensor.name} end within an element")
        try:
            yield binary[start : start + length].decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidFeaturesError(feature=tensor.name, problem="must be UTF-8 text") from None
        start += length
