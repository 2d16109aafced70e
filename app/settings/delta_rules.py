"""Rules on the division of delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from app.settings.release_sections import DeltaMechanism, PrivacySettings

DELTA_MECHANISMS: tuple[DeltaMechanism, ...] = ("answers", "classifier", "statistics")


def check_delta_shares(privacy: PrivacySettings, *, classifier_uses_delta: bool) -> None:
    """Whatever needs delta has a share of it, a pure classifier has none, and they add up."""
    answers, classifier, statistics = (
        privacy.delta_share(name, classifier_uses_delta=classifier_uses_delta)
        for name in DELTA_MECHANISMS
    )
    if answers + classifier + statistics > 1:
        raise ConfigurationError("privacy.delta_shares", "add up to more than 1")
    if classifier > 0 and not classifier_uses_delta:
        raise ConfigurationError(
            "privacy.delta_shares.classifier",
            'must be 0: only a classifier with a share and a learner such as "linear" uses delta',
        )
    for name, share, is_needed in (
        ("answers", answers, privacy.shares.answers > 0),
        ("classifier", classifier, classifier_uses_delta),
        ("statistics", statistics, privacy.shares.statistics > 0),
    ):
        if is_needed and share == 0:
            verb = "has" if name == "classifier" else "have"
            problem = f"must be above 0 while {name} {verb} a share of epsilon"
            raise ConfigurationError(f"privacy.delta_shares.{name}", problem)
