"""A release as planned, with one public number of it changed, and what that would give.

Everything else stays as configured: the shares, k where it is a number, and the rule for
k where it is ``auto``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

from app.errors import ConfigurationError
from app.planning.capacity import capacity
from app.planning.mechanisms.comparison import NOISY_VOTE
from app.planning.mechanisms.sizes import resolve_ensemble_size
from app.privacy.budget.composition import Mechanism
from app.privacy.budget.ensemble_size import ApproximateProfile, approximate_profile
from app.privacy.budget.pipeline import pipeline_budget
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.paper.paper_pipeline import paper_budget, paper_calibration, printed
from app.privacy.sparse_vector import calibration as svt

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.privacy.budget.calibration import Calibration
    from app.privacy.budget.pipeline import PipelineBudget

PAPER: Final = "paper"
Told: TypeAlias = Callable[[int, int], None]


class Lever(StrEnum):
    """What an operator may turn, by the key of the configuration."""

    EPSILON = "privacy.epsilon"
    CUTOFF = "answers.cutoff"
    ROWS = "data.rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value of a lever.

    Attributes:
        lever: what is changed.
        value: what to.
        labels: as in :class:`app.planning.capacity.Capacity`; None where there is no such
            release: no calibration for the budget, or fewer rows than learners.

    """

    lever: Lever
    value: float
    labels: int | None


def levers(request: PlanRequest) -> tuple[Lever, ...]:
    """Return what can be turned: not T where the mechanism has none, or sets its own."""
    if request.budget is None:
        return ()
    own = request.mechanism == NOISY_VOTE or request.calibration == PAPER
    return (Lever.EPSILON, Lever.ROWS) if own else (Lever.EPSILON, Lever.CUTOFF, Lever.ROWS)


def value_of(request: PlanRequest, lever: Lever) -> Fraction | None:
    """Return the value of a lever as it is planned; None for rows that are unknown."""
    if lever is Lever.EPSILON:
        return request.epsilon
    if lever is Lever.CUTOFF:
        return Fraction(request.cutoff)
    return None if request.row_count is None else Fraction(request.row_count)


def changed(request: PlanRequest, lever: Lever, value: Fraction) -> PlanRequest:
    """Return a release with one lever at another value.

    Args:
        request: the release as planned.
        lever: what to change.
        value: what to; T and n are rounded down, to 1 at least.

    Raises:
        ConfigurationError: the calibration does not cover the shares of that epsilon.

    """
    if lever is Lever.CUTOFF:
        return replace(request, cutoff=max(1, int(value)))
    if lever is Lever.ROWS:
        return replace(request, row_count=max(1, int(value)))
    factor = value / request.epsilon
    charges = tuple(replace(each, epsilon=each.epsilon * factor) for each in request.charges)
    scaled = replace(request, epsilon=value, charges=charges)
    return replace(scaled, budget=_budget(scaled))


def labels_at(request: PlanRequest, agreement: Fraction) -> int | None:
    """Return the labels that queries of one agreement get; None where nothing would serve."""
    try:
        calibration = quick_calibration(request)
    except ConfigurationError:
        return None
    size = _size(request, calibration)
    sampled = request.sampled_row_count
    if sampled is not None and size > sampled:
        return None
    return capacity(calibration, ensemble_size=size, agreement=agreement).labels


def change(request: PlanRequest, lever: Lever, value: Fraction, agreement: Fraction) -> Change:
    """Return what one other value of a lever would give."""
    try:
        labels = labels_at(changed(request, lever, value), agreement)
    except ConfigurationError:
        labels = None
    return Change(lever=lever, value=float(value), labels=labels)


def quick_calibration(request: PlanRequest) -> Calibration | ApproximateProfile:
    """Return the calibration of a request, that of Theorem A in doubles.

    Raises:
        ConfigurationError: there is none for the budget.

    """
    answers, budget = request.charge(Mechanism.ANSWERS), request.budget
    if answers is None or budget is None:
        raise ConfigurationError("privacy.shares.answers", "is 0")
    share = {"epsilon": budget.answers_epsilon, "delta": budget.answers_delta}
    if request.mechanism == NOISY_VOTE:
        return noisy_vote.calibrate(
            **share, answer_limit=request.query_count, class_count=request.class_count
        )
    if request.calibration == PAPER:
        relabel = request.charge(Mechanism.RELABEL)
        return paper_calibration(request.targets, relabel=relabel, answers=answers)
    if request.calibration == "svt":
        return svt.calibrate(**share, cutoff=request.cutoff)
    return approximate_profile(**share, cutoff=request.cutoff)


def _size(request: PlanRequest, calibration: Calibration | ApproximateProfile) -> int:
    answers = request.charge(Mechanism.ANSWERS)
    if request.calibration == PAPER and request.ensemble_size is None and answers is not None:
        relabel = request.charge(Mechanism.RELABEL)
        return printed(request.targets, relabel=relabel, answers=answers).ensemble_size
    return resolve_ensemble_size(request, calibration)


def _budget(request: PlanRequest) -> PipelineBudget | None:
    """Return the budget of a request's own charges, as the configuration's was made."""
    relabel, answers = request.charge(Mechanism.RELABEL), request.charge(Mechanism.ANSWERS)
    before = request.budget
    private_grid = before is not None and before.relabel_is_private
    if request.calibration == PAPER:
        return paper_budget(
            request.targets,
            relabel=relabel,
            answers=answers,
            private_grid=private_grid,
            class_count=request.class_count,
        )
    return pipeline_budget(
        relabel=relabel,
        answers=answers,
        sampling_rate=Fraction(1) if before is None else before.sampling_rate,
        private_grid=private_grid,
        class_count=request.class_count,
    )
