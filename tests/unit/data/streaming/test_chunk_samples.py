"""Learners on a sample of each chunk: the same bytes streamed and in memory, and by rows' places.

Which rows are in a sample depends on their slots and on public numbers, never on their values.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from distributed import LocalCluster
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from app.data.persons import PersonColumn
from app.data.schema import NumericFeature, Schema
from app.data.sources import encoded_parts
from app.data.streaming import local_engine, streamed_rows
from app.data.streaming.chunk_samples import ChunkSamples, SampleFit, SampleReading, Sampling
from app.data.streaming.dask_engine import DaskEngine
from app.data.streaming.local_engine import LocalEngine
from app.data.streaming.part_summaries import Reading
from app.data.streaming.person_numbers import DistinctPersons
from app.data.streaming.streamed_rows import StreamedRows
from app.errors import ConfigurationError, DataError, InvariantError, ReleaseMismatchError
from app.estimator import PrivateQueryClassifier
from app.learning.chunks import chunk_offsets, first_of_chunks
from app.learning.encoding.row_codes import NO_CODES, NumberCodes
from app.learning.ensemble import fit_ensemble
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.voting.keyed_slots import Slots, chunk_of_slots
from app.release import drawing, streaming
from app.release.streaming import row_codes, streams
from app.release.terms.configuration import configure
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import (
    PERSON,
    blocks,
    persons_of_rows,
    write_configuration,
)
from tests.builders.release.growing_release import GROWS
from tests.builders.release.parts_release import PRIVATE, SlotNoise
from tests.builders.release.student_release import STUDENT
from tests.property.one_record import settings_of
from tests.unit.data.streaming.test_streamed_classes import by_digests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from numpy.typing import NDArray

    from app.data.sources.parts import Part

NEAREST: Final = {
    "learner__estimator": "sklearn.neighbors.KNeighborsClassifier",
    "learner__rows_max": "20",
}
ROWS: Final = 1500
SIZE: Final = 40
ROWS_MAX: Final = 20
PERSONS: Final = 600
PERSONS_MAX: Final = 9
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


def _of_persons() -> pa.Table:
    """Return the rows with a column of persons, whose rows lie in any parts."""
    return _table().append_column(PERSON, pa.array(persons_of_rows(ROWS, PERSONS)))


def _config(folder: Path, kind: str, source: str, *, are_named: bool = False) -> Path:
    """Write rows and a release of learners on samples of them; return its configuration."""
    table = _of_persons() if are_named else _table()
    if source == "csv":
        rows = folder / "rows.csv"
        csv.write_csv(table, rows)
    else:
        rows = folder / "rows.parts"
        rows.mkdir(exist_ok=True)
        for part, start in enumerate((0, 100, 900)):
            some = table[start : (100, 900, ROWS)[part]]
            parquet.write_table(some, rows / f"{part}.parquet", row_group_size=300)
    config = write_configuration(folder, rows, size=SIZE, persons=PERSONS if are_named else None)
    text = config.read_text().replace("queries = 100000", "queries = 1000")
    text = text.replace(*TREES)
    if kind.startswith("own"):
        text = text.replace('"trees"', f'"finite"\npredictors = [{PREDICTORS}]')
        text = text.replace("depth = 2\nbins = 4\n", "")
    most = PERSONS_MAX if are_named else ROWS_MAX
    text = text.replace("[privacy]", f"[learner]\nrows_max = {most}\n{LEARNERS[kind]}\n[privacy]")
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
    ("kind", "source", "unit"),
    [
        *((kind, "parquet", "rows") for kind in LEARNERS),
        ("one by one", "csv", "rows"),
        ("own predictors", "csv", "rows"),
        ("one by one", "parquet", "persons"),
        ("in order", "csv", "persons"),
    ],
)
def test_a_sample_draws_what_it_draws_in_memory(
    kind: str,
    source: str,
    unit: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the kind of learner, the number of workers and the order of parts."""
    are_named = unit == "persons"
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS if are_named else ROWS)
    config = _config(tmp_path, kind, source, are_named=are_named)
    one = _drawn(config, "one.db")
    real = local_engine.LocalEngine.read

    def reversed_parts(engine: object, read: object, items: list[object], done: object) -> object:
        return real(engine, read, items[::-1], done)  # type: ignore[arg-type]  # as given

    with monkeypatch.context() as patch:
        patch.setattr(local_engine.LocalEngine, "read", reversed_parts)
        two = _drawn(config, "two.db", engine={"CONCLAVE_ENGINE__WORKERS": "2"})
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS + 1)
    monkeypatch.setattr(drawing, "sampled_rows", by_digests)
    noise = SlotNoise(seeded_words(3))
    in_memory = _drawn(config, "memory.db", noise=noise, is_streamed=False)
    del one["permutation"], two["permutation"], in_memory["permutation"]
    assert two == one
    assert in_memory == one
    assert (one["hypothesis"] == b"null") == (kind in UNRELABELLED)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        ("logistic regressions together", "rows"),
        ("drawn", "rows"),
        ("in order", "rows"),
        ("one by one", "persons"),
    ],
)
def test_a_cluster_fits_samples_on_its_workers(
    kind: str,
    unit: str,
    tmp_path: Path,
    cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bytes; the server loads no row, and what it is sent of samples is stored models."""
    are_named = unit == "persons"
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS if are_named else ROWS)
    config = _config(tmp_path, kind, "parquet", are_named=are_named)
    local, real, sent = _drawn(config, "local.db"), DaskEngine.mapped, list[object]()

    def noted(*given_too: object) -> list[object]:
        found: list[object] = real(*given_too)  # type: ignore[arg-type]  # as given
        sent.extend(found)
        return found

    monkeypatch.setattr(DaskEngine, "mapped", noted)
    monkeypatch.setattr(streaming, "read_private_rows", pytest.fail)
    assert _drawn(config, "dask.db", engine=_of(cluster)) == local
    assert set(map(type, sent)) == ({bytes, tuple, DistinctPersons} if are_named else {bytes})


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("unit", ["rows", "persons"])
def test_a_restart_reads_no_row(unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored models serve; a changed largest number is refused by name."""
    are_named = unit == "persons"
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS if are_named else ROWS)
    config = _config(tmp_path, "drawn", "parquet", are_named=are_named)
    first = _drawn(config, "kept.db")
    with monkeypatch.context() as patch:
        patch.setattr(StreamedRows, "_read", pytest.fail)
        assert _drawn(config, "kept.db", noise=ScriptedNoise([])) == first
    text = config.read_text()
    config.write_text(text.replace("rows_max = ", "rows_max = 1"))
    with pytest.raises(ReleaseMismatchError, match=r"learner\.rows_max"):
        _drawn(config, "kept.db")


