"""The rows of the toy: what serves it, what plans it and what audits it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from app.auditing.bounds_by_mechanism import AuditRegistration
from app.auditing.event_bounds import Bound, counting_bound
from app.auditing.sampling import flip
from app.noise.scripted import ScriptedNoise
from app.planning.capacity import Capacity
from app.planning.mechanisms.planning_registration import PlanningRegistration
from app.planning.mechanisms.release_sizes import resolve_ensemble_size
from app.planning.plan_result import Verdict
from app.planning.trial.forecast import Forecast
from app.privacy.mechanism_registration import Explained, MechanismRegistration
from tests.builders.toys.flipped_label import mechanism

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from app.auditing.audited_mechanism import Audited
    from app.noise.source import NoiseSource
    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.privacy.budget.sampled_budget import PipelineBudget
    from app.privacy.mechanism_registration import State
    from app.privacy.voting.votes import Tally

NAME: Final = "flipped-label"
DECIDED: Final = "exactly the words below a number keep the label"


def _step(
    parameters: mechanism.Parameters, state: State, private_value: Tally, noise: NoiseSource
) -> tuple[State, int]:
    label = mechanism.step(parameters, state.answered_count, private_value.plurality, noise)
    return replace(state, answered_count=state.answered_count + 1), label


FLIPPED: Final = MechanismRegistration(
    mechanism=NAME,
    theorem="a word decides whether the label is kept",
    proof="tests/builders/toys/flipped_label/mechanism.py",
    parameters=mechanism.Parameters,
    calibrations=(mechanism.Calibration,),
    piece=NAME,
    calibrate=mechanism.calibrate,
    check=mechanism.check,
    read=mechanism.read,
    is_of=lambda found, asked: found.answer_limit == asked.targets.query_count,
    serve=lambda found, _: mechanism.Parameters(found.kept_words, found.answer_limit),
    size_wanted=lambda *_: 3,
    unstable_alike=lambda *_: 0.0,
    explain=lambda served: Explained(
        "flipped label", f"{served.kept_words / mechanism.WORDS:.0%}", "Kept.", "word < kept"
    ),
    step=_step,
    fits=lambda served, limits: limits == (2, served.answer_limit),
)


def _plan(request: PlanRequest, budget: PipelineBudget) -> Verdict:
    share = {"epsilon": budget.answers_epsilon, "delta": budget.answers_delta}
    calibration = mechanism.calibrate(request.asked, **share)
    size, sampled = resolve_ensemble_size(request, calibration), request.sampled_row_count
    rows = None if sampled is None else sampled // size
    return Verdict(
        calibration=calibration, ensemble_size=size, chunk_row_count=rows, rows_needed=size
    )


def _capacity(found: mechanism.Calibration, agreement: Fraction, lead: int) -> Capacity:
    return Capacity(
        agreement=agreement,
        lead=lead,
        distance=None,
        unstable_probability=None,
        answers=found.answer_limit,
        labels=found.answer_limit,
    )


def _forecast(_: mechanism.Calibration, agreement: Agreement, __: int, limit: int) -> Forecast:
    return Forecast(np.full(len(agreement.leads), float(limit)), None)


def _beside_leaves(
    _: mechanism.Calibration,
    leads: NDArray[np.float64],
    __: NDArray[np.float64],
    ___: int,
    limit: int,
) -> NDArray[np.float64]:
    return np.full(len(leads), float(limit))


PLANNED_FLIPPED: Final = PlanningRegistration(
    row=FLIPPED,
    plan=_plan,
    key="flipped_label",
    document=lambda verdict: {"kept_words": str(verdict.calibration.kept_words)},  # type: ignore[union-attr]  # its own
    capacity=_capacity,
    forecast=_forecast,
    beside_leaves=_beside_leaves,
    variants={NAME: mechanism.calibrate},
    quick=mechanism.calibrate,
    takes_cutoff=False,
)


def _bound(audited: Audited) -> Bound:
    """Count how often one query's label comes, whose plurality one record turns round."""
    kept = _kept(audited) / mechanism.WORDS
    trials = audited.parameters.answer_limit
    shown = counting_bound(kept, 1 - kept, trials=trials, delta=float(audited.delta))
    return Bound(shown, f"{trials} answers to one query")


def _kept(audited: Audited) -> int:
    """Ask the step where the words end that keep a label."""
    low, high = 0, mechanism.WORDS
    while low < high:
        middle = (low + high) // 2
        state = audited.start(audited.parameters, ScriptedNoise([]))
        value = audited.tally_of(1)
        _, outcome = audited.step(audited.parameters, state, value, ScriptedNoise([middle]))
        low, high = (middle + 1, high) if outcome.label == value.plurality else (low, middle)
    return low


AUDITED_FLIPPED: Final = AuditRegistration(
    called=lambda _: "flipped label",
    bound=_bound,
    conditions=lambda audited: {DECIDED: _kept(audited) == audited.answering.kept_words},  # type: ignore[attr-defined]  # its own
    adversaries=lambda audited: [flip(audited)],
    lead_needed=lambda _: 1,
    votes_near=lambda _: 2,
    votes_answered=lambda _: 4,
)
