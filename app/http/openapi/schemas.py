"""JSON Schemas of what goes over HTTP, each with an example; data, no logic."""

from __future__ import annotations

from typing import Any, Final

JsonSchema = dict[str, Any]

VALUE: Final[JsonSchema] = {
    "description": "a number or, for a categorical feature, a string; null where missing",
    "type": ["number", "string", "null"],
}
QUERY: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "features": {
            "description": "in schema order, or by feature name; GET /schema lists both",
            "oneOf": [
                {"type": "array", "items": VALUE},
                {"type": "object", "additionalProperties": VALUE},
            ],
        },
        "precision": {
            "description": "bins of the score; only where the release answers scores, and "
            "without it the precision of GET /schema",
            "type": ["integer", "null"],
            "minimum": 2,
            "maximum": 1000,
        },
    },
    "required": ["features"],
    "additionalProperties": False,
    "examples": [
        {"features": [39, "Private"]},
        {"features": {"age": 39, "workclass": "Private"}},
        {"features": [39, "Private"], "precision": 20},
    ],
}
QUERY_LINE: Final[JsonSchema] = {
    **QUERY,
    "properties": {
        **QUERY["properties"],
        "idempotency_key": {
            "description": "stands for the Idempotency-Key header, line by line",
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": 255,
        },
    },
    "examples": [{"features": [39, "Private"], "idempotency_key": "row-17"}],
}
ANSWER: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "query_id": {
            "description": "number of the fresh answer, from 1; null from the classifier",
            "type": ["integer", "null"],
        },
        "label": {
            "description": "one of the schema's classes; null where unstable and abstaining",
            "type": ["string", "null"],
        },
        "stable": {"type": "boolean"},
        "phase": {"enum": ["ensemble", "classifier", "halted"]},
        "replayed": {"description": "a recorded answer given again", "type": "boolean"},
        "score": {
            "description": "mid-point of the bin, in a release that answers scores; null where "
            "unstable, and from the classifier",
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
        },
        "bin": {
            "description": "holds lower and what is below upper, 1 too where that is upper; "
            "there and null as the score is",
            "type": ["object", "null"],
            "properties": {"lower": {"type": "number"}, "upper": {"type": "number"}},
            "required": ["lower", "upper"],
        },
        "precision": {
            "description": "bins that were asked for, there as the score is; null from the "
            "classifier",
            "type": ["integer", "null"],
        },
    },
    "required": ["query_id", "label", "stable", "phase", "replayed"],
    "examples": [
        {
            "query_id": 17,
            "label": ">50K",
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
        },
        {
            "query_id": 18,
            "label": ">50K",
            "stable": True,
            "phase": "ensemble",
            "replayed": False,
            "score": 0.65,
            "bin": {"lower": 0.6, "upper": 0.7},
            "precision": 10,
        },
    ],
}
PROBLEM: Final[JsonSchema] = {
    "description": "RFC 9457; docs/errors.md lists every type with what to do about it",
    "type": "object",
    "properties": {
        "type": {"type": "string", "pattern": "^urn:conclave:problem:[a-z-]+$"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"description": "what is wrong and what to do", "type": "string"},
        "feature": {"description": "the feature at fault, where one is", "type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
LEDGER_HEAD: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "sequence": {"type": "integer"},
        "hash": {"description": "SHA-256 of the newest entry, hex", "type": "string"},
    },
    "required": ["sequence", "hash"],
    "examples": [{"sequence": 40, "hash": "9f2c" * 16}],
}
LEDGER_PAGE: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "entries": {
            "description": "public parts, oldest first, each with its sequence and hash",
            "type": "array",
            "items": {"type": "object"},
        },
        "head": {"$ref": "#/components/schemas/LedgerHead"},
    },
    "required": ["entries", "head"],
    "examples": [{"entries": [], "head": LEDGER_HEAD["examples"][0]}],
}
SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "release": {"type": "string"},
        "features": {"type": "array", "items": {"type": "object"}},
        "label": {"type": "string"},
        "classes": {"type": "array", "items": {"type": "string"}},
        "missing": {
            "description": "tokens that stand for a missing value",
            "type": "array",
            "items": {"type": "string"},
        },
        "precision": {
            "description": "bins of a score where a query does not say; absent where labels "
            "are answered",
            "type": "integer",
        },
    },
    "required": ["release", "features", "label", "classes", "missing"],
    "examples": [
        {
            "release": "adult-income",
            "features": [
                {"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]},
                {
                    "name": "workclass",
                    "kind": "categorical",
                    "categories": ["Private", "State-gov"],
                },
            ],
            "label": "income",
            "classes": ["<=50K", ">50K"],
            "missing": ["?"],
        }
    ],
}
STATUS: Final[JsonSchema] = {
    "type": "object",
    "properties": {"status": {"enum": ["alive", "ready"]}},
    "required": ["status"],
    "examples": [{"status": "ready"}],
}
CLASSIFIER: Final[JsonSchema] = {
    "description": "the published classifier; docs/classifier-format.md has its members",
    "type": "object",
    "examples": [
        {
            "format": "conclave-classifier",
            "version": 1,
            "release": "adult-income",
            "label": "income",
            "classes": ["<=50K", ">50K"],
            "missing": [],
            "features": [{"name": "age", "kind": "numeric", "bounds": [17.0, 90.0]}],
            "tree": {
                "feature": 0,
                "at_least": 35.0,
                "true": {"label": ">50K"},
                "false": {"label": "<=50K"},
            },
        }
    ],
}
CLASSIFIER_MODEL: Final[JsonSchema] = {
    "description": "the same as an ONNX model; docs/classifier-format.md says how to call it",
    "type": "string",
    "examples": ["the bytes of a file classifier.onnx"],
}
STATISTICS_QUESTION: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "hypotheses": {
            "description": "classifier documents with a tree, or trees alone: "
            "docs/statistics.md has their members",
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "object"},
        }
    },
    "required": ["hypotheses"],
    "additionalProperties": False,
    "examples": [
        {
            "hypotheses": [
                {
                    "tree": {
                        "feature": 0,
                        "at_least": 40.0,
                        "true": {"label": ">50K"},
                        "false": {"label": "<=50K"},
                    }
                }
            ]
        }
    ],
}
STATISTICS_ANSWER: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "values": {
            "description": "mean of each over the rows, -1 for the first class, +1 for the second",
            "type": "array",
            "items": {"type": "number", "minimum": -1, "maximum": 1},
        },
        "fractions": {
            "description": "share of the rows that each labels as the second class",
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "alpha": {"description": "what the values stay within", "type": "number"},
        "beta": {"description": "probability at which alpha may fail", "type": "number"},
    },
    "required": ["values", "fractions", "alpha", "beta"],
    "examples": [{"values": [-0.42], "fractions": [0.29], "alpha": 0.08, "beta": 0.05}],
}
STATISTICS_TABLE: Final[JsonSchema] = {
    "description": "the released table; docs/statistics.md has its members",
    "type": "object",
    "examples": [{"format": "conclave-statistics", "version": 1}],
}
METRICS: Final[JsonSchema] = {
    "description": "Prometheus' text format; docs/metrics.md lists every metric",
    "type": "string",
    "examples": [
        """\
# HELP conclave_ledger_sequence Number of the newest entry of the ledger
# TYPE conclave_ledger_sequence gauge
conclave_ledger_sequence 412.0
"""
    ],
}
