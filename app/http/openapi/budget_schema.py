"""JSON Schemas of the budget and what is told beside it, each with an example; data, no logic."""

from __future__ import annotations

from typing import Any, Final

JsonSchema = dict[str, Any]

CHARGE: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "mechanism": {"enum": ["relabel", "answers", "classifier", "statistics"]},
        "epsilon": {"type": "number"},
        "delta": {"type": "number"},
    },
    "required": ["mechanism", "epsilon", "delta"],
}
COUNT: Final[JsonSchema] = {"type": "integer", "minimum": 0}
LIMIT: Final[JsonSchema] = {
    "description": "null where unlimited",
    "type": ["integer", "null"],
    "minimum": 0,
}
SEQUEL: Final[JsonSchema] = {"enum": ["halt", "classifier", "student"]}
BUDGET: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "release": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "phase": {"enum": ["ensemble", "classifier", "halted"]},
        "student": {
            "description": "the classifier that answers in this phase is a student of the answers",
            "type": "boolean",
        },
        "switching": {
            "description": "the classifier that answers in this phase is being made",
            "type": "boolean",
        },
        "epsilon": {"type": "number"},
        "delta": {"type": "number"},
        "composed": {
            "description": "what all releases of the database promise together; null for one "
            "that is alone",
            "type": ["object", "null"],
            "properties": {
                "epsilon": {"type": "number"},
                "delta": {"type": "number"},
                "releases": {"type": "integer", "minimum": 1},
            },
            "required": ["epsilon", "delta", "releases"],
        },
        "charged": {
            "description": "committed, by mechanism",
            "type": "array",
            "items": CHARGE,
        },
        "reserved": {
            "description": "set aside for what is not drawn yet",
            "type": "array",
            "items": CHARGE,
        },
        "left": {
            "description": "neither charged nor set aside",
            "type": "object",
            "properties": {"epsilon": {"type": "number"}, "delta": {"type": "number"}},
            "required": ["epsilon", "delta"],
        },
        "with_scores": {
            "description": "answers have scores, and the cutoff counts units",
            "type": "boolean",
        },
        "follows": {
            "description": "what follows the last answer, by what the ensemble runs out of",
            "type": "object",
            "properties": {"limit": SEQUEL, "cutoff": SEQUEL},
            "required": ["limit", "cutoff"],
        },
        "queries": {
            "description": "fresh answers of the ensemble, stable and unstable",
            "type": "object",
            "properties": {"answered": COUNT, "limit": LIMIT, "left": LIMIT},
            "required": ["answered", "limit", "left"],
        },
        "unstable": {
            "description": "unstable answers; in a release that answers scores, units",
            "type": "object",
            "properties": {"count": COUNT, "cutoff": LIMIT, "left": LIMIT},
            "required": ["count", "cutoff", "left"],
        },
        "ensemble": {
            "type": "object",
            "properties": {"size": LIMIT},
            "required": ["size"],
        },
        "hopeless": {
            "description": "it was opened though its ensemble gives next to no stable answer",
            "type": "boolean",
        },
        "ledger": {
            "type": "object",
            "properties": {"sequence": COUNT, "head": {"type": "string"}},
            "required": ["sequence", "head"],
        },
    },
    "required": [
        "release",
        "phase",
        "epsilon",
        "delta",
        "composed",
        "charged",
        "reserved",
        "left",
        "with_scores",
        "follows",
        "queries",
        "unstable",
        "ensemble",
        "hopeless",
        "ledger",
    ],
    "examples": [
        {
            "release": {"name": "adult-income"},
            "phase": "ensemble",
            "switching": False,
            "epsilon": 1.0,
            "delta": 1e-06,
            "composed": None,
            "charged": [
                {"mechanism": "relabel", "epsilon": 0.1, "delta": 0.0},
                {"mechanism": "answers", "epsilon": 0.6, "delta": 1e-06},
            ],
            "reserved": [{"mechanism": "classifier", "epsilon": 0.3, "delta": 0.0}],
            "left": {"epsilon": 0.0, "delta": 0.0},
            "with_scores": False,
            "follows": {"limit": "classifier", "cutoff": "halt"},
            "queries": {"answered": 17, "limit": 1000, "left": 983},
            "unstable": {"count": 1, "cutoff": 5, "left": 4},
            "ensemble": {"size": 800},
            "hopeless": False,
            "ledger": {"sequence": 12, "head": "9f2c" * 16},
        }
    ],
}
NUMBER_OR_NONE: Final[JsonSchema] = {"type": ["number", "null"]}
COUNTS: Final[JsonSchema] = {"type": "array", "items": COUNT}
AHEAD: Final[JsonSchema] = {
    "description": "null where it need not come; without seconds where nothing is asked now",
    "type": ["object", "null"],
    "properties": {"answers": {"type": "number"}, "seconds": {"type": "number"}},
    "required": ["answers"],
}
OUTLOOK: Final[JsonSchema] = {
    "description": "times are seconds since 1970; what needs the ledger's entries is null until "
    "they are read",
    "type": "object",
    "properties": {
        "time": {"description": "of this outlook", "type": "integer"},
        "opened_at": {"description": "when this server opened the release", "type": "integer"},
        "pace": {
            "description": "answers of the ensemble a second, over a short and a long window",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "window_seconds": {"type": "integer"},
                    "answers_per_second": {"type": "number"},
                },
                "required": ["window_seconds", "answers_per_second"],
            },
        },
        "over_time": {
            "description": "counts by time since this server opened the release; at most 240 "
            "points, each holds until the next",
            "type": "object",
            "properties": {"times": COUNTS, "answered": COUNTS, "unstable": COUNTS},
            "required": ["times", "answered", "unstable"],
        },
        "over_answers": {
            "description": "after how many answers the cutoff's count became what, from the "
            "ledger's first entry; at most 240 points",
            "type": ["object", "null"],
            "properties": {"answers": COUNTS, "unstable": COUNTS},
            "required": ["answers", "unstable"],
        },
        "unstable_rate": {
            "description": "unstable answers, or units, an answer, with a confidence band; null "
            "before the first answer",
            "type": ["object", "null"],
            "properties": {
                name: {"type": "number"} for name in ("mean", "lower", "upper", "confidence")
            },
            "required": ["mean", "lower", "upper", "confidence"],
        },
        "forecast": {
            "description": "what is ahead at the present rate; null unless the ensemble answers",
            "type": ["object", "null"],
            "properties": {
                "answers_per_second": {"type": "number"},
                "confidence": {"type": "number"},
                "first": {"enum": ["limit", "cutoff", "either"]},
                "limit": AHEAD,
                "cutoff": {
                    "type": "object",
                    "properties": {"earliest": AHEAD, "expected": AHEAD, "latest": AHEAD},
                    "required": ["earliest", "expected", "latest"],
                },
            },
            "required": ["answers_per_second", "confidence", "first", "limit", "cutoff"],
        },
        "alarm": {
            "description": "whether unstable answers come faster than the cutoff allows by more "
            "than chance explains; null where they cannot run out first",
            "type": ["object", "null"],
            "properties": {
                "raised": {"type": "boolean"},
                "raised_at_answer": {"type": ["integer", "null"]},
                "pace_allowed": {"type": "number"},
                "evidence": {"type": "number"},
                "evidence_needed": {"type": "number"},
                "false_alarm_probability": {"type": "number"},
            },
            "required": ["raised", "raised_at_answer", "evidence", "evidence_needed"],
        },
        "chain": {
            "description": "which entries this server has folded again from the first, hash by "
            "hash; complete once it has come to the newest",
            "type": "object",
            "properties": {
                "checked_from": {"type": "integer"},
                "checked_to": COUNT,
                "hash": {"type": "string"},
                "checked_at": {"type": "integer"},
                "complete": {"type": "boolean"},
            },
            "required": ["checked_from", "checked_to", "hash", "checked_at", "complete"],
        },
    },
    "required": [
        "time",
        "opened_at",
        "pace",
        "over_time",
        "over_answers",
        "unstable_rate",
        "forecast",
        "alarm",
        "chain",
    ],
    "examples": [
        {
            "time": 1767225660,
            "opened_at": 1767225600,
            "pace": [
                {"window_seconds": 10, "answers_per_second": 0.5},
                {"window_seconds": 300, "answers_per_second": 0.25},
            ],
            "over_time": {
                "times": [1767225600, 1767225630, 1767225659],
                "answered": [2, 12, 17],
                "unstable": [0, 1, 1],
            },
            "over_answers": {"answers": [9], "unstable": [1]},
            "unstable_rate": {
                "mean": 0.0588,
                "lower": 0.0015,
                "upper": 0.2869,
                "confidence": 0.95,
            },
            "forecast": {
                "answers_per_second": 0.25,
                "confidence": 0.9,
                "first": "either",
                "limit": {"answers": 983, "seconds": 3932.0},
                "cutoff": {
                    "earliest": {"answers": 5, "seconds": 20.0},
                    "expected": {"answers": 68.0, "seconds": 272.0},
                    "latest": {"answers": 5892, "seconds": 23568.0},
                },
            },
            "alarm": {
                "raised": False,
                "raised_at_answer": None,
                "pace_allowed": 0.005,
                "evidence": 3.1,
                "evidence_needed": 100.0,
                "false_alarm_probability": 0.01,
            },
            "chain": {
                "checked_from": 1,
                "checked_to": 12,
                "hash": "9f2c" * 16,
                "checked_at": 1767225660,
                "complete": True,
            },
        }
    ],
}
PARAMETERS: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "parameters": {
            "description": "in reading order",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "value": {"type": "string"},
                    "meaning": {"description": "in plain words", "type": "string"},
                    "formula": {"type": "string"},
                },
                "required": ["name", "value", "meaning", "formula"],
            },
        }
    },
    "required": ["parameters"],
    "examples": [
        {
            "parameters": [
                {
                    "name": "cutoff (T)",
                    "value": "5 unstable answers",
                    "meaning": "When these are used up, new queries are refused.",
                    "formula": "unstable <= T",
                }
            ]
        }
    ],
}
