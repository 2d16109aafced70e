"""Learning on the small release, for the tests of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.data.vectors import encode
from app.release.classifier import publish_at_once as module
from app.release.classifier.publish_at_once import learn
from app.release.progress import no_progress
from tests.builders.release.small_release import SmallRelease, private_rows, seeded_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.data.rows import PrivateRows
    from app.data.vectors import Vector
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.progress import Progress

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
