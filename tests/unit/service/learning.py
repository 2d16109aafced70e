"""Learning on the small release, for the tests of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.data.vectors import encode
from app.service import learn as module
from app.service.learn import learn
from app.service.progress import no_progress
from tests.unit.service.small_release import SmallRelease, private_rows, seeded_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.rows import PrivateRows
    from app.data.vectors import Vector
    from app.ledger.store import Ledger
    from app.noise.source import NoiseSource
    from app.service.progress import Progress
    from app.service.published_classifier import PublishedClassifier

OPENING = ["ReleaseOpened", "ShareCharged", "ShareCharged", "ShareReserved"]
LEARNED = ["ShareCharged", "ClassifierPublished"]
POINTS: tuple[Vector, ...] = ((-30.0, "a"), (30.0, "b"))


def learned(
    release: SmallRelease,
    points: Sequence[Vector] = (),
    *,
    rows: PrivateRows | None = None,
    noise: NoiseSource | None = None,
    ledger: Ledger | None = None,
    progress: Progress = no_progress,
    told: list[str] | None = None,
) -> PublishedClassifier:
    """Learn for real, on the release's own rows and ledger unless others are given."""
    configuration = release.configuration()
    return learn(
        configuration,
        ledger=ledger or release.ledger(),
        rows=private_rows() if rows is None else rows,
        public_values=encode(configuration.schema, points),
        noise=noise or seeded_noise(4),
        progress=progress,
        tell=([] if told is None else told).append,
    )


def crash_after_the_charge(
    release: SmallRelease, monkeypatch: pytest.MonkeyPatch, points: Sequence[Vector] = ()
) -> None:
    """Let a process learn until its share is charged, and end there."""

    def crash(*_: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "draw_published", crash)
        with pytest.raises(KeyboardInterrupt):
            learned(release, points)
