"""The configuration that lives have in common, and how one is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Tables: TypeAlias = "Mapping[str, Mapping[str, Any]]"

FEATURES: Final = (
    {
        "name": "age",
        "kind": "numeric",
        "bounds": [0, 100],
        "thresholds": [25, 50, 75],
        "threshold_shares": [0.75, 0.5, 0.25],
    },
    {"name": "income", "kind": "numeric", "bounds": [0, 100], "thresholds": [25, 50, 75]},
    {
        "name": "group",
        "kind": "categorical",
        "categories": ["common", "rare"],
        "category_shares": [0.8, 0.12],
    },
)
DATA: Final = {"label": "answer", "classes": ["no", "yes"], "missing": ["?"]}
# With 10 rows a learner, and an epsilon at which unanimous votes are never a hit.
BASE: Final[Tables] = {
    "release": {"name": "members"},
    "data": DATA,
    "hypotheses": {"class": "trees", "depth": 2},
    "learner": {},
    "classifier": {},
    "student": {},
    "statistics": {},
    "privacy": {"epsilon": 60, "delta": 1e-6},
    "privacy.shares": {"relabel": 0.2, "answers": 0.5, "classifier": 0.3},
    "answers": {"queries": 24, "cutoff": 6, "ensemble": 60},
    "ledger": {},
    "server": {"port": 0},
    "logs": {},
}


def merged(*changes: Tables) -> dict[str, dict[str, Any]]:
    """Return the tables of a release; later changes win, key by key, and None removes one."""
    tables = {name: dict(table) for name, table in BASE.items()}
    for each in changes:
        for name, table in each.items():
            whole = {**tables.get(name, {}), **table}
            tables[name] = {key: value for key, value in whole.items() if value is not None}
    return tables


def toml_of(tables: Tables) -> str:
    """Return the text of a configuration."""
    lines: list[str] = []
    for name, table in tables.items():
        own = dict(table)
        features = own.pop("features", ()) if name == "data" else ()
        lines += [f"[{name}]", *(f"{key} = {_value(value)}" for key, value in own.items())]
        for feature in features:
            lines += ["[[data.features]]", *(f"{key} = {_value(v)}" for key, v in feature.items())]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    """Return a value as TOML; a table stands in its line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
