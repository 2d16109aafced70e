"""Every class that streams draws the bytes of an opening in memory with the same slots."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from app.data.sources import encoded_parts
from app.data.streaming import local_engine
from app.errors import DataError
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.release import drawing, streaming
from app.release.drawing import SampledRows, sampled_rows
from app.release.streaming import streams
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import PERSON, blocks, write_configuration
from tests.builders.release.parts_release import SlotNoise

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows

ROWS: Final = 1500
PERSONS: Final = 600
UNSHARED: Final = "[privacy.shares]\nrelabel = 0\nanswers = 0.7\nclassifier = 0.3\n[answers]"
CELLS: Final = '["number0 >= 0.5", "colour = red", "", "number1 >= 0.25", "", "", ""]'
TESTS: Final = "[hypotheses.tests]\n{}\n[privacy]"
"""Lists of no test, which leave features out."""


def _tests(*names: str) -> tuple[str, str]:
    return "[privacy]", TESTS.format("\n".join(f"{name} = []" for name in names))


FEW: Final = _tests("number2", "number3", "number4", "number5")
THREE_LABELS: Final = ('classes = ["no", "yes"]', 'classes = ["no", "yes", "so"]')
CHANGES: Final = {
    "trees": [("bins = 16", "bins = 4")],
    "stumps": [('"trees"', '"stumps"'), ("depth = 2\n", "")],
    "three labels": [THREE_LABELS, ("bins = 16", "bins = 3")],
    "deeper than counts": [("bins = 16", "bins = 2"), ("depth = 2", "depth = 4")],
    "halving": [("bins = 16", "bins = 3"), ("[privacy]", '[learner]\nrule = "halving"\n[privacy]')],
    "scores": [("bins = 16", "bins = 3"), ("[answers]", '[answers]\noutput = "score"')],
    "thresholds": [('"trees"', '"thresholds"'), ("depth = 2\n", "")],
    "intervals": [('"trees"', '"intervals"'), ("depth = 2\nbins = 16", "bins = 5")],
    "rectangles": [('"trees"', '"rectangles"'), ("depth = 2\nbins = 16", "bins = 4"), FEW],
    "halfspaces": [('"trees"', '"halfspaces"'), ("depth = 2\nbins = 16", "bins = 4"), FEW],
    "cells": [('"trees"', '"cells"'), ("depth = 2\nbins = 16", f"cells = {CELLS}")],
    "a learner a row": [
        ('"trees"', '"cells"'),
        ("depth = 2\nbins = 16", f"cells = {CELLS}"),
        ("ensemble = 40", 'ensemble = "auto"'),
    ],
}
UNRELABELLED: Final = ("deeper than counts",)


def by_digests(rows: PrivateRows, permutation: NDArray[np.int64], *, count: int) -> SampledRows:
    """Return a sample of persons who are permuted by the numbers that they have as rows stream."""
    if rows.persons is not None:
        assert rows.persons.digests is not None
        firsts, seconds = rows.persons.digests.T
        permutation = np.lexsort((seconds, firsts))[permutation]
    return sampled_rows(rows, permutation, count=count)


@cache
def _tables() -> tuple[pa.Table, pa.Table]:
    """Return the rows with two labels, and with three."""
    table = pa.concat_tables([pa.table(block) for block in blocks(ROWS)])
    labels = np.array(table.column("label").to_pylist())
    labels[np.array(table.column("number2")) > 0.7] = "so"
    place = table.schema.get_field_index("label")
    return table, table.set_column(place, "label", pa.array(labels))


def _of_persons(table: pa.Table) -> pa.Table:
    """Return the rows with a column of persons, whose rows lie in any parts.

    Half of them have one row, the others up to some ten.
    """
    generator = np.random.default_rng(6)
    others = generator.integers(0, PERSONS // 2, ROWS - PERSONS)
    whose = generator.permutation(np.concatenate([np.arange(PERSONS), others]))
    return table.append_column(PERSON, pa.array([f"person {number}" for number in whose]))


def _config(folder: Path, kind: str, *, are_named: bool = False) -> Path:
    """Write rows in parts, and a release of a class; return its configuration."""
    rows = folder / "rows.parts"
    rows.mkdir()
    table = _tables()[THREE_LABELS in CHANGES[kind]]
    table = _of_persons(table) if are_named else table
    for part, start in enumerate((0, 100, 900)):
        end = (100, 900, ROWS)[part]
        parquet.write_table(table[start:end], rows / f"{part}.parquet", row_group_size=300)
    config = write_configuration(folder, rows, size=40, persons=PERSONS if are_named else None)
    text = config.read_text().replace("queries = 100000", "queries = 1000")
    for before, after in CHANGES[kind]:
        assert before in text
        text = text.replace(before, after)
    if kind in UNRELABELLED:
        text = text.replace("[answers]", UNSHARED)
    config.write_text(text)
    return config


def _drawn(
    config: Path, ledger: str, *, noise: ScriptedNoise, workers: int, is_streamed: bool = True
) -> tuple[bytes, bytes]:
    """Open in a new ledger, and return the hypothesis and the learners."""
    given = {
        "CONCLAVE_LEDGER__URL": f"sqlite:///{config.parent / ledger}",
        "CONCLAVE_ENGINE__WORKERS": str(workers),
    }
    release = open_from_settings(load_settings(config, given), noise=noise)
    opened = release.state.release
    assert opened is not None
    assert streams(opened) == is_streamed
    pieces = [release.ledger.private(name) for name in ("hypothesis", "ensemble")]
    release.ledger.close()
    return pieces[0] or b"", pieces[1] or b""


def test_ranges_of_a_csv_draw_the_same_and_refuse_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is read in ranges has the slots of its rows, and counts them in a refusal."""
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS)
    monkeypatch.setattr(streaming, "BYTES_MIN", 1)
    rows = tmp_path / "rows.csv"
    csv.write_csv(_tables()[0], rows)
    config = write_configuration(tmp_path, rows, size=40)
    config.write_text(config.read_text().replace("bins = 16", "bins = 3"))
    whole = _drawn(config, "whole.db", noise=ScriptedNoise(seeded_words(3)), workers=1)
    monkeypatch.setattr(encoded_parts, "RANGE_BYTES", 20_000)
    ranges = _drawn(config, "ranges.db", noise=ScriptedNoise(seeded_words(3)), workers=3)
    assert ranges == whole
    lines = rows.read_text().splitlines(keepends=True)
    lines[1300] = lines[1300].replace('"no"', '"nay"').replace('"yes"', '"yea"')
    rows.write_text("".join(lines))
    with pytest.raises(DataError, match="row 1300"):
        _drawn(config, "refused.db", noise=ScriptedNoise(seeded_words(3)), workers=3)


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        *((kind, "rows") for kind in CHANGES),
        *((kind, "persons") for kind in CHANGES if kind not in UNRELABELLED),
    ],
)
def test_a_class_draws_what_it_draws_in_memory(
    kind: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the number of workers and the order of parts, and whoever rows are about."""
    are_named = unit == "persons"
    monkeypatch.setattr(streaming, "ROWS_MIN", PERSONS if are_named else ROWS)
    monkeypatch.setattr(streaming, "BYTES_MIN", 1)
    config = _config(tmp_path, kind, are_named=are_named)
    one = _drawn(config, "one.db", noise=ScriptedNoise(seeded_words(3)), workers=1)
    real = local_engine.LocalEngine.read

    def reversed_parts(engine: object, read: object, items: list[object], done: object) -> object:
        return real(engine, read, items[::-1], done)  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(local_engine.LocalEngine, "read", reversed_parts)
    three = _drawn(config, "three.db", noise=ScriptedNoise(seeded_words(3)), workers=3)
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS + 1)
    monkeypatch.setattr(drawing, "sampled_rows", by_digests)
    noise = SlotNoise(seeded_words(3))
    in_memory = _drawn(config, "memory.db", noise=noise, workers=1, is_streamed=False)
    assert three == one
    assert in_memory == one
    assert (one[0] == b"null") == (kind in UNRELABELLED)
