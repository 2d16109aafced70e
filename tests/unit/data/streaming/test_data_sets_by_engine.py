"""Adult and Skin by threads, by a cluster and in memory: one ensemble, one classifier, one vote.

So the figures of ``docs/utility.md`` are those of every engine.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import pytest
from distributed import LocalCluster

from app.data.streaming.streamed_rows import StreamedRows
from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.budget.composition import Mechanism
from app.release import streaming
from app.release.classifier.learner_registration import ClassifierAsked
from app.release.classifier.learner_table import PUBLISHING
from app.release.drawing import read_points
from app.settings.settings import load_settings
from tests.builders.release.parts_release import PRIVATE, SlotNoise

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.data, pytest.mark.long]

PUBLIC_ROWS: Final = 400
Drawn = dict[str, object]


@pytest.mark.parametrize("name", ["adult", "skin"])
def test_every_engine_draws_the_same(
    name: str, repository: Path, data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis, learners, votes on test rows and published classifier agree byte for byte."""
    monkeypatch.setattr(streaming, "ROWS_MIN", 1)
    with (data_folder / name / "test.csv").open(encoding="utf-8") as file:
        (tmp_path / "public.csv").write_text("".join(islice(file, PUBLIC_ROWS + 1)))
    config = repository / "examples" / f"{name}.toml"
    given = {
        "CONCLAVE_DATA__SOURCE": str(data_folder / name / "train.csv"),
        "CONCLAVE_CLASSIFIER__LEARNER": "linear",
    }
    threads = _drawn(config, tmp_path, given, noise=ScriptedNoise(seeded_words(3)))
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        reached = {"NAME": "dask", "ADDRESS": cluster.scheduler_address, "WORKERS": "2"}
        engine = {f"CONCLAVE_ENGINE__{key}": value for key, value in reached.items()}
        noise = ScriptedNoise(seeded_words(3))
        assert _drawn(config, tmp_path, given | engine, noise=noise) == threads
    monkeypatch.setattr(streaming, "ROWS_MIN", 1 << 30)
    in_memory = _drawn(config, tmp_path, given, noise=SlotNoise(seeded_words(3)), streams=False)
    del in_memory["permutation"], threads["permutation"]
    assert in_memory == threads


def _drawn(
    config: Path,
    folder: Path,
    given: Mapping[str, str],
    *,
    noise: ScriptedNoise,
    streams: bool = True,
) -> Drawn:
    """Open in a new ledger; return what is drawn, votes on public rows, and a classifier."""
    ledger = folder / "conclave.db"
    for old in folder.glob("conclave.db*"):
        old.unlink()
    settings = load_settings(config, {**given, "CONCLAVE_LEDGER__URL": f"sqlite:///{ledger}"})
    release = open_from_settings(settings, noise=noise)
    points = read_points(settings, folder / "public.csv")
    rows, charge = release.rows_for_drawing(), release.configuration.charges[Mechanism.CLASSIFIER]
    assert isinstance(rows, StreamedRows) == streams
    found: Drawn = {piece: release.ledger.private(piece) for piece in PRIVATE}
    assert release.private_ensemble is not None
    found["votes"] = release.private_ensemble.vote_counts(points).tobytes()
    draw = PUBLISHING["linear"].prepare(ClassifierAsked(settings, charge, points, rows.count))
    found["classifier"] = draw.written(release.schema, rows, ScriptedNoise(seeded_words(5)))
    release.ledger.close()
    return found