def test_the_estimator_takes_it_from_a_configuration(tmp_path: Path) -> None:
    """A notebook's learners are fitted on as many rows as a server's."""
    config = _config(tmp_path, "logistic regressions together", "parquet")
    classifier = PrivateQueryClassifier.from_config(config)
    rows = [list(row.values()) for row in _table().drop_columns(["label"]).to_pylist()]
    fitted_on: list[NDArray[np.int64]] = []

    def noted(*given_too: object, offsets: NDArray[np.int64], **named: object) -> object:
        fitted_on.append(np.diff(offsets))
        return fit_ensemble(*given_too, offsets=offsets, **named)  # type: ignore[arg-type]  # as given

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "fit_ensemble", noted)
        classifier.fit(rows, _table()["label"].to_pylist())
    assert [sizes.tolist() for sizes in fitted_on] == [[ROWS_MAX] * SIZE]


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


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"learner__rows_max": "20"}, 'the rule "canonical" over trees takes all rows'),
        ({**NEAREST, **GROWS}, r"rows are fixed; leave it out, or \[generations\]"),
        ({**NEAREST, "learner__rows_max": "0"}, "must be at least 1"),
    ],
)
def test_a_largest_number_without_effect_is_refused(changes: dict[str, str], refused: str) -> None:
    """One line names the setting, and nothing is charged."""
    with pytest.raises(ConfigurationError, match=rf"learner\.rows_max: .*{refused}"):
        configure(settings_of(changes))


def test_it_is_bound_only_where_it_is_set() -> None:
    """Releases of earlier versions have no such parameter, and go on without it."""
    key = "learner.rows_max"
    assert configure(settings_of(NEAREST)).bound[key] == "20"
    without = {name: value for name, value in NEAREST.items() if "rows_max" not in name}
    configuration = configure(settings_of(without))
    assert key not in configuration.bound
    assert row_codes(configuration) is None
    assert row_codes(configure(settings_of(NEAREST))) is NO_CODES
    assert not [name for name in configure(settings_of(STUDENT)).bound if "student.rows" in name]


# -- which rows a sample has ---------------------------------------------------------

TWO: Final = Schema(
    label="label", classes=("no", "yes"), features=(NumericFeature(name="x", lower=0, upper=1),)
)
RECORDS: Final = st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from(TWO.classes))
FEW: Final = 30
KEY: Final = b"k" * 32
Record = tuple[float, str]


