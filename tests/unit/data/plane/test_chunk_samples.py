"""Learners on a sample of each chunk: the same bytes streamed and in memory, and by rows' places.

Which rows are in a sample depends on their slots and on public numbers, never on their values.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from distributed import LocalCluster
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet

from app.data.plane import chunk_samples, local_engine
from app.data.plane.chunk_samples import ChunkSamples, SampleReading, Sampling
from app.data.plane.summaries import SummarisedPart
from app.data.sources import encoded_parts
from app.errors import ConfigurationError, DataError, InvariantError
from app.learning.chunks import chunk_offsets, first_of_chunks
from app.learning.encoding.row_codes import NumberCodes
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.release import streaming
from app.release.streaming import row_codes, streams
from app.release.terms.configuration import configure
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import blocks, write_configuration
from tests.builders.release.parts_release import PRIVATE, SlotNoise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from app.data.plane.engine import Held

ROWS: Final = 1500
SIZE: Final = 40
ROWS_MAX: Final = 20
UNSHARED: Final = "[privacy.shares]\nrelabel = 0\nanswers = 0.7\nclassifier = 0.3\n[answers]"
TREES: Final = ("bins = 16", "bins = 4")
OWN: Final = '["tests.builders.learners.many_row_predictors:{}", "{}"]'
LEARNERS: Final = {
    "logistic regressions together": 'estimator = "sklearn.linear_model.LogisticRegression"',
    "trees together": (
        'estimator = "sklearn.tree.DecisionTreeClassifier"\nparams = { max_depth = 3 }'
    ),
    "one by one": 'estimator = "sklearn.naive_bayes.GaussianNB"',
    "drawn": (
        'estimator = "sklearn.ensemble.RandomForestClassifier"\nparams = { n_estimators = 3 }'
    ),
    "in order": 'estimator = "sklearn.linear_model.SGDClassifier"',
    "own predictors": "",
    "own predictors by halving": 'rule = "halving"',
}
UNRELABELLED: Final = ("trees together", "in order")
PREDICTORS: Final = ", ".join(
    f'"tests.builders.learners.row_predictors:{name}"' for name in ("first_half", "red", "never")
)


@cache
def _table() -> pa.Table:
    return pa.concat_tables([pa.table(block) for block in blocks(ROWS)])


def _config(folder: Path, kind: str, source: str, *, rows_max: int = ROWS_MAX) -> Path:
    """Write rows and a release of learners on samples of them; return its configuration."""
    if source == "csv":
        rows = folder / "rows.csv"
        csv.write_csv(_table(), rows)
    else:
        rows = folder / "rows.parts"
        rows.mkdir(exist_ok=True)
        for part, start in enumerate((0, 100, 900)):
            some = _table()[start : (100, 900, ROWS)[part]]
            parquet.write_table(some, rows / f"{part}.parquet", row_group_size=300)
    config = write_configuration(folder, rows, size=SIZE)
    text = config.read_text().replace("queries = 100000", "queries = 1000")
    text = text.replace(*TREES)
    if kind.startswith("own"):
        text = text.replace('"trees"', f'"finite"\npredictors = [{PREDICTORS}]')
        text = text.replace("depth = 2\nbins = 4\n", "")
    text = text.replace(
        "[privacy]", f"[learner]\nrows_max = {rows_max}\n{LEARNERS[kind]}\n[privacy]"
    )
    config.write_text(text.replace("[answers]", UNSHARED) if kind in UNRELABELLED else text)
    return config


def _drawn(
    config: Path,
    ledger: str,
    *,
    noise: ScriptedNoise | None = None,
    is_streamed: bool = True,
    engine: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """Open in a new ledger, and return what is drawn."""
    given_too = {
        "CONCLAVE_LEDGER__URL": f"sqlite:///{config.parent / ledger}",
        **({"CONCLAVE_ENGINE__WORKERS": "1"} if engine is None else engine),
    }
    noise = noise or ScriptedNoise(seeded_words(3))
    release = open_from_settings(load_settings(config, given_too), noise=noise)
    opened = release.state.release
    assert opened is not None
    assert streams(opened) == is_streamed
    assert opened.parameters["learner.rows_max"] == str(release.configuration.learner.rows_max)
    pieces = {name: release.ledger.private(name) or b"" for name in PRIVATE}
    release.ledger.close()
    return pieces


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows stream, in parts of a few."""
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS)
    monkeypatch.setattr(streaming, "BYTES_MIN", 1)
    monkeypatch.setattr(encoded_parts, "RANGE_BYTES", 20_000)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler and two workers in this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as running:
        yield running


def _of(cluster: LocalCluster) -> dict[str, str]:
    return {
        "CONCLAVE_ENGINE__NAME": "dask",
        "CONCLAVE_ENGINE__ADDRESS": cluster.scheduler_address,
        "CONCLAVE_ENGINE__WORKERS": "2",
    }


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("kind", "source"),
    [*((kind, "parquet") for kind in LEARNERS), ("one by one", "csv"), ("own predictors", "csv")],
)
def test_a_sample_draws_what_it_draws_in_memory(
    kind: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the kind of learner, the number of workers and the order of parts."""
    config = _config(tmp_path, kind, source)
    one = _drawn(config, "one.db")
    real = local_engine.LocalEngine.read

    def reversed_parts(engine: object, read: object, items: list[object], done: object) -> object:
        return real(engine, read, items[::-1], done)  # type: ignore[arg-type]  # as given

    with monkeypatch.context() as patch:
        patch.setattr(local_engine.LocalEngine, "read", reversed_parts)
        two = _drawn(config, "two.db", engine={"CONCLAVE_ENGINE__WORKERS": "2"})
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS + 1)
    noise = SlotNoise(seeded_words(3))
    in_memory = _drawn(config, "memory.db", noise=noise, is_streamed=False)
    del one["permutation"], two["permutation"], in_memory["permutation"]
    assert two == one
    assert in_memory == one
    assert (one["hypothesis"] == b"null") == (kind in UNRELABELLED)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "kind", ["logistic regressions together", "one by one", "drawn", "in order"]
)
def test_a_cluster_fits_samples_on_its_workers(
    kind: str, tmp_path: Path, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes; the server reads no row, and is sent models alone."""
    config = _config(tmp_path, kind, "parquet")
    local = _drawn(config, "local.db")
    assert _drawn(config, "dask.db", engine=_of(cluster)) == local


@pytest.mark.usefixtures("_small")
def test_predictors_of_ones_own_are_refused_on_a_cluster(
    tmp_path: Path, cluster: LocalCluster
) -> None:
    """One line names both settings, before anything is read."""
    config = _config(tmp_path, "own predictors", "parquet")
    with pytest.raises(ConfigurationError, match=r'learner\.rows_max: .*name = "dask"') as caught:
        _drawn(config, "refused.db", engine=_of(cluster))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "refused.db").exists()
