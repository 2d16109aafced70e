"""JSON Schemas of other protocols, Open Inference and MLflow's, each with an example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from app.http.openapi.schemas import JsonSchema

VALUE: Final[JsonSchema] = {"type": ["number", "string", "boolean", "null"]}
ROWS: Final[JsonSchema] = {
    "type": "array",
    "items": {
        "oneOf": [
            {"type": "array", "items": VALUE},
            {"type": "object", "additionalProperties": VALUE},
            {"type": ["number", "string", "null"]},
        ]
    },
}
SHAPE: Final[JsonSchema] = {"type": "array", "items": {"type": "integer", "minimum": 0}}
V2_ERROR: Final[JsonSchema] = {
    "type": "object",
    "properties": {"error": {"description": "what is wrong and what to do", "type": "string"}},
    "required": ["error"],
}
V2_SERVER: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "extensions": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "version", "extensions"],
    "examples": [{"name": "conclave", "version": "1.0.0", "extensions": ["binary_tensor_data"]}],
}
V2_LIVE: Final[JsonSchema] = {
    "type": "object",
    "properties": {"live": {"const": True}},
    "required": ["live"],
    "examples": [{"live": True}],
}
V2_READY: Final[JsonSchema] = {
    "type": "object",
    "properties": {"ready": {"const": True}},
    "required": ["ready"],
    "examples": [{"ready": True}],
}
V2_MODEL_READY: Final[JsonSchema] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ready": {"const": True}},
    "required": ["name", "ready"],
    "examples": [{"name": "adult-income", "ready": True}],
}
V2_TENSOR: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "datatype": {"type": "string"},
        "shape": {
            "description": "-1 stands for the number of rows",
            "type": "array",
            "items": {"type": "integer"},
        },
    },
    "required": ["name", "datatype", "shape"],
}
V2_MODEL: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "name": {"description": "the release's name", "type": "string"},
        "platform": {"type": "string"},
        "inputs": {"type": "array", "items": V2_TENSOR},
        "outputs": {"type": "array", "items": V2_TENSOR},
    },
    "required": ["name", "platform", "inputs", "outputs"],
    "examples": [
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
    ],
}
V2_INFERENCE: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "id": {"description": "given back in the reply", "type": ["string", "null"]},
        "inputs": {
            "description": "every input of the model, in any order",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "shape": SHAPE,
                    "datatype": {
                        "description": "BYTES, or any FP or INT type where the model has FP64",
                        "type": "string",
                    },
                    "data": {
                        "description": "row after row, flat or nested as the shape is; absent "
                        "where binary_data_size says that it follows the JSON",
                        "type": ["array", "null"],
                    },
                    "parameters": {
                        "type": ["object", "null"],
                        "properties": {"binary_data_size": {"type": ["integer", "null"]}},
                    },
                },
                "required": ["name", "shape", "datatype"],
            },
        },
        "outputs": {
            "description": "label, stable and query_id are there; absent asks for all",
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {
                    "name": {"enum": ["label", "stable", "query_id"]},
                    "parameters": {
                        "type": ["object", "null"],
                        "properties": {"binary_data": {"type": ["boolean", "null"]}},
                    },
                },
                "required": ["name"],
            },
        },
        "parameters": {
            "type": ["object", "null"],
            "properties": {"binary_data_output": {"type": ["boolean", "null"]}},
        },
    },
    "required": ["inputs"],
    "examples": [
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
    ],
}
V2_WITH_BINARY: Final[JsonSchema] = {
    "description": "the JSON, as long as Inference-Header-Content-Length says, then each binary "
    "tensor in order, little-endian; an element of BYTES after its length in four bytes",
    "type": "string",
    "examples": ["the JSON and the binary tensors behind it"],
}
V2_OUTPUTS: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "model_name": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {
            "description": "label is empty where unstable; after a halt rows have an empty "
            "label, false and 0",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "datatype": {"enum": ["BYTES", "BOOL", "INT64"]},
                    "shape": SHAPE,
                    "data": {"type": "array", "items": {"type": ["string", "boolean", "integer"]}},
                },
                "required": ["name", "datatype", "shape"],
            },
        },
    },
    "required": ["model_name", "outputs"],
    "examples": [
        {
            "model_name": "adult-income",
            "outputs": [
                {"name": "label", "datatype": "BYTES", "shape": [2], "data": [">50K", ""]},
                {"name": "stable", "datatype": "BOOL", "shape": [2], "data": [True, False]},
                {"name": "query_id", "datatype": "INT64", "shape": [2], "data": [17, 18]},
            ],
            "id": "a-1",
        }
    ],
}
INVOCATION: Final[JsonSchema] = {
    "description": "exactly one of the four forms",
    "type": "object",
    "properties": {
        "dataframe_split": {
            "type": ["object", "null"],
            "properties": {
                "columns": {"type": ["array", "null"], "items": {"type": "string"}},
                "data": {"type": "array", "items": {"type": "array", "items": VALUE}},
                "index": {"type": ["array", "null"]},
            },
            "required": ["data"],
            "additionalProperties": False,
        },
        "dataframe_records": {
            "type": ["array", "null"],
            "items": {"type": "object", "additionalProperties": VALUE},
        },
        "instances": {"oneOf": [ROWS, {"type": "null"}]},
        "inputs": {
            "description": "rows, or a list of values a feature by its name",
            "oneOf": [ROWS, {"type": "object"}, {"type": "null"}],
        },
        "params": {"description": "passed over", "type": ["object", "null"]},
        "signature_name": {"description": "passed over", "type": ["string", "null"]},
    },
    "additionalProperties": False,
    "examples": [
        {
            "dataframe_split": {
                "columns": ["age", "workclass"],
                "data": [[39, "Private"], [52, "State-gov"]],
            }
        },
        {"dataframe_records": [{"age": 39, "workclass": "Private"}]},
        {"instances": [[39, "Private"], {"age": 52, "workclass": None}]},
        {"inputs": {"age": [39, 52], "workclass": ["Private", "State-gov"]}},
    ],
}
INVOCATION_CSV: Final[JsonSchema] = {
    "description": "a header with the features' names, then a row a line",
    "type": "string",
    "examples": ["age,workclass\n39,Private\n52,State-gov\n"],
}
PREDICTIONS: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "predictions": {
            "description": "a label a row; null where unstable, and for rows after a halt",
            "type": "array",
            "items": {"type": ["string", "null"]},
        }
    },
    "required": ["predictions"],
    "examples": [{"predictions": [">50K", None]}],
}
