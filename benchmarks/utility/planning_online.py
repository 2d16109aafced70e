"""Benchmark B's own settings: what plan says of them, beside what B measured.

``benchmarks/results/utility-online.json`` has the measured answers and E by the stability
test.  Of a noisy vote, which gives as many answers as it is told to, plan says how many lose
one label in a hundred to the noise; the same is worked out here from the votes of B's first
release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.forecast import outlasting_noise
from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_vote import vote_table
from app.release.terms.configuration import configure
from benchmarks.utility.online_data import loaded, private_rows, test_set
from benchmarks.utility.online_settings import CUTOFFS, TARGETS, settings_of
from benchmarks.utility.online_votes import draw_votes
from benchmarks.utility.planning_measured import (
    PEOPLE,
    calibrations,
    predicted,
    test_vectors,
    tried,
)
from benchmarks.utility.results import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.planning.trial.agreement import Agreement
    from app.privacy.noisy_vote.vote_table import QuickVoteTable
    from app.settings.settings import Settings
    from benchmarks.utility.online_settings import Setting

NOISY: str = "noisy vote"


def online_cells(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield prediction and measurement of every relabelled setting of B, and count the others."""
    known = _measured_before()
    agreements: dict[tuple[str, str, str], Agreement | None] = {}
    for data, epsilon in dict.fromkeys((target.data, target.epsilon) for target in TARGETS):
        for setting in settings_of(data, epsilon, quick=quick):
            if setting.method.endswith("unrelabelled"):
                continue
            settings = loaded(data, setting.changes)
            noisy = _noisy_measured(setting, settings)
            for people in PEOPLE:
                key = (data, setting.name, people)
                if key not in agreements:
                    points = test_vectors(data, settings)[1] if people == "points" else None
                    agreements[key] = tried(settings, private_rows(data).count, points)
                agreement = agreements[key]
                if agreement is not None:
                    named = {"setting": setting.name, "method": setting.method, "people": people}
                    where = {"data": data, "epsilon": epsilon, **named}
                    for cell in _cells(setting, settings, agreement, known, noisy):
                        yield {**where, **cell}


def _measured_before() -> dict[tuple[str, str, str, str, int], dict[str, Any]]:
    """Return B's kept cells by data, epsilon, setting, mechanism and cutoff."""
    kept: Any = read("online") or {"settings": []}
    return {
        (each["data"], each["epsilon"], each["setting"], cell["mechanism"], cell["cutoff"]): cell
        for each in kept["settings"]
        for cell in each["cells"]
    }


def _cells(
    setting: Setting,
    settings: Settings,
    agreement: Agreement,
    known: dict[tuple[str, str, str, str, int], dict[str, Any]],
    noisy: float,
) -> Iterator[dict[str, Any]]:
    charge = configure(settings).charges[Mechanism.ANSWERS]
    size, rows = int(settings.answers.ensemble), private_rows(setting.data).count
    limit = len(test_set(setting.data).values)
    for cutoff in CUTOFFS:
        for name, calibration in calibrations(charge, cutoff):
            cell = known.get((setting.data, setting.epsilon, setting.name, name, cutoff))
            if cell is not None:
                found = predicted(agreement, calibration, size=size, row_count=rows, limit=limit)
                measured = {"labels": cell["answered"], "E": cell["expected"]}
                yield {"mechanism": name, "cutoff": cutoff, **measured, **found}
    vote = _noisy_vote(settings, limit)
    forecast = forecast_answers(vote, agreement, ensemble_size=size, limit=limit)
    most = forecast.likely
    yield {
        "mechanism": NOISY,
        "cutoff": 0,
        "labels": noisy,
        "E": noisy,
        "predicted": most.number,
        "likelihood": most.share,
        "otherwise": most.otherwise,
        "mean": forecast.mean,
        "low": forecast.low,
        "high": forecast.high,
        "worst": forecast.low,
        "predicted_E": most.number,
    }


def _noisy_measured(setting: Setting, settings: Settings) -> float:
    """Return how many answers lose one label in a hundred, with the votes of B's release."""
    votes = draw_votes(setting, release=0)
    limit = len(votes.distance)
    # A distance of d is a lead of 2 d + 1 votes, or one more.
    leads = np.asarray(2.0 * votes.distance[np.newaxis] + 1.0, dtype=np.float64)
    weights = np.full_like(leads, 1 / limit)
    return float(outlasting_noise(_noisy_vote(settings, limit), leads, weights, limit=limit)[0])


def _noisy_vote(settings: Settings, limit: int) -> QuickVoteTable:
    charge = configure(settings).charges[Mechanism.ANSWERS]
    return vote_table.quick(epsilon=charge.epsilon, delta=charge.delta, answer_limit=limit)
