"""An opening from counts draws what one in memory draws, whoever counts and in which order."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pyarrow import csv, parquet

from app.data.streaming import local_engine
from app.data.streaming.streamed_rows import ROW_SUMS, StreamedRows
from app.errors import ConfigurationError, DataError, ReleaseMismatchError
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import fit_ensemble
from app.learning.trees.tree import Tree
from app.ledger.ledger import RELEASE_SECRET
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.voting.keyed_slots import Slots
from app.release import streaming
from app.release.drawing import read_private_rows
from app.release.progress import no_progress
from app.release.streaming import FINGERPRINT
from app.settings.settings import load_settings
from tests.builders.release.parts_release import ROWS, SIZE, PartsRelease, write_parts

if TYPE_CHECKING:
    from pathlib import Path

    from app.noise.source import NoiseSource


HEADER_BYTES = 13
"""Before the cells of stored trees."""


class NoNoise(ScriptedNoise):
    """A source of which nothing may be drawn."""

    def __init__(self) -> None:
        """Have no word."""
        super().__init__([])


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> PartsRelease:
    """Rows in three parts, and a release on them that is opened."""
    written = write_parts(tmp_path_factory.mktemp("parts") / "release")
    written.open(ledger="first.db").ledger.close()
    return written


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> PartsRelease:
    """The same rows, and a release without relabelling, whose learners all differ."""
    written = write_parts(tmp_path_factory.mktemp("unlike") / "release", depth=3, relabelled=False)
    written.open(ledger="first.db").ledger.close()
    return written


@pytest.mark.parametrize("kind", ["parts", "unlike"])
def test_the_learners_are_those_of_the_rows_in_memory(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """Rows read into memory, put in the same slots and relabelled alike, fit the same trees."""
    opened_on: PartsRelease = request.getfixturevalue(kind)
    drawn = opened_on.drawn(ledger="first.db", noise=NoNoise())
    release = opened_on.open(ledger="first.db", noise=NoNoise())
    configuration = release.configuration
    rows = read_private_rows(configuration.settings, no_progress)
    labels, hypothesis = rows.labels, json.loads(drawn["hypothesis"])
    if hypothesis is not None:
        encoded = configuration.hypotheses.encode(rows.values)
        labels = Tree.from_dict(hypothesis).predict(encoded)
    slots = Slots(drawn["permutation"], ROWS).of(np.arange(ROWS))
    fitted = fit_ensemble(
        configuration.learner,
        rows.values,
        labels,
        permutation=np.argsort(slots),
        offsets=chunk_offsets(ROWS, SIZE),
        secret=release.ledger.private(RELEASE_SECRET) or b"",
    )
    assert fitted.to_bytes() == drawn["ensemble"]
    cells = np.frombuffer(drawn["ensemble"][HEADER_BYTES:], dtype="<u2").reshape(SIZE, -1)
    assert (len(np.unique(cells, axis=0)) > SIZE // 2) == (kind == "unlike")
    opened = release.state.release
    assert opened is not None
    assert opened.parameters[FINGERPRINT] == ROW_SUMS
    release.ledger.close()


@pytest.mark.parametrize("workers", ["1", "3"])
def test_no_byte_depends_on_workers_or_order(
    unlike: PartsRelease,
    workers: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts that are read and merged in any order by any number of threads draw the same."""
    real = local_engine.LocalEngine.read

    def reversed_parts(engine: object, read: object, items: list[object], done: object) -> object:
        return real(engine, read, items[::-1], done)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(local_engine.LocalEngine, "read", reversed_parts)
    environment = {"CONCLAVE_ENGINE__WORKERS": workers}
    again = unlike.drawn(ledger=f"{workers}.db", environment=environment)
    assert again == unlike.drawn(ledger="first.db", noise=NoNoise())


