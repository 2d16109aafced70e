"""The life of a release whose rows of persons stream: opened, continued, recognised, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from app.data.sources import encoded_parts
from app.data.streaming.streamed_rows import ROW_SUMS, StreamedRows
from app.errors import DataError, ReleaseMismatchError
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.release import streaming
from app.release.streaming import FINGERPRINT, streams
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import PERSON, blocks, persons_of_rows, write_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.release.release import Release

ROWS: Final = 1500
PERSONS: Final = 500
MARK: Final = "zephyrine"
NO_NOISE: Final = ScriptedNoise([])


@pytest.fixture(autouse=True)
def _few_persons_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS)


def _names(whose: NDArray[np.int64]) -> list[str | None]:
    return [f"{MARK}-{number}" for number in whose]


def _table(names: list[str | None]) -> pa.Table:
    rows = pa.concat_tables([pa.table(block) for block in blocks(len(names))])
    return rows.append_column(PERSON, pa.array(names, pa.string()))


def _written(folder: Path, names: list[str | None], *, name: str = "many") -> Path:
    """Write rows in two files of some row groups, and a configuration; return the latter."""
    folder.mkdir(exist_ok=True)
    rows = folder / "rows.parts"
    rows.mkdir(exist_ok=True)
    table = _table(names)
    parquet.write_table(table[:700], rows / "a.parquet", row_group_size=300)
    parquet.write_table(table[700:], rows / "b.parquet")
    config = write_configuration(folder, rows, size=40, persons=PERSONS)
    text = config.read_text().replace("queries = 100000", "queries = 1000")
    config.write_text(text.replace("bins = 16", "bins = 3").replace('"many"', f'"{name}"'))
    return config


def _open(
    config: Path, ledger: str = "one.db", *, noise: NoiseSource | None = None, **given: str
) -> Release:
    """Open or continue a release in a ledger of this name beside its configuration."""
    url = {"CONCLAVE_LEDGER__URL": f"sqlite:///{config.parent / ledger}", **given}
    return open_from_settings(
        load_settings(config, url), noise=noise or ScriptedNoise(seeded_words(5))
    )


def _opened(release: Release) -> tuple[bool, str]:
    """Close a release, and return whether it streamed, and its fingerprint."""
    opened = release.state.release
    assert opened is not None
    assert opened.parameters["data.persons"] == str(PERSONS)
    assert "data.rows" not in opened.parameters
    release.ledger.close()
    return streams(opened), opened.fingerprint


def test_a_restart_reads_no_row_and_keeps_no_identifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Touched parts are read and recognised, in any order; the ledger has no name of a person."""
    config = _written(tmp_path, _names(persons_of_rows(ROWS, PERSONS)))
    first = _opened(_open(config))
    assert first[0]
    with monkeypatch.context() as patched:
        patched.setattr(StreamedRows, "_read", _refuse_reading)
        assert _opened(_open(config, noise=NO_NOISE)) == first
    rows = tmp_path / "rows.parts"
    (rows / "a.parquet").rename(rows / "c.parquet")
    release = _open(config, noise=NO_NOISE)
    held = release.rows_for_drawing()
    assert isinstance(held, StreamedRows)
    in_memory = held.in_memory()
    assert (in_memory.count, len(in_memory.labels)) == (PERSONS, ROWS)
    assert _opened(release) == first
    assert MARK.encode() not in (tmp_path / "one.db").read_bytes()


def _refuse_reading(rows: StreamedRows) -> None:
    raise AssertionError(rows)


def test_the_same_rows_of_other_persons_are_refused(tmp_path: Path) -> None:
    """One row that changes hands, with as many persons, is another data set."""
    whose = persons_of_rows(ROWS, PERSONS)
    config = _written(tmp_path, _names(whose))
    release = _open(config)
    many = np.flatnonzero(np.bincount(whose)[whose] > 1)
    whose[many[0]] = whose[many[0]] - 1
    _written(tmp_path, _names(whose))
    with pytest.raises(DataError, match="other rows"):
        release.rows_for_drawing().in_memory()
    release.ledger.close()
    with pytest.raises(ReleaseMismatchError, match="other rows"):
        _open(config, noise=NO_NOISE)