def _streamed(folder: Path, records: Sequence[Record]) -> StreamedRows:
    """Write records in parts of seven, and return them as rows that stream."""
    numbers, labels = zip(*records, strict=True)
    path = folder / "rows.parquet"
    parquet.write_table(pa.table({"x": numbers, "label": labels}), path, row_group_size=7)
    reading = Reading(source=str(path), schema=TWO, coding=NO_CODES, key=KEY)
    return StreamedRows(
        reading, lambda: LocalEngine(2), load=pytest.fail, told=lambda _done, _total: None
    )


def _sample(rows: StreamedRows, *, size: int, rows_max: int) -> ChunkSamples:
    """Return the sampled rows of all chunks."""
    sampling = Sampling(
        firsts=rows.summary.firsts(),
        key=KEY,
        row_count=rows.count,
        size=size,
        rows_max=rows_max,
    )
    try:
        held, _ = rows.sampled(sampling)
    finally:
        rows.close()
    return held.parts[0]


def _check_one_row(
    records: Sequence[Record], place: int, replacement: Record, *, size: int, rows_max: int
) -> None:
    """Replace a record: samples have the same places, and one chunk's has another row at most."""
    others = [*records[:place], replacement, *records[place + 1 :]]
    with tempfile.TemporaryDirectory() as folder:
        both = [
            _sample(_streamed(Path(folder), each), size=size, rows_max=rows_max)
            for each in (records, others)
        ]
    one, other = both
    assert one.slots.tolist() == other.slots.tolist()
    chunks = chunk_of_slots(one.slots, count=FEW, size=size)
    expected = np.minimum(np.diff(chunk_offsets(FEW, size)), rows_max)
    assert np.bincount(chunks, minlength=size).tolist() == expected.tolist()
    differs = (one.values != other.values).any(axis=1) | (one.labels != other.labels)
    slot = Slots(KEY, FEW).of(np.array([place]))
    assert set(one.slots[differs]) <= set(slot)


@settings(max_examples=40, deadline=None)
@given(
    records=st.lists(RECORDS, min_size=FEW, max_size=FEW),
    place=st.integers(0, FEW - 1),
    replacement=RECORDS,
    size=st.integers(1, FEW),
    rows_max=st.integers(1, 12),
)
def test_one_record_changes_one_row_of_one_sample(
    records: list[Record], place: int, replacement: Record, size: int, rows_max: int
) -> None:
    """A record that is replaced takes the place of the old one, and moves no other row."""
    _check_one_row(records, place, replacement, size=size, rows_max=rows_max)


