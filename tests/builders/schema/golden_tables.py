"""Tables with one type a column, of which ``golden_rows.json`` holds what e54552f made.

That file was written by ``python -m tests.builders.schema.golden_tables FILE`` in a checkout of
that commit, before values were read one by one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from app.data.schema import CategoricalFeature, NumericFeature, Schema
from app.data.sources.sources import read_rows
from app.data.vectors import encode
from app.estimator.frame_columns import public_columns
from tests.builders.schema.tables import FORMATS, write_table

if TYPE_CHECKING:
    from app.data.rows import PrivateRows

COUNT = 8
SCHEMA = Schema(
    label="label",
    classes=("0", "1", "-7"),
    features=(
        NumericFeature(name="whole", lower=-50.0, upper=2.0**60),
        NumericFeature(name="real", lower=-1.0, upper=1e6),
        NumericFeature(name="written", lower=-10.0, upper=10.0),
        CategoricalFeature(name="code", categories=("1", "-2", "3000", "01")),
        CategoricalFeature(name="share", categories=("0.5", "2", "0.1", "1e+16")),
        CategoricalFeature(name="word", categories=("01", "1", "a", "ü")),
    ),
    missing=("?", "-9"),
)
TABLE: dict[str, list[Any]] = {
    "label": [0, 1, -7, 0, 1, 1, 0, -7],
    "whole": [1, -9, 2**53 + 1, -70, 0, 5, 2**62, 7],
    "real": [0.1, 0.5, 2.5, 1e300, -3.5, 1e-5, 7.25, 0.25],
    "written": ["1", " 2 ", "1e2", "-9", "?", ".5", "+3", ""],
    "code": [1, -2, 3000, -9, 5, 2**62, 0, 1],
    "share": [0.5, 2.0, 0.1, 1e16, 0.3, -9.0, 2.5, 0.5],
    "word": ["01", "1", "a", "ü", "1.0", "?", "", " a"],
}
TYPED: dict[str, dict[str, str]] = {
    "narrow": {"label": "int8", "whole": "int32", "real": "float32", "code": "int16"},
    "unsigned": {"label": "int16", "whole": "int64", "real": "float64", "share": "float32"},
}
FLAG = CategoricalFeature(name="code", categories=("True", "false"))
DECIMALS = ["1.50", "2.00", "-9.00", "3000", "0.10", "7", "1", "0.00"]


def encoded_rows() -> dict[str, object]:
    """Return what every kind of source and the estimator make of the tables."""
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            (Path(folder) / name).mkdir()
            source, query = write_table(Path(folder) / name, TABLE, name)
            found[name] = shown(read_rows(source, SCHEMA, query=query))
        for name, source, schema in typed_sources(Path(folder)):
            found[name] = shown(read_rows(source, schema))
    return {**found, **estimator_rows()}


def typed_sources(folder: Path) -> list[tuple[str, str, Schema]]:
    """Write archives and Parquet files whose columns have a type that is named."""
    sources = []
    for name, types in TYPED.items():
        arrays = {key: _array(key, types.get(key)) for key in TABLE}
        path = str(folder / f"{name}.npz")
        np.savez(path, allow_pickle=False, **arrays)
        sources.append((f"npz {name}", path, SCHEMA))
        path = str(folder / f"{name}.parquet")
        parquet.write_table(pa.table(arrays), path)
        sources.append((f"parquet {name}", path, SCHEMA))
    coded = {key: pa.array(values).dictionary_encode() for key, values in TABLE.items()}
    parquet.write_table(pa.table(coded), folder / "coded.parquet")
    sources.append(("parquet coded", str(folder / "coded.parquet"), SCHEMA))
    exact = pa.array([Decimal(text) for text in DECIMALS])
    decimals = {key: pa.array(values) for key, values in TABLE.items()}
    decimals |= {"whole": exact, "real": exact, "code": exact}
    parquet.write_table(pa.table(decimals), folder / "decimals.parquet")
    sources.append(("parquet decimals", str(folder / "decimals.parquet"), SCHEMA))
    flags = {**TABLE, "code": [index % 3 == 0 for index in range(COUNT)]}
    named = {"code": FLAG}
    features = tuple(named.get(feature.name, feature) for feature in SCHEMA.features)
    flagged = Schema(
        label="label", classes=SCHEMA.classes, features=features, missing=SCHEMA.missing
    )
    for kind in ("npz", "parquet"):
        (folder / f"flags {kind}").mkdir()
        source, _ = write_table(folder / f"flags {kind}", flags, kind)
        sources.append((f"{kind} flags", source, flagged))
    return sources


def estimator_rows() -> dict[str, object]:
    """Return what the estimator makes of arrays of one type."""
    arrays: dict[str, tuple[Any, Any]] = {
        "estimator numbers": (np.array([TABLE["real"], TABLE["share"]]).T, None),
        "estimator whole": (np.array([TABLE["code"], TABLE["label"]]).T, {1: [0, 1, 7]}),
        "estimator real": (np.array([TABLE["real"], TABLE["share"]]).T, {1: [0.5, 2.0, 3.0]}),
        "estimator words": (np.array([TABLE["word"], TABLE["word"]]).T, {0: ["01", "a"], 1: [1]}),
        "estimator objects": (
            np.array([TABLE["real"], TABLE["word"]], dtype=object).T,
            {1: ["01", "1", "ü"]},
        ),
    }
    found: dict[str, object] = {}
    for name, (values, categories) in arrays.items():
        columns = public_columns(values, bounds=(-5.0, 50.0), categories=categories)
        features = tuple(_feature(table) for table in columns.tables())
        schema = Schema(label="label", classes=("0", "1"), features=features)
        found[name] = _texts(encode(schema, columns.vectors(values)))
    return found


def shown(rows: PrivateRows) -> dict[str, object]:
    """Return rows as lists, each number by the text that reads back the same."""
    return {"values": _texts(rows.values), "labels": rows.labels.tolist()}


def _texts(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[str]:
    return [" ".join(map(repr, row)) for row in values.tolist()]


def _array(name: str, kind: str | None) -> np.ndarray[Any, Any]:
    values = TABLE[name]
    if kind is not None and np.dtype(kind).kind == "i":
        limits = np.iinfo(kind)
        return np.array([min(max(value, limits.min), limits.max) for value in values], dtype=kind)
    with np.errstate(over="ignore"):
        return np.array(values if name != "real" else [min(v, 1e30) for v in values], dtype=kind)


def _feature(table: dict[str, object]) -> NumericFeature | CategoricalFeature:
    name: Any = table["name"]
    if table["kind"] == "numeric":
        bounds: Any = table["bounds"]
        return NumericFeature(name=name, lower=bounds[0], upper=bounds[1])
    categories: Any = table["categories"]
    return CategoricalFeature(name=name, categories=tuple(categories))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(encoded_rows(), indent=1) + "\n", encoding="utf-8")
