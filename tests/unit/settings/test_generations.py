"""The section ``[generations]``: what is read, and what is refused beside it, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError
from app.settings.generations_section import seconds_of
from tests.builders.release.growing_release import GrowingRelease

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_absent_is_the_least(tmp_path: Path) -> None:
    """One generation is enough, all may vote, and each has a labelling of its own."""
    read = GrowingRelease(tmp_path).small.settings().generations
    assert read is not None
    assert (read.quorum, read.active_max, read.labelling, read.tick_seconds) == (1, None, "own", 60)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1d", 86_400), ("6h", 21_600), ("30min", 1800), ("10s", 10), ("0s", 0), ("1w", 0), ("d", 0)],
)
def test_a_tick_is_a_duration(written: str, seconds: int) -> None:
    """A whole number and a unit; 0 for anything else, which is refused."""
    assert seconds_of(written) == seconds


REFUSED = {
    "generations.tick": {"generations__tick": "1 day"},
    "generations.quorum": {"generations__quorum": "0"},
    "generations.labelling": {"generations__labelling": "mine"},
    "generations.active_max": {"generations__quorum": "3", "generations__active_max": "2"},
    "privacy.calibration": {"privacy__calibration": "svt"},
    "answers.mechanism": {"answers__mechanism": "noisy-vote"},
    "answers.output": {"answers__output": "score"},
    "privacy.shares.answers": {
        "privacy__shares__answers": "0",
        "privacy__shares__classifier": "0",
        "privacy__shares__statistics": "0.5",
    },
    "classifier.learner": {
        "privacy__shares__answers": "0.5",
        "privacy__shares__classifier": "0.1",
    },
    "privacy.shares.statistics": {
        "privacy__shares__answers": "0.5",
        "privacy__shares__statistics": "0.1",
    },
    "hypotheses.grid": {"hypotheses__grid": "private"},
    "privacy.sampling": {"privacy__sampling": "0.5"},
    "privacy.accounting": {"privacy__accounting": "joint"},
    "data.id": {"data__person": "who", "data__id": "record"},
    "answers.after": {"answers__on_cutoff": "student"},
    "hypotheses.class": {"generations__labelling": "pooled"},
    "privacy.shares.relabel": {
        "generations__labelling": "pooled",
        "hypotheses__class": "cells",
        "hypotheses__cells": '["margin >= 0", "", ""]',
        "privacy__shares__relabel": "0",
    },
}


@pytest.mark.parametrize(("key", "changes"), REFUSED.items(), ids=REFUSED)
def test_what_is_not_proved_for_generations_is_refused(
    tmp_path: Path, key: str, changes: dict[str, str]
) -> None:
    """The line names the setting."""
    with pytest.raises(ConfigurationError) as refused:
        GrowingRelease(tmp_path, changes).small.settings()
    assert refused.value.key == key


def test_a_cohort_draws_a_labelling(tmp_path: Path) -> None:
    """The mode is refused where nothing is drawn."""
    changes = {"generations__labelling": "cohort", "privacy__shares__relabel": "0"}
    with pytest.raises(ConfigurationError) as refused:
        GrowingRelease(tmp_path, changes).small.settings()
    assert refused.value.key == "privacy.shares.relabel"


def test_another_quorum_is_another_release(tmp_path: Path) -> None:
    """The section is bound when the release opens."""
    GrowingRelease(tmp_path).open().ledger.close()
    changed = GrowingRelease(tmp_path, {"generations__quorum": "2"})
    with pytest.raises(ConfigurationError, match=r"generations\.quorum: the ledger's release"):
        changed.small.open()
