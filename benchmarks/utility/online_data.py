"""Rows of benchmark B: private ones read once, test rows as distinct vectors."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.data.vectors import encode
from app.release.drawing import read_private_rows
from app.release.progress import no_progress
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import ROOT
from benchmarks.measuring.trials import read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.data.schema import Schema
    from app.settings.settings import Settings
    from benchmarks.measuring.trials import TestRow


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The public test rows.

    Attributes:
        values: distinct encoded vectors, shape ``(V, d)``.
        place: which of them each row is, shape ``(n,)``.
        labels: class index of each row, shape ``(n,)``.

    """

    values: NDArray[np.float64]
    place: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """Return how many rows of each label a vector has, shape ``(V, 2)``."""
        flat = np.bincount(2 * self.place + self.labels, minlength=2 * len(self.values))
        return flat.reshape(-1, 2).astype(np.int64)


def data_folder() -> Path:
    """Return where the data sets are."""
    return Path(os.environ.get("CONCLAVE_TEST_DATA") or ROOT.parent / "shared" / "data")


def loaded(data: str, changes: Mapping[str, str]) -> Settings:
    """Return the settings of an example, with changes as environment variables."""
    source = {"CONCLAVE_DATA__SOURCE": str(data_folder() / data / "train.csv")}
    return load_settings(ROOT / "examples" / f"{data}.toml", {**source, **changes})


@cache
def private_rows(data: str) -> PrivateRows:
    """Return the private rows, read as a server reads them."""
    return read_private_rows(loaded(data, {}), no_progress)


@cache
def test_set(data: str) -> QuerySet:
    """Return the test rows."""
    schema = loaded(data, {}).data.public_schema()
    return query_set(schema, read_rows(data_folder() / data / "test.csv", schema))


def query_set(schema: Schema, rows: Sequence[TestRow]) -> QuerySet:
    """Return labelled rows as distinct vectors."""
    vectors = list(dict.fromkeys(row.vector for row in rows))
    places = {vector: index for index, vector in enumerate(vectors)}
    return QuerySet(
        encode(schema, vectors),
        np.array([places[row.vector] for row in rows], dtype=np.int64),
        np.array([schema.classes.index(row.label) for row in rows], dtype=np.int64),
    )
