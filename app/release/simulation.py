"""Simulation of the answering mechanism: many runs on vote counts that the caller gives.

The opening (calibration, its verification, initial state) and the step are the
ones that the writer uses; only the votes are given.
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
        settings: classes, privacy and answers are used.
        votes: counts, one row a query, one column a class; at least one row, all
            of the same sum, which stands for k.
        trials: number of runs.
        noise: where every draw comes from.

    Returns:
        How often each outcome came: a class index, ``-`` for unstable or ``.``
        for not answered, one a query, joined by commas.

    Raises:
        ConfigurationError: the release would answer scores, which votes do not give.

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
