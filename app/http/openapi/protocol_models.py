"""The bodies of two foreign protocols: Open Inference Protocol and MLflow's.

In the Open Inference Protocol (V2) the release is a model, whose name is the release's name and
part of a request's path. For each row the model has the outputs ``label``, ``stable`` (a boolean)
and ``query_id`` (the answer's number). The values of a tensor are in the body's JSON, or in binary
after the JSON; BYTES is the datatype of texts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SkipValidation

from app.http.openapi.body_declarations import Body, Text, like

# Rows are checked against the schema of the release, each value with the name of its feature.
Value = Annotated[int | float | str | bool | None, SkipValidation]
Row = Annotated[list[Value] | dict[str, Value] | int | float | str | None, SkipValidation]
Shape = list[Annotated[int, Field(ge=0)]]


class Lenient(Body, extra="ignore"):
    """The base model of a body in which unknown members are allowed."""


class V2Server(
    Body,
    json_schema_extra=like(
        {"name": "conclave", "version": "1.0.0", "extensions": ["binary_tensor_data"]}
    ),
):
    """The server's name, version and extensions."""

    name: str
    version: str
    extensions: tuple[str, ...]


class V2Live(Body, json_schema_extra=like({"live": True})):
    """The reply that the process is running."""

    live: Literal[True]


class V2Ready(Body, json_schema_extra=like({"ready": True})):
    """The reply that says whether the release is open, in any phase."""

    ready: Literal[True]


class V2ModelReady(Body, json_schema_extra=like({"name": "adult-income", "ready": True})):
    """The reply that says whether the release has this name and is open."""

    name: str
    ready: Literal[True]


class V2Tensor(Body):
    """The declaration of one input or output tensor of the model."""

    name: str
    datatype: str
    shape: list[int] = Field(description="-1 stands for the number of rows")


class V2Model(
    Body,
    json_schema_extra=like(
        {
            "name": "adult-income",
            "platform": "conclave",
            "inputs": [
                {"name": "age", "datatype": "FP64", "shape": [-1, 1]},
                {"name": "workclass", "datatype": "BYTES", "shape": [-1, 1]},
            ],
            "outputs": [
                {"name": "label", "datatype": "BYTES", "shape": [-1]},
                {"name": "stable", "datatype": "BOOL", "shape": [-1]},
                {"name": "query_id", "datatype": "INT64", "shape": [-1]},
            ],
        }
    ),
):
    """The model's inputs and outputs."""

    name: str = Field(description="the release's name")
    platform: str
    inputs: list[V2Tensor]
    outputs: list[V2Tensor]


class V2InputParameters(Lenient):
    """The options of one input tensor."""

    binary_data_size: int | None = None


class V2Input(Lenient):
    """One input tensor, with its values here or in the binary part of the body."""

    name: str
    shape: Shape
    datatype: str = Field(description="BYTES, or any FP or INT type where the model has FP64")
    data: list[Any] | None = Field(
        None,
        description="row after row, flat or nested as the shape is; absent where "
        "binary_data_size says that it follows the JSON",
    )
    parameters: V2InputParameters | None = None


class V2OutputParameters(Lenient):
    """The options of one requested output tensor."""

    binary_data: bool | None = None


class V2RequestedOutput(Lenient):
    """One output tensor that the client requests."""

    name: Literal["label", "stable", "query_id"]
    parameters: V2OutputParameters | None = None


class V2RequestParameters(Lenient):
    """The options of an inference request."""

    binary_data_output: bool | None = None


class V2Inference(
    Lenient,
    json_schema_extra=like(
        {
            "id": "a-1",
            "inputs": [
                {"name": "age", "shape": [2, 1], "datatype": "FP64", "data": [39, 52]},
                {
                    "name": "workclass",
                    "shape": [2, 1],
                    "datatype": "BYTES",
                    "data": ["Private", "State-gov"],
                },
            ],
        }
    ),
):
    """An inference request of the Open Inference Protocol."""

    inputs: list[V2Input] = Field(description="every input of the model, in any order")
    id: str | None = Field(None, description="given back in the reply")
    outputs: list[V2RequestedOutput] | None = Field(None, description="absent asks for all")
    parameters: V2RequestParameters | None = None


class V2InferenceWithBinary(
    Text, json_schema_extra=like("the JSON and the binary tensors behind it")
):
    """A body with JSON of the length given in a header, and then binary tensors in order.

    Little-endian; an element of BYTES comes after its length in four bytes.
    """


class V2OutputTensor(Body):
    """One output tensor, with its values here or in the binary part of the reply."""

    name: str
    datatype: Literal["BYTES", "BOOL", "INT64"]
    shape: Shape
    parameters: dict[str, int] | None = None
    data: list[str | bool | int] | None = None


class V2Outputs(
    Body,
    json_schema_extra=like(
        {
            "model_name": "adult-income",
            "outputs": [
                {"name": "label", "datatype": "BYTES", "shape": [2], "data": [">50K", ""]},
                {"name": "stable", "datatype": "BOOL", "shape": [2], "data": [True, False]},
                {"name": "query_id", "datatype": "INT64", "shape": [2], "data": [17, 18]},
            ],
            "id": "a-1",
        }
    ),
):
    """The output tensors; a row that got no answer has an empty label, false and 0."""

    model_name: str
    outputs: list[V2OutputTensor] = Field(description="label is empty where unstable")
    id: str | None = None


class SplitFrame(Body):
    """A data frame in the form that pandas calls split; its index is ignored."""

    data: list[list[Value]]
    columns: list[str] | None = None
    index: list[Any] | None = None


class Invocation(
    Body,
    json_schema_extra=like(
        {
            "dataframe_split": {
                "columns": ["age", "workclass"],
                "data": [[39, "Private"], [52, "State-gov"]],
            }
        },
        {"dataframe_records": [{"age": 39, "workclass": "Private"}]},
        {"instances": [[39, "Private"], {"age": 52, "workclass": None}]},
        {"inputs": {"age": [39, 52], "workclass": ["Private", "State-gov"]}},
    ),
):
    """A request of MLflow: rows in exactly one of four forms, and two members that are ignored."""

    dataframe_split: SplitFrame | None = None
    dataframe_records: list[dict[str, Value]] | None = None
    instances: list[Row] | None = None
    inputs: list[Row] | dict[str, Any] | None = Field(
        None, description="rows, or a list of values a feature by its name"
    )
    params: dict[str, Any] | None = Field(None, description="passed over")
    signature_name: str | None = Field(None, description="passed over")


class InvocationCsv(Text, json_schema_extra=like("age,workclass\n39,Private\n52,State-gov\n")):
    """A CSV body: a header with the features' names, then one row per line."""


class Predictions(Body, json_schema_extra=like({"predictions": [">50K", None]})):
    """One label per row; null for an unstable answer, and for a row that got no answer."""

    predictions: list[str | None]