def test_a_release_opened_in_memory_goes_on_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every release of an earlier version did: by the rule of its own first entry."""
    config = _written(tmp_path, _names(persons_of_rows(ROWS, PERSONS)))
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS + 1)
    before = _opened(_open(config))
    assert not before[0]
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS)
    assert _opened(_open(config, noise=NO_NOISE)) == before
    assert _opened(_open(config, "two.db"))[0]


@pytest.mark.parametrize("first_min", [PERSONS, PERSONS + 1], ids=["streamed", "in memory"])
def test_a_further_release_on_the_same_persons_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_min: int
) -> None:
    """Whichever way each of them reads."""
    config = _written(tmp_path, _names(persons_of_rows(ROWS, PERSONS)))
    monkeypatch.setattr(streaming, "ROWS_MIN", first_min)
    _open(config).ledger.close()
    second = tmp_path / "second.toml"
    second.write_text(config.read_text().replace('"many"', '"second"'))
    for second_min in (PERSONS, PERSONS + 1):
        monkeypatch.setattr(streaming, "ROWS_MIN", second_min)
        with pytest.raises(ReleaseMismatchError, match="on the same rows"):
            _open(second)


def test_whether_rows_stream_follows_from_the_number_of_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not from the size of the source: copies of a person's rows would show in it."""
    found = []
    for copies in (0, 3000):
        whose = np.concatenate([persons_of_rows(ROWS, PERSONS), np.zeros(copies, dtype=np.int64)])
        config = _written(tmp_path / str(copies), _names(whose))
        source = config.parent / "rows.parts"
        found.append(sum(file.stat().st_size for file in source.iterdir()))
        with monkeypatch.context() as patched:
            patched.setattr(streaming, "BYTES_MIN", 150_000)
            assert _opened(_open(config))[0]
            text = config.read_text().replace(f"persons = {PERSONS}\n", "")
            config.write_text(text)
            assert _opened(_open(config, "unstated.db"))[0]
    assert found[0] < 150_000 < found[1]


def test_persons_are_counted_and_rows_of_nobody_refused(tmp_path: Path) -> None:
    """By the public number of persons, and by the number of the row."""
    config = _written(tmp_path, _names(persons_of_rows(ROWS, PERSONS)))
    expected = rf"^data\.persons: says {PERSONS + 3}, but the source has {PERSONS} persons$"
    with pytest.raises(DataError, match=expected):
        _open(config, "stated.db", CONCLAVE_DATA__PERSONS=str(PERSONS + 3))
    names = _names(persons_of_rows(ROWS, PERSONS))
    names[1234] = None
    _written(tmp_path, names)
    with pytest.raises(DataError) as refused:
        _open(config, "nobody.db")
    place = "row 1235 (row 535 of b.parquet)"
    assert str(refused.value) == f'data.source: column "{PERSON}", {place}: names no person'


def test_ranges_of_a_csv_have_the_same_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is read in ranges draws the same, and a row of nobody has its number."""
    config = _written(tmp_path, _names(persons_of_rows(ROWS, PERSONS)))
    rows = tmp_path / "rows.csv"
    table = _table(_names(persons_of_rows(ROWS, PERSONS)))
    csv.write_csv(table, rows)
    text = config.read_text().replace(str(tmp_path / "rows.parts"), str(rows))
    config.write_text(text)
    drawn = []
    for step in (1 << 24, 20_000):
        monkeypatch.setattr(encoded_parts, "RANGE_BYTES", step)
        release = _open(config, f"{step}.db")
        drawn.append([release.ledger.private(name) for name in ("hypothesis", "ensemble")])
        drawn[-1].append(_opened(release)[1].encode())
    assert drawn[0] == drawn[1]
    lines = rows.read_text().splitlines(keepends=True)
    fields = lines[1300].rpartition(",")
    lines[1300] = f'{fields[0]},""\n'
    rows.write_text("".join(lines))
    with pytest.raises(DataError, match=f'"{PERSON}", row 1300: names no person'):
        _open(config, "refused.db")


def test_one_row_a_person_draws_the_labelling_of_rows(tmp_path: Path) -> None:
    """Every weight is 1: the same words give the same hypothesis as where a row is the unit."""
    names = _names(np.arange(ROWS))
    config = _written(tmp_path, names)
    text = config.read_text()
    drawn = []
    for unit in ("rows", "persons"):
        stated = f'person = "{PERSON}"\npersons = {PERSONS}\n'
        assert stated in text
        named = stated.replace(str(PERSONS), str(ROWS))
        config.write_text(text.replace(stated, named if unit == "persons" else ""))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(streaming, "ROWS_MIN", ROWS)
            patched.setattr(streaming, "BYTES_MIN", 1)
            release = _open(config, f"{unit}.db")
        opened = release.state.release
        assert opened is not None
        assert opened.parameters[FINGERPRINT] == ROW_SUMS
        drawn.append((release.ledger.private("hypothesis"), release.ledger.private("permutation")))
        release.ledger.close()
    assert drawn[0] == drawn[1]