@settings(max_examples=20, deadline=None)
@given(
    counts=st.lists(st.integers(1, 4), min_size=FEW, max_size=FEW),
    place=st.integers(0, FEW - 1),
    rows=st.lists(RECORDS, min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_one_person_with_other_rows_changes_one_sample(
    counts: list[int], place: int, rows: list[Record], order: Random
) -> None:
    """However many rows a person has, and wherever they lie, who is sampled stays the same."""
    names = [name for name, count in enumerate(counts) for _ in range(count)]
    records = [(name, 0.25, "no") for name in names]
    others = [record for record in records if record[0] != place]
    others += [(place, *row) for row in rows]
    order.shuffle(others)
    with tempfile.TemporaryDirectory() as folder:
        one, other = (_persons_sample(Path(folder), each) for each in (records, others))
    assert set(one.slots.tolist()) == set(other.slots.tolist())
    moved = [
        slot for slot in set(one.slots.tolist()) if _rows_in(one, slot) != _rows_in(other, slot)
    ]
    chunks = chunk_of_slots(np.array(moved, dtype=np.int64), count=FEW, size=4)
    assert len(set(chunks.tolist())) <= 1
    assert len(moved) <= 1


def _persons_sample(folder: Path, records: Sequence[tuple[int, float, str]]) -> ChunkSamples:
    """Return the rows of the first three persons of each of four chunks."""
    names, numbers, labels = zip(*records, strict=True)
    path = folder / "rows.parquet"
    table = pa.table({"who": names, "x": numbers, "label": labels})
    parquet.write_table(table, path, row_group_size=9)
    reading = Reading(
        source=str(path),
        schema=TWO,
        coding=NO_CODES,
        key=KEY,
        person=PersonColumn("who", KEY, frozenset()),
    )
    rows = StreamedRows(
        reading, lambda: LocalEngine(2), load=pytest.fail, told=lambda _done, _total: None
    )
    return _sample(rows, size=4, rows_max=3)


def _rows_in(samples: ChunkSamples, slot: int) -> list[tuple[float, int]]:
    """Return the rows of the person in a slot, in any order."""
    own = samples.slots == slot
    return sorted(zip(samples.values[own, 0].tolist(), samples.labels[own].tolist(), strict=True))


class ByContent(SampleReading):
    """A reading at fault: a row is taken by a keyed digest of its values."""

    def of(self, numbered: tuple[int, Part]) -> ChunkSamples:
        """Return the rows of a part whose digests are even."""
        whole = replace(self.sampling, rows_max=self.sampling.row_count)
        rows = SampleReading(reading=self.reading, sampling=whole).of(numbered)
        digests = [blake2b(row.tobytes(), key=KEY).digest()[0] for row in rows.values]
        taken = np.array(digests) % 2 == 0
        return ChunkSamples(
            rows.values[taken],
            rows.labels[taken],
            rows.slots[taken],
            rows.positions[taken],
            rows.summary,
        )


def test_a_sample_by_content_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rows it has depends on their values, which the property notices."""
    monkeypatch.setattr(streamed_rows, "SampleReading", ByContent)
    values = [0.0, 0.25, 0.5, 1.0]
    digests = [blake2b(np.array([v]).tobytes(), key=KEY).digest()[0] % 2 for v in values]
    assert set(digests) == {0, 1}
    records = [(values[digests.index(0)], "no")] * FEW
    with pytest.raises(AssertionError):
        _check_one_row(records, 3, (values[digests.index(1)], "no"), size=3, rows_max=FEW)


@pytest.mark.parametrize("change", ["other value", "more rows", "fewer rows"])
def test_rows_that_changed_before_they_are_sampled_are_refused(change: str, tmp_path: Path) -> None:
    """They are read again, and compared with the rows that were counted."""
    records: list[Record] = [(0.25, "no"), (0.5, "yes")] * (FEW // 2)
    rows = _streamed(tmp_path, records)
    assert rows.count == FEW
    others = {
        "other value": [(1.0, "no"), *records[1:]],
        "more rows": [*records, *records],
        "fewer rows": records[:9],
    }
    _streamed(tmp_path, others[change])
    with pytest.raises(DataError, match="holds other rows"):
        _sample(rows, size=3, rows_max=2)


def test_a_fit_needs_every_sampled_row_of_its_chunks(tmp_path: Path) -> None:
    """A part that lacks a row of a chunk is refused, not fitted on fewer."""
    configuration = configure(settings_of(NEAREST))
    rows = _streamed(tmp_path, [(0.25, "no"), (0.5, "yes")] * (FEW // 2))
    sample = _sample(rows, size=3, rows_max=2)
    fit = SampleFit(
        learner=configuration.learner,
        sampling=Sampling(firsts={}, key=KEY, row_count=FEW, size=3, rows_max=2),
        hypothesis=None,
        chunks=slice(0, 3),
        secret=KEY,
    )
    lacking = ChunkSamples(
        sample.values[1:], sample.labels[1:], sample.slots[1:], sample.positions[1:], sample.summary
    )
    with pytest.raises(InvariantError):
        fit.of(lacking)


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Of 300,000 further rows not one byte each is held: neither numbers nor labels."""
    peaks = []
    for count in (20_000, 100_000, 400_000):  # the first loads what is loaded once
        generator = np.random.default_rng(count)
        labels = np.array(TWO.classes)[generator.integers(0, 2, count)]
        path = tmp_path / f"{count}.parquet"
        table = pa.table({"x": generator.random(count), "label": labels})
        parquet.write_table(table, path, row_group_size=20_000)
        reading = Reading(source=str(path), schema=TWO, coding=NO_CODES, key=KEY)
        rows = StreamedRows(
            reading, lambda: LocalEngine(1), load=pytest.fail, told=lambda _done, _total: None
        )
        tracemalloc.start()
        try:
            sample = _sample(rows, size=10, rows_max=20)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len(sample.slots) == 200
    assert peaks[2] - peaks[1] < 300_000


def test_numbers_as_bytes_keep_every_bit() -> None:
    """What they encode is what they were, missing values and signs of zero included."""
    values = np.array([[0.1, -0.0], [np.nan, 1e300], [5.0, -7.25]])
    coding = NumberCodes(2)
    codes = coding.codes(values)
    assert codes.shape == (coding.width, 3)
    assert coding.encoded(codes[:, 1:]).tobytes() == values[1:].tobytes()
    assert coding.codes(values[:0]).shape == (coding.width, 0)


def test_first_of_chunks_keeps_small_chunks_whole() -> None:
    """Chunks of sizes 0, 2 and 5, of which at most 3 units are kept."""
    kept, offsets = first_of_chunks(np.array([0, 0, 2, 7]), 3)
    assert kept.tolist() == [0, 1, 2, 3, 4]
    assert offsets.tolist() == [0, 0, 2, 5]
    with pytest.raises(InvariantError):
        first_of_chunks(np.array([0, 2]), 0)
