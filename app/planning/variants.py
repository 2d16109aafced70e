"""Variants of a planned release with one public number changed, and their results.

All other settings stay as configured: the shares of epsilon, and the number k of models if it is
set. If the setting is ``auto``, k changes by the same rule as in the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from app.errors import ConfigurationError
from app.planning.mechanisms.planning_table import PLANNED, capacity
from app.planning.mechanisms.release_sizes import resolve_ensemble_size
from app.privacy.budget.composition import Mechanism
from app.release.terms.privacy_unit import COUNTS

if TYPE_CHECKING:
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Weighed
    from app.release.terms.privacy_unit import Unit

Told: TypeAlias = Callable[[int, int], None]


class Lever(StrEnum):
    """A public number of a release that an operator may change, named by its setting."""

    EPSILON = "privacy.epsilon"
    CUTOFF = "answers.cutoff"
    ROWS = "data.rows"


def setting_of(lever: Lever, unit: Unit) -> str:
    """Return the configuration key that sets a public number."""
    return COUNTS[unit] if lever is Lever.ROWS else lever.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed value of a public number, with its effect on the plan.

    Attributes:
        lever: the changed number.
        value: the new value.
        labels: the mean number of stable answers until the ensemble stops; None if there is no such
            release, because no noise parameters fit the budget or there are fewer rows than
            models.

    """

    lever: Lever
    value: float
    labels: int | None


def levers(request: PlanRequest) -> tuple[Lever, ...]:
    """Return which of epsilon, cutoff and number of rows a plan can vary."""
    if request.budget is None:
        return ()
    if not PLANNED[request.row.name].takes_cutoff:
        return Lever.EPSILON, Lever.ROWS
    return Lever.EPSILON, Lever.CUTOFF, Lever.ROWS


def value_of(request: PlanRequest, lever: Lever) -> Fraction | None:
    """Return the planned value of a public number; None for an unknown number of rows."""
    if lever is Lever.EPSILON:
        return request.epsilon
    if lever is Lever.CUTOFF:
        return Fraction(request.cutoff)
    return None if request.row_count is None else Fraction(request.row_count)


def changed(request: PlanRequest, lever: Lever, value: Fraction) -> PlanRequest:
    """Return a planned release with one public number changed.

    Args:
        request: the planned release.
        lever: the number to change.
        value: the new value; a cutoff or a number of rows is rounded down, to at least 1.

    Raises:
        ConfigurationError: the shares of this epsilon do not suffice for any noise parameters.

    """
    if lever is Lever.CUTOFF:
        return replace(request, cutoff=max(1, int(value)))
    if lever is Lever.ROWS:
        return replace(request, row_count=max(1, int(value)))
    factor = value / request.epsilon
    charges = tuple(replace(each, epsilon=each.epsilon * factor) for each in request.charges)
    scaled = replace(request, epsilon=value, charges=charges)
    return replace(scaled, budget=scaled.row.budget(scaled.asked))


def labels_at(request: PlanRequest, agreement: Fraction) -> int | None:
    """Return the number of labelled answers if a given fraction of models agrees.

    The result is None if no noise parameters fit the budget, or if there are fewer rows than
    models.
    """
    try:
        calibration = quick_calibration(request)
    except ConfigurationError:
        return None
    size = size_of(request, calibration)
    sampled = request.sampled_row_count
    if sampled is not None and size > sampled:
        return None
    return capacity(calibration, ensemble_size=size, agreement=agreement).labels


def change(request: PlanRequest, lever: Lever, value: Fraction, agreement: Fraction) -> Change:
    """Return the result of changing one public number to another value."""
    try:
        labels = labels_at(changed(request, lever, value), agreement)
    except ConfigurationError:
        labels = None
    return Change(lever=lever, value=float(value), labels=labels)


def quick_calibration(request: PlanRequest) -> Weighed:
    """Return the noise parameters of a request, in floating point where that saves much time.

    Raises:
        ConfigurationError: no noise parameters fit the budget.

    """
    answers, budget = request.charge(Mechanism.ANSWERS), request.budget
    if answers is None or budget is None:
        raise ConfigurationError("privacy.shares.answers", "is 0")
    return PLANNED[request.row.name].quick(
        request.asked, epsilon=budget.answers_epsilon, delta=budget.answers_delta
    )


def size_of(request: PlanRequest, calibration: Weighed) -> int:
    """Return the number k of models of a request.

    It is the configured number. If the setting is ``auto``, it follows from the noise and the
    number of rows.
    """
    own_size = request.row.own_size
    if own_size is not None and request.ensemble_size is None:
        return own_size(request.asked)
    return resolve_ensemble_size(request, calibration)
