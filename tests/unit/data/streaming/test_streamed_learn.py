"""What ``conclave learn`` and ``conclave statistics`` draw of rows that stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from app.data.streaming.streamed_rows import ROW_SUMS, StreamedRows
from app.errors import ConfigurationError
from app.ledger.ledger import open_ledger
from app.main import learn_from_settings, open_from_settings, statistics_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.release import streaming
from app.release.streaming import FINGERPRINT
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import blocks, write_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from app.settings.settings import Settings

ROWS: Final = 1500
SHARES: Final = """\
[privacy.shares]
relabel = 0
answers = {answers}
classifier = 0.3
statistics = 0.3
[classifier]
learner = "{learner}"
[classifier.tests]
colour = []
shade = []
number4 = []
number5 = []
[statistics]
class = "stumps"
[statistics.tests]
number0 = [0.5]
[answers]"""
RULE: Final = {
    "tree": {"feature": 0, "at_least": 0.5, "true": {"label": "yes"}, "false": {"label": "no"}}
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in parts, and public points that are others."""
    folder = tmp_path_factory.mktemp("learn")
    rows = folder / "rows.parts"
    rows.mkdir()
    table = pa.concat_tables([pa.table(block) for block in blocks(ROWS)])
    parquet.write_table(table[:500], rows / "0.parquet", row_group_size=200)
    parquet.write_table(table[500:], rows / "1.parquet")
    csv.write_csv(table[:900], folder / "stolen.csv")
    generator = np.random.default_rng(5)
    points = pa.table({f"number{index}": generator.random(60) for index in range(6)})
    for name in ("colour", "shade"):
        points = points.append_column(name, pa.array(["red", "green", "blue"] * 20))
    csv.write_csv(points, folder / "public.csv")
    return folder


@pytest.fixture(autouse=True)
def _few_rows_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS)
    monkeypatch.setattr(streaming, "BYTES_MIN", 1)


def _settings(
    folder: Path, place: Path, *, answers: str = "0", learner: str = "linear"
) -> Settings:
    """Return a release on the rows, whose ledger is elsewhere."""
    config = write_configuration(place, folder / "rows.parts", size=40)
    shares = SHARES.format(answers=answers, learner=learner)
    text = config.read_text().replace("bins = 16", "bins = 3").replace("[answers]", shares)
    config.write_text(text.replace("queries = 100000", "queries = 1000"))
    return load_settings(config, {})


def _learned(settings: Settings, public: Path | None, told: list[str] | None = None) -> bytes:
    """Return the published document."""
    return learn_from_settings(
        settings,
        public=public,
        noise=ScriptedNoise(seeded_words(3)),
        tell=(told if told is not None else []).append,
    ).json


def _rule_of(settings: Settings) -> str | None:
    """Return the rule of the fingerprint in a ledger, of which there is a release."""
    ledger = open_ledger(settings.ledger_url, create=False)
    opened = ledger.read_state().release
    ledger.close()
    assert opened is not None
    return opened.parameters.get(FINGERPRINT)


def _refuse_memory(*_: object, **__: object) -> None:
    raise AssertionError


@pytest.mark.parametrize(("answers", "public"), [("0", True), ("0.4", False)])
@pytest.mark.parametrize("learner", ["linear", "exponential"])
def test_a_classifier_is_learned_as_of_rows_in_memory(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    learner: str,
    answers: str,
    *,
    public: bool,
) -> None:
    """The same bytes from the same noise, and no row is loaded; the ledger goes on with it."""
    points = folder / "public.csv" if public else None
    (tmp_path / "streamed").mkdir()
    (tmp_path / "memory").mkdir()
    streamed = _settings(folder, tmp_path / "streamed", answers=answers, learner=learner)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StreamedRows, "in_memory", _refuse_memory)
        patched.setattr(streaming, "read_private_rows", _refuse_memory)
        learned = _learned(streamed, points)
    assert _rule_of(streamed) == ROW_SUMS
    monkeypatch.setattr(streaming, "ROWS_MIN", ROWS + 1)
    memory = _settings(folder, tmp_path / "memory", answers=answers, learner=learner)
    assert _learned(memory, points) == learned
    assert _rule_of(memory) is None


def test_a_table_is_drawn_as_of_rows_in_memory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its values are the same from the same noise."""
    found = []
    for name, rows_min in (("streamed", ROWS), ("memory", ROWS + 1)):
        monkeypatch.setattr(streaming, "ROWS_MIN", rows_min)
        (tmp_path / name).mkdir()
        settings = _settings(folder, tmp_path / name)
        noise = ScriptedNoise(seeded_words(3))
        found.append(
            statistics_from_settings(settings, [RULE], public=folder / "public.csv", noise=noise)
        )
        assert _rule_of(settings) == (ROW_SUMS if name == "streamed" else None)
    assert found[0] == found[1]


def test_points_that_are_the_rows_are_refused_before_a_ledger(folder: Path, tmp_path: Path) -> None:
    """Rows of several parts in their order are the source's; nothing is charged."""
    settings = _settings(folder, tmp_path)
    with pytest.raises(ConfigurationError, match="half of its rows or more"):
        _learned(settings, folder / "stolen.csv")
    assert not list(tmp_path.glob("conclave.db*"))


def test_the_share_of_equal_points_is_told(folder: Path, tmp_path: Path) -> None:
    """A point in four equals a record, which the operator is told."""
    rows = parquet.read_table(folder / "rows.parts" / "1.parquet").drop_columns(["label"])
    points = csv.read_csv(folder / "public.csv").select(rows.column_names)
    mixed = pa.concat_tables([points, rows.cast(points.schema)[::50][:20]])
    csv.write_csv(mixed, tmp_path / "mixed.csv")
    told: list[str] = []
    _learned(_settings(folder, tmp_path), tmp_path / "mixed.csv", told)
    assert told[0].startswith("25.0% of the public points have the features of a record")


def test_a_server_of_published_rows_alone_reads_them_when_it_draws(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release without answers streams, and starts again without reading a row."""
    settings = _settings(folder, tmp_path)
    open_from_settings(settings, noise=ScriptedNoise(seeded_words(3))).ledger.close()
    assert _rule_of(settings) == ROW_SUMS
    monkeypatch.setattr(StreamedRows, "_read", _refuse_memory)
    release = open_from_settings(settings, noise=ScriptedNoise([]))
    assert isinstance(release.rows_for_drawing(), StreamedRows)
    assert release.rows_for_drawing().count == ROWS
    release.ledger.close()
