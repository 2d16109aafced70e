"""A release on many rows in parts of Parquet, and what its opening draws of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from app.main import open_from_settings
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.voting.keyed_slots import KEY_BYTES, Slots
from app.release.progress import no_progress
from app.settings.settings import load_settings
from benchmarks.measuring.many_rows import (
    PERSON,
    blocks,
    persons_of_rows,
    write_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource
    from app.release.progress import Progress
    from app.release.release import Release

ROWS = 70_000
SIZE = 40
PARTS = 3
PRIVATE = ("permutation", "hypothesis", "ensemble")


@dataclass(frozen=True, slots=True)
class PartsRelease:
    """Rows in a folder of parts, and a configuration.

    Attributes:
        folder: of the configuration and its ledger.
        rows: the folder of parts.
        config: the configuration's path.

    """

    folder: Path
    rows: Path
    config: Path

    def open(
        self,
        *,
        noise: NoiseSource | None = None,
        ledger: str = "conclave.db",
        environment: Mapping[str, str] | None = None,
        progress: Progress = no_progress,
    ) -> Release:
        """Open or continue the release in a ledger of this name."""
        given = {
            "CONCLAVE_LEDGER__URL": f"sqlite:///{self.folder / ledger}",
            **(environment or {}),
        }
        settings = load_settings(self.config, given)
        return open_from_settings(
            settings, noise=noise or ScriptedNoise(seeded_words(3)), progress=progress
        )

    def drawn(self, **given: object) -> dict[str, bytes]:
        """Open the release, close it, and return its private pieces and its fingerprint."""
        release = self.open(**given)  # type: ignore[arg-type]  # as open takes them
        opened = release.state.release
        assert opened is not None
        found = {name: release.ledger.private(name) or b"" for name in PRIVATE}
        release.ledger.close()
        return {**found, "fingerprint": opened.fingerprint.encode()}


class SlotNoise(ScriptedNoise):
    """Noise by which an opening in memory puts rows in the slots of one that streams."""

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return the rows in the order of the slots that a drawn key gives them."""
        slots = Slots(self.secret(KEY_BYTES), count)
        return np.argsort(slots.of(np.arange(count)))


SHARES = "[privacy.shares]\nrelabel = 0\nanswers = 0.7\nclassifier = 0.3\n[answers]"


def write_parts(
    folder: Path, *, depth: int = 2, relabelled: bool = True, persons: int | None = None
) -> PartsRelease:
    """Write rows in three parts of one or two row groups, and a release of trees on them.

    Without relabelling, no two learners are alike.  With persons, rows of each lie in any parts.
    """
    folder.mkdir(exist_ok=True)
    place = folder / "rows.parts"
    place.mkdir()
    table = pa.concat_tables([pa.table(block) for block in blocks(ROWS)])
    if persons is not None:
        table = table.append_column(PERSON, pa.array(persons_of_rows(ROWS, persons)))
    step = -(-ROWS // PARTS)
    for part in range(PARTS):
        path = place / f"part-{part}.parquet"
        parquet.write_table(table[part * step : (part + 1) * step], path, row_group_size=13_000)
    config = write_configuration(folder, place, size=SIZE, persons=persons)
    text = config.read_text().replace("bins = 16", "bins = 4")
    text = text if relabelled else text.replace("[answers]", SHARES)
    config.write_text(text.replace("depth = 2", f"depth = {depth}"))
    return PartsRelease(folder, place, config)
