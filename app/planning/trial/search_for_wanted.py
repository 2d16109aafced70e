"""A search for the least epsilon, or the fewest rows, that gives a wanted result.

For each tried epsilon or number of rows, :func:`app.planning.trial.recommendation.surest` chooses
the shares of epsilon, the mechanism, the number k of models and the cutoff T. In a trial, models
are trained on made-up records, which made-up rules label. A wanted number of answers counts as
reached if a trial with nine in ten of these rules gives it, and a wanted accuracy if the bound on
the excess error of the rule drawn for relabelling (its error rate above that of the best rule of
its class) implies it. More epsilon or more rows seldom give a worse result, so the search is a
bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.planning.capacity import USUAL_AGREEMENT
from app.planning.plan import excess_errors
from app.planning.trial.recommendation import RELABEL_EXCESS_MAX, surest, with_shares
from app.planning.variants import Lever, changed, labels_at
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential.mechanism import excess_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.planning.request import PlanRequest
    from app.planning.trial.recommendation import Choice
    from app.planning.trial.trial_size import Trial

TENTHS: Final = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 80, 100)
EPSILONS: Final = tuple(Fraction(each, 10) for each in TENTHS)
ROW_FACTORS: Final = (Fraction(3, 2), *map(Fraction, (2, 3, 4, 6, 8, 12, 16, 32, 100)))
# Of the answers that are wanted, one in a hundred may be unstable or the noise's.
SERVED: Final = 0.99
DIGITS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The wanted number of answers and accuracy of a release.

    Attributes:
        answers: the wanted number of labelled answers from the ensemble; None for any number.
        loss: the largest wanted error rate above that of the best rule of the class; None for any.

    """

    answers: int | None
    loss: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One combination of epsilon and rows that was tried.

    Attributes:
        request: the tried release.
        choice: the tried release's mechanism, number k of models, cutoff T and shares of epsilon;
            None if no choice could be tried.
        labels: the number of labelled answers that the release gives at least, under nine in ten
            made-up rules; without a trial, the number if nine in ten models agree; None if no
            number was wanted.
        loss: the bound on the excess error of the drawn rule; None if there is none.
        reached: whether this release gives the wanted result.

    """

    request: PlanRequest
    choice: Choice | None = None
    labels: float | None = None
    loss: float | None = None
    reached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The result of a search: releases that give the wanted answers, or the nearest one.

    Attributes:
        wanted: the wanted answers and accuracy.
        own: the result at the configured epsilon and number of rows, with the best settings found.
        by_epsilon: the release with the least epsilon that gives the wanted result; if there is
            none, the release with the largest epsilon tried.
        by_rows: the release with the fewest rows that gives the wanted result at the configured
            epsilon; if there is none, the release with the most rows tried; None if the present
            number of rows suffices.
        published_epsilon: the epsilon at which a classifier that is published at once has the
            wanted accuracy; None if none may be published, or no accuracy is wanted.

    """

    wanted: Wanted
    own: Attempt
    by_epsilon: Attempt
    by_rows: Attempt | None
    published_epsilon: float | None

    @property
    def best(self) -> Attempt | None:
        """The release that gives the wanted result with the least epsilon, if one was found.

        Otherwise it is the release that gives the result with the fewest rows, or None.
        """
        found = (self.by_epsilon, self.by_rows)
        return next((each for each in found if each is not None and each.reached), None)


def search(request: PlanRequest, wanted: Wanted, trial: Trial | None) -> Offer:
    """Return the releases with the least epsilon, and the fewest rows, that give what is wanted.

    Args:
        request: the configured release, with a known number of rows.
        wanted: the wanted answers, accuracy or both.
        trial: the population and the learning method to try; None if no trial is possible.

    """

    def at(lever: Lever, value: Fraction) -> Attempt:
        return _attempt(request, lever, value, wanted, trial)

    rows = Fraction(request.row_count or 1)
    own = at(Lever.EPSILON, request.epsilon)
    if own.reached:
        smaller = [value for value in EPSILONS if value < request.epsilon]
        by_epsilon = _least(smaller, lambda value: at(Lever.EPSILON, value), top=own)
        by_rows = None
    else:
        larger = [value for value in EPSILONS if value > request.epsilon]
        by_epsilon = _least(larger, lambda value: at(Lever.EPSILON, value), below=own)
        more = [rows * factor for factor in ROW_FACTORS]
        by_rows = _least(more, lambda value: at(Lever.ROWS, value), below=own)
    return Offer(
        wanted=wanted,
        own=own,
        by_epsilon=by_epsilon,
        by_rows=by_rows,
        published_epsilon=_published_epsilon(request, wanted),
    )


def _least(
    values: Sequence[Fraction],
    at: Callable[[Fraction], Attempt],
    *,
    top: Attempt | None = None,
    below: Attempt | None = None,
) -> Attempt:
    """Return the attempt at the least of rising values that reaches; else at the largest.

    Args:
        values: what is tried.
        at: tries one.
        top: an attempt beyond the last value that reaches; None where there is none.
        below: an attempt before the first value, which stands where there is no value.

    """
    found = top
    if found is None:
        found = at(values[-1]) if values else below
    if found is None or not found.reached:
        return found or at(values[-1])
    low, high = -1, len(values) if top is not None else len(values) - 1
    while high - low > 1:
        middle = (low + high) // 2
        tried = at(values[middle])
        if tried.reached:
            found, high = tried, middle
        else:
            low = middle
    return found


def _attempt(
    request: PlanRequest, lever: Lever, value: Fraction, wanted: Wanted, trial: Trial | None
) -> Attempt:
    """Try one value of a lever, with the shares that are enough there."""
    try:
        tried = _asking(changed(request, lever, value) if request.budget else request, wanted)
    except ConfigurationError:
        return Attempt(request=request)
    excess_max = min(RELABEL_EXCESS_MAX, wanted.loss or RELABEL_EXCESS_MAX)
    tried = with_shares(tried, excess_max)
    answering = Mechanism.CLASSIFIER if tried.budget is None else Mechanism.RELABEL
    loss = excess_errors(tried).get(answering)
    choice, labels = None, None
    if wanted.answers is not None and tried.budget is not None:
        choice = None if trial is None else surest(tried, trial, excess_max)
        labels = choice.forecast.low if choice else float(labels_at(tried, USUAL_AGREEMENT) or 0)
    served = labels is None or labels >= SERVED * (wanted.answers or 0)
    accurate = wanted.loss is None or (loss is not None and loss <= wanted.loss)
    return Attempt(
        request=tried, choice=choice, labels=labels, loss=loss, reached=served and accurate
    )


def _asking(request: PlanRequest, wanted: Wanted) -> PlanRequest:
    """Return a request for as many answers as are wanted."""
    if wanted.answers is None or request.budget is None:
        return request
    asked = replace(request, targets=replace(request.targets, query_count=wanted.answers))
    return replace(asked, budget=asked.row.budget(asked.asked))


def _published_epsilon(request: PlanRequest, wanted: Wanted) -> float | None:
    """Return the epsilon of a draw at once whose bound is that loss, rounded up."""
    if wanted.loss is None or request.with_estimator or request.row_count is None:
        return None
    one = excess_error(
        hypothesis_count=request.classifier_hypothesis_count or request.hypothesis_count,
        beta=request.beta,
        row_count=request.row_count,
        epsilon=1.0,
    )
    epsilon = one / wanted.loss
    step = 10.0 ** (math.floor(math.log10(epsilon)) - DIGITS + 1)
    return math.ceil(epsilon / step) * step
