"""What is published of rows that stream is what would be published of them in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from app.data.streaming.streamed_rows import AnyRows, StreamedRows
from app.errors import DataError
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.budget.composition import Mechanism
from app.release import streaming
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.learner_table import PUBLISHING
from app.release.statistics.statistics_table import statistics_draw
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import PERSON, blocks, persons_of_rows, write_configuration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.release.release import Release

ROWS: Final = 1200
PERSONS: Final = 400
COUNTS: Final = {"rows": ROWS, "persons": PERSONS}
SHARES: Final = (
    "[privacy.shares]\nrelabel = 0\nanswers = 0.6\nclassifier = 0.2\nstatistics = 0.2\n"
    "[classifier.tests]\ncolour = []\nshade = []\nnumber3 = []\nnumber4 = []\nnumber5 = []\n"
    '[statistics]\nclass = "stumps"\n[answers]'
)


@pytest.fixture(scope="module", params=COUNTS)
def release(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Release]:
    """A release that streamed rows, or rows of persons, with shares of a classifier and more."""
    named = PERSONS if request.param == "persons" else None
    folder = tmp_path_factory.mktemp("draws")
    rows = folder / "rows.parts"
    rows.mkdir()
    table = pa.concat_tables([pa.table(block) for block in blocks(ROWS)])
    table = table.append_column(PERSON, pa.array(persons_of_rows(ROWS, PERSONS)))
    parquet.write_table(table[:500], rows / "0.parquet", row_group_size=200)
    parquet.write_table(table[500:], rows / "1.parquet")
    config = write_configuration(folder, rows, size=40, persons=named)
    text = config.read_text().replace("bins = 16", "bins = 3").replace("[answers]", SHARES)
    config.write_text(text.replace("queries = 100000", "queries = 1000"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streaming, "ROWS_MIN", COUNTS[request.param])
        patched.setattr(streaming, "BYTES_MIN", 1)
        settings = load_settings(config, {"CONCLAVE_LEDGER__URL": f"sqlite:///{folder / 'one.db'}"})
        opened = open_from_settings(settings, noise=ScriptedNoise(seeded_words(1)))
    yield opened
    opened.ledger.close()


def _rows(release: Release) -> tuple[StreamedRows, AnyRows]:
    """Return the rows as they stream, and in memory."""
    rows = release.rows_for_drawing()
    assert isinstance(rows, StreamedRows)
    return rows, rows.in_memory()


@pytest.mark.parametrize("name", ["exponential", "grid", "linear", "kernel", "scored-tree"])
def test_a_classifier_is_drawn_alike(release: Release, name: str) -> None:
    """The published form is the same from the same noise."""
    row = PUBLISHING[name]
    settings = release.configuration.settings
    charge = release.configuration.charges[Mechanism.CLASSIFIER]
    generator = np.random.default_rng(1)
    points = np.column_stack([generator.random((60, 6)), generator.integers(0, 4, (60, 2))])
    rows, in_memory = _rows(release)
    draw = row.prepare(ClassifierAsked(settings, charge, points, rows.count))
    written = [
        draw.written(release.schema, each, ScriptedNoise(seeded_words(2)))
        for each in (rows, in_memory)
    ]
    assert written[0] == written[1]


def test_a_table_of_statistics_is_drawn_alike(release: Release) -> None:
    """The table is the same from the same noise."""
    generator = np.random.default_rng(1)
    points = np.column_stack([generator.random((20, 6)), generator.integers(0, 4, (20, 2))])
    rows, in_memory = _rows(release)
    draw = statistics_draw(release.configuration, points, row_count=rows.count)
    tables = [draw.draw(each, ScriptedNoise(seeded_words(3))) for each in (rows, in_memory)]
    assert tables[0] == tables[1]


def test_other_rows_than_those_that_were_opened_are_refused(release: Release) -> None:
    """They are summed again as they are counted, and nothing is drawn of others."""
    rows, _ = _rows(release)
    changed = StreamedRows(
        rows.reading,
        rows._make_engine,
        load=rows.in_memory,
        told=lambda _, __: None,
        opened=(rows.count, "0" * 64),
    )
    row = PUBLISHING["grid"]
    settings = release.configuration.settings
    charge = release.configuration.charges[Mechanism.CLASSIFIER]
    draw = row.prepare(ClassifierAsked(settings, charge, np.empty((0, 8)), rows.count))
    with pytest.raises(DataError, match="other rows"):
        draw.written(release.schema, changed, ScriptedNoise([]))
