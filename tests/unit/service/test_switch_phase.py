"""The switch: one charge, one draw, one publication, whatever becomes of its commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerUnavailableError
from app.service import switch_phase as module
from app.service.switch_phase import draw_classifier, switch_phase
from tests.unit.service.faulty_ledger import FaultyLedger
from tests.unit.service.small_release import STABLE, SmallRelease, ask, seeded_noise

if TYPE_CHECKING:
    from app.noise.source import NoiseSource
    from app.service.published_classifier import PublishedClassifier
    from app.service.release import Release
    from tests.unit.service.faulty_ledger import Fault


@pytest.mark.parametrize(
    ("faults", "failures"),
    [([None, "refused", None, "refused"], 2), ([None, "lost"], 1), (["refused"], 1), ([], 0)],
)
def test_the_classifier_is_drawn_once(
    small_release: SmallRelease,
    monkeypatch: pytest.MonkeyPatch,
    faults: list[Fault | None],
    failures: int,
) -> None:
    """A publication that fails, which may tell of the draw, is tried again with the same draw."""
    ledger = FaultyLedger(small_release)
    answerer = small_release.answerer([STABLE] * 4, ledger=ledger)
    answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
    drawn: list[PublishedClassifier] = []

    def draw(release: Release, noise: NoiseSource) -> PublishedClassifier:
        drawn.append(draw_classifier(release, noise))
        return drawn[-1]

    monkeypatch.setattr(module, "draw_classifier", draw)
    noise = seeded_noise(5)
    ledger.faults = list(faults)
    for _ in range(failures):
        assert answerer.release.classifier is None
        with pytest.raises(LedgerUnavailableError):
            switch_phase(answerer.release, noise)
    switch_phase(answerer.release, noise)
    (only,) = drawn
    assert answerer.release.classifier == only
    assert answerer.release.private_classifier is None
    assert [share.mechanism for share in ledger.read_state().charged] == [
        "relabel",
        "answers",
        "classifier",
    ]
