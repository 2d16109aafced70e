"""Learning at once where only the public points make the class small enough to be drawn."""

from __future__ import annotations

import pytest

from app.errors import ConfigurationError
from app.privacy.voting.query_decision import Phase
from tests.builders.release.learning import LEARNED, POINTS, crash_after_the_charge, learned
from tests.builders.release.opened_release import NoNoise, changed, kinds
from tests.builders.release.small_release import SmallRelease


def test_without_answers_the_points_alone_fix_what_can_be_drawn(
    small_release: SmallRelease,
) -> None:
    """A class too large without points is drawn on some; a start that would need it is refused."""
    release = changed(
        small_release,
        privacy__shares__answers="0",
        classifier__depth="5",
        classifier__bins="200",
    )
    for attempt in (learned, SmallRelease.open):
        with pytest.raises(ConfigurationError, match=r"^classifier\.depth: "):
            attempt(release)
    assert kinds(release) == []
    learned(release, POINTS)
    assert kinds(release) == ["ReleaseOpened", "ShareReserved", *LEARNED]


def test_a_start_after_a_crash_is_refused_what_it_cannot_draw(
    small_release: SmallRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learning on points was charged and not finished: the same command finishes it."""
    release = changed(
        small_release,
        privacy__shares__answers="0",
        classifier__depth="5",
        classifier__bins="200",
    )
    crash_after_the_charge(release, monkeypatch, POINTS)
    with pytest.raises(ConfigurationError, match=r"^classifier\.depth: "):
        release.open()
    learned(release, POINTS)
    assert release.open(noise=NoNoise()).phase is Phase.CLASSIFIER