def test_a_restart_reads_no_row_of_parts_that_are_as_they_were(
    parts: PartsRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes and version tags are compared; nothing is read and nothing drawn."""
    monkeypatch.setattr(StreamedRows, "_read", _refuse_reading)
    release = parts.open(ledger="first.db", noise=NoNoise())
    assert release.state.ensemble is not None
    release.ledger.close()


def test_rows_are_read_for_what_is_still_to_be_drawn(parts: PartsRelease) -> None:
    """They are compared with the fingerprint, in memory where a draw reads them one by one."""
    release = parts.open(ledger="first.db", noise=NoNoise())
    rows = release.rows_for_drawing()
    assert isinstance(rows, StreamedRows)
    assert rows.in_memory().values.shape == (ROWS, 8)
    assert release.rows_for_drawing() is rows
    release.ledger.close()


def test_parts_that_were_touched_are_read_and_recognised(tmp_path: Path) -> None:
    """The same rows with another version tag, or in another order, go on; others are refused."""
    release = write_parts(tmp_path / "release")
    release.open().ledger.close()
    first, last = release.rows / "part-0.parquet", release.rows / "part-2.parquet"
    first.rename(release.rows / "part-9.parquet")
    release.open(noise=NoNoise()).ledger.close()
    opened = release.open(noise=NoNoise())
    shutil.copyfile(release.rows / "part-1.parquet", last)
    rows = opened.rows_for_drawing()
    assert isinstance(rows, StreamedRows)
    with pytest.raises(DataError, match=r"data\.source"):
        rows.in_memory()
    opened.ledger.close()
    with pytest.raises(ReleaseMismatchError):
        release.open(noise=NoNoise())


def test_rows_that_stream_are_recognised_in_memory_and_the_other_way_round(
    parts: PartsRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further release on the same rows is told so, whichever way each of them reads."""
    text = parts.config.read_text()
    second = parts.folder / "second.toml"
    second.write_text(text.replace('name = "many"', 'name = "second"'))
    url = {"CONCLAVE_LEDGER__URL": f"sqlite:///{parts.folder / 'first.db'}"}
    for rows_min in (streaming.ROWS_MIN, 1 << 40):
        monkeypatch.setattr(streaming, "ROWS_MIN", rows_min)
        with pytest.raises(ReleaseMismatchError, match="on the same rows"):
            open_from_settings(load_settings(second, url), noise=_noise())
    in_memory = {"CONCLAVE_LEDGER__URL": f"sqlite:///{parts.folder / 'memory.db'}"}
    open_from_settings(load_settings(parts.config, in_memory), noise=_noise()).ledger.close()
    monkeypatch.setattr(streaming, "ROWS_MIN", 1 << 16)
    with pytest.raises(ReleaseMismatchError, match="on the same rows"):
        open_from_settings(load_settings(second, in_memory), noise=_noise())
    again = open_from_settings(load_settings(parts.config, in_memory), noise=NoNoise())
    opened = again.state.release
    assert opened is not None
    assert FINGERPRINT not in opened.parameters
    again.ledger.close()


def test_few_rows_are_held_in_memory(parts: PartsRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyed permutation is for many rows; of few, a uniform one is drawn as ever."""
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS + 1)
    release = parts.open(ledger="few.db")
    assert len(release.ledger.private("permutation") or b"") == 4 * ROWS
    release.ledger.close()


def test_whether_rows_stream_does_not_follow_from_the_size_of_the_source(
    parts: PartsRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first entry says which, and the length of one record would show in it."""
    bytes_of_source = sum(file.stat().st_size for file in parts.rows.iterdir())
    found = []
    for place, bytes_min in enumerate((bytes_of_source, bytes_of_source + 1)):
        monkeypatch.setattr(streaming, "BYTES_MIN", bytes_min)
        release = parts.open(ledger=f"size-{place}.db")
        assert release.state.release is not None
        found.append(release.state.release.parameters)
        release.ledger.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("format_name", ["parquet", "csv"])
def test_a_refusal_is_that_of_an_opening_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_name: str
) -> None:
    """It names the first row in order, by its number in the source and in its file."""
    release = write_parts(tmp_path / "release")
    for part, row in ((1, 20_000), (2, 0)):
        path = release.rows / f"part-{part}.parquet"
        table = parquet.read_table(path)
        labels = table["label"].to_pylist()
        labels[row] = "neither"
        table = table.set_column(table.column_names.index("label"), "label", [labels])
        parquet.write_table(table, path, row_group_size=13_000)
    if format_name == "csv":
        for path in release.rows.iterdir():
            csv.write_csv(parquet.read_table(path), path.with_suffix(".csv"))
        pattern = f"{release.rows}/*.csv"
        text = release.config.read_text().replace(str(release.rows), pattern)
        release.config.write_text(text)
    refusals = []
    for rows_min in (streaming.ROWS_MIN, 1 << 40):
        monkeypatch.setattr(streaming, "ROWS_MIN", rows_min)
        with pytest.raises(DataError) as refused:
            release.open(ledger=f"{rows_min}.db")
        refusals.append(str(refused.value))
    place = f"row 43335 (row 20001 of part-1.{format_name})"
    assert refusals == [f'data.source: column "label", {place}: is not one of data.classes'] * 2


def test_a_broken_part_is_named_by_its_rows(tmp_path: Path) -> None:
    """By the number in the source, as in an opening in memory."""
    release = write_parts(tmp_path / "release")
    path = release.rows / "part-1.parquet"
    group = parquet.ParquetFile(path).metadata.row_group(1)
    body = bytearray(path.read_bytes())
    begin = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
    body[begin : begin + 64] = bytes(64)
    path.write_bytes(body)
    with pytest.raises(DataError, match=r"row 36335 in part-1.parquet: is not valid Parquet"):
        release.open()


def test_another_number_of_rows_than_stated_is_refused(parts: PartsRelease) -> None:
    """The configuration's number of rows is compared before anything is charged."""
    with pytest.raises(DataError, match=r"data\.rows: says 500"):
        parts.open(ledger="stated.db", environment={"CONCLAVE_DATA__ROWS": "500"})


def test_an_engine_has_its_own_address(parts: PartsRelease) -> None:
    """A cluster needs one, and threads of this process take none."""
    for name, address in (("dask", None), ("local", "tcp://127.0.0.1:1")):
        environment = {"CONCLAVE_ENGINE__NAME": name}
        if address is not None:
            environment["CONCLAVE_ENGINE__ADDRESS"] = address
        with pytest.raises(ConfigurationError, match=r"engine\.address"):
            parts.open(environment=environment)


def _noise() -> NoiseSource:
    return ScriptedNoise(seeded_words(4))


def _refuse_reading(rows: StreamedRows) -> None:
    raise AssertionError(rows)
