"""Simulation of the answering mechanism: many runs on vote counts that the caller gives.

The noise parameters, their check, the initial state and the function that decides each query are
those of a server; only the votes come from the caller.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.privacy.voting import query_decision
from app.privacy.voting.query_decision import Phase
from app.privacy.voting.votes import tally
from app.release.terms.answer_terms import answering_parameters, calibrate_answers, release_budget
from app.release.terms.configuration import refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.noise.source import NoiseSource
    from app.privacy.voting.query_decision import Parameters
    from app.privacy.voting.votes import Tally
    from app.settings.settings import Settings

UNSTABLE: Final = "-"
UNANSWERED: Final = "."


def simulate(
    settings: Settings,
    votes: Sequence[Sequence[int]],
    *,
    trials: int,
    noise: NoiseSource,
) -> dict[str, int]:
    """Return counts of the outcomes of ``trials`` independent simulated runs.

    Args:
        settings: the configuration; only its labels, its budget and its settings for answers are
            used.
        votes: the vote counts, one row per query and one column per label; at least one row; every
            row adds up to the number k of models.
        trials: the number of runs.
        noise: the source of randomness.

    Returns:
        The number of times that each outcome came. An outcome is one text per query, joined by
        commas: a class index, ``-`` for unstable, or ``.`` for not answered.

    Raises:
        ConfigurationError: the release would answer with scores, which vote counts do not
            determine.

    """
    refuse_unknown(settings)
    if settings.answers.output != "label":
        problem = '"score" has no votes to simulate; set it to "label"'
        raise ConfigurationError("answers.output", problem)
    budget = release_budget(settings)
    calibration = calibrate_answers(settings, budget)
    parameters = answering_parameters(settings, budget, calibration, ensemble_size=sum(votes[0]))
    values = tally(np.asarray(votes, dtype=np.int64))
    return dict(Counter(_run(parameters, values, noise) for _ in range(trials)))


def _run(parameters: Parameters, values: Sequence[Tally], noise: NoiseSource) -> str:
    """Answer the queries of one run, as the writer answers a batch."""
    state = query_decision.initial_state(parameters, noise)
    marks: list[str] = []
    for value in values:
        if query_decision.phase(parameters, state) is not Phase.ENSEMBLE:
            marks.append(UNANSWERED)
            continue
        state, outcome = query_decision.step(parameters, state, value, noise)
        marks.append(str(outcome.label) if outcome.stable else UNSTABLE)
    return ",".join(marks)
