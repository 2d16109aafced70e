"""What generations sustain together: the law, u(G) by trials, and the quorum that follows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.planning.from_settings import plan_settings
from app.planning.output.sustained_sentences import sustained_document, sustained_lines
from app.planning.plan import Plan
from app.planning.trial.sustained_answers import COMPANIES, Sustained, sustained, sustained_answers
from app.planning.trial.trial_from_settings import planned_trial
from app.planning.trial.trial_size import Trial
from app.settings.settings import Settings, load_settings

EXAMPLE = Path(__file__).parents[4] / "examples" / "skin.toml"
POINTS = np.random.default_rng(5).uniform(0, 255, (300, 3))


def living(rows: int = 400) -> Settings:
    """Return a release whose generations have so many rows, in four cells."""
    return load_settings(
        EXAMPLE,
        {
            "CONCLAVE_HYPOTHESES__CLASS": "cells",
            "CONCLAVE_HYPOTHESES__CELLS": json.dumps(["b >= 60", "", "g >= 40", "", ""]),
            "CONCLAVE_LEARNER__RULE": "canonical",
            "CONCLAVE_ANSWERS__ENSEMBLE": str(rows),
            "CONCLAVE_ANSWERS__AFTER": "halt",
            "CONCLAVE_ANSWERS__ON_CUTOFF": "halt",
            "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0.9",
            "CONCLAVE_PRIVACY__SHARES__CLASSIFIER": "0",
            "CONCLAVE_GENERATIONS__QUORUM": "2",
        },
    )


def tried(rows: int = 400, demand: int = 1000) -> Sustained | None:
    """Return what generations of so many rows sustain."""
    settings = living(rows)
    planned = plan_settings(settings, rows)
    trial = planned_trial(settings, planned, points=POINTS, hypothesis_count=5)
    assert isinstance(trial, Trial)
    return sustained(planned, trial, demand=demand)


def test_the_law_of_what_is_sustained() -> None:
    """A period brings T hits, and an unstable answer uses one of each of G."""
    assert sustained_answers(0.5, cutoff=20, generation_count=1) == 20
    assert sustained_answers(0.01, cutoff=5, generation_count=10) == pytest.approx(49.5)


def test_more_generations_are_less_often_unstable() -> None:
    """u(G) falls with G, the cautious one is not below the other, and the law is theirs."""
    found = tried()
    assert found is not None
    assert [each.generation_count for each in found.companies] == list(COMPANIES)
    rates = [each.unstable for each in found.companies]
    assert rates == sorted(rates, reverse=True)
    for each in found.companies:
        assert each.unstable <= each.unstable_cautious
        assert each.sustained_cautious <= each.sustained
        assert each.sustained == pytest.approx(
            found.cutoff * (1 - each.unstable) / (each.generation_count * each.unstable)
        )


def test_the_quorum_is_the_least_that_sustains_the_demand() -> None:
    """Fewer would not with caution; a demand beyond all has none."""
    found = tried()
    assert found is not None
    assert found.quorum is not None
    enough = [each.generation_count for each in found.companies if each.sustained_cautious >= 1000]
    assert found.quorum == enough[0]
    beyond = tried(rows=40, demand=10**9)
    assert beyond is not None
    assert beyond.quorum is None
    assert "none up to 24" in sustained_lines(beyond)[-1]


def test_the_document_and_the_table_say_the_same() -> None:
    """A line for each number of generations, and the advice at the end."""
    found = tried()
    assert found is not None
    document = sustained_document(found)["generations"]
    assert isinstance(document, dict)
    assert document["quorum"] == found.quorum
    lines = sustained_lines(found)
    assert len(lines) == len(COMPANIES) + 2
    assert f"quorum = {found.quorum}" in lines[-1]


def test_without_learners_or_a_test_of_hits_nothing_is_told() -> None:
    """As for any prediction: None, and no number."""
    settings = living()
    planned: Plan = plan_settings(settings, 400)
    trial = planned_trial(settings, planned, points=POINTS, hypothesis_count=5)
    assert isinstance(trial, Trial)
    answers = replace(planned.answers, ensemble_size=None)
    assert sustained(replace(planned, answers=answers), trial, demand=10) is None


def test_a_learner_that_takes_too_long_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no trial is small enough, nothing is predicted."""
    monkeypatch.setattr("app.planning.trial.trial_size.extent_of", lambda *_, **__: None)
    assert tried() is None
