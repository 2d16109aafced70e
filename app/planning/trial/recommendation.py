"""A search for the mechanism, ensemble size and budget shares that give the most answers.

A choice is one combination of these settings. Planning does not know the rule that will relabel the
rows, since this rule depends on private rows. Several made-up labelling rules stand for it, and
each choice is tried with each of them. Under one made-up rule, a choice's ratio is its expected
number of labelled answers divided by the largest number that any choice gives under this rule.
Choices are compared by the mean of their ratios over the made-up rules. The *best rule* is the rule
with the lowest error rate among those from which the relabelling rule is drawn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.planning.mechanisms.planning_table import PLANNED, forecast_answers
from app.planning.trial.agreement import try_out, votes_by_cell
from app.planning.trial.forecast import parts_of_best
from app.planning.trial.small_leaf_risk import labels_at_worst
from app.planning.trial.trial_size import SECONDS_COMPARED, extent_of
from app.privacy.budget.composition import Mechanism
from app.privacy.budget.ensemble_size import (
    HIT_PROBABILITY_MAX,
    approximate_profile,
    size_at_unanimity,
)
from app.privacy.exponential.mechanism import excess_error
from app.privacy.mechanism_registration import shared_budget
from app.privacy.mechanisms import row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.planning.request import PlanRequest
    from app.planning.trial.agreement import Agreement
    from app.planning.trial.forecast import Forecast, Weighed
    from app.planning.trial.made_up_records import MadeUpRules
    from app.planning.trial.trial_size import Trial
    from app.privacy.budget.sampled_budget import PipelineBudget

CUTOFFS: Final = (1, 5, 20, 50)
# k, as times the least whose unanimous votes are stable ninety-nine times in a hundred.
SIZES: Final = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8))
SIZE_MAX: Final = 6400
CHUNK_ROWS_MIN: Final = 8
# Rows of a chunk that are tried over cells.
CELL_ROWS: Final = (1, 2, 4, 16)
DIGITS: Final = 2
# Made-up rules that are asked how right they are.
RULES_JUDGED: Final = 4
# Parts of epsilon for relabelling, and the excess error that is small enough.
RELABEL_SHARES: Final = (Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))
RELABEL_EXCESS_MAX: Final = 0.02
# Choices that differ by less are as good; the safest of them is taken.
AS_GOOD: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One tried choice of settings, with its forecast.

    Attributes:
        mechanism: the name of the answering mechanism.
        ensemble_size: the number k of models.
        chunk_row_count: the number of rows on which the model of the smallest chunk is trained.
        cutoff: the cutoff T; None for a noisy vote.
        relabel_share: the fraction of epsilon for relabelling (replacing the rows' labels by those
            of a drawn rule).
        answers_share: the fraction of epsilon for answers.
        forecast: the forecast number of labelled answers.
        worst: the number of labelled answers if queries often reach the tree leaf on which the
            models agree least; for models that label public cells, the number that is exceeded
            under nine in ten made-up rules.
        accuracy: the fraction of made-up labels that the made-up rules predict; None if it was not
            computed.
        likeliest: the fraction of made-up labels that are the most frequent label; None if it was
            not computed.

    """

    mechanism: str
    ensemble_size: int
    chunk_row_count: int
    cutoff: int | None
    relabel_share: Fraction
    answers_share: Fraction
    forecast: Forecast
    worst: float
    accuracy: float | None = None
    likeliest: float | None = None


def recommend(request: PlanRequest, trial: Trial) -> Choice | None:
    """Return the choice that gives the most labelled answers, of all choices in a grid.

    The epsilon of answers and of relabelling (replacing the rows' labels by those of a drawn rule)
    together stays as configured, and so do all other shares. First the number k of models is
    fixed. Of the choices that give about the most labelled answers, the one that gives the most in
    an unfavourable case sets k. In this case, queries often reach the tree leaf on which the models
    agree least; for models that label public cells, the number of answers is the one that is
    exceeded under nine in ten made-up rules. Then, of all choices with this k, the one with the
    largest mean ratio is returned.

    Args:
        request: the planned release, with a known number of rows.
        trial: the population and the learning method to try.

    Returns:
        The recommended choice; None if no choice can be tried.

    """
    rules = trial.rules(with_shares(request))
    choices = choices_of(request, trial, RELABEL_EXCESS_MAX, rules)
    if not choices or rules is None:
        return None
    most = max(choice.forecast.mean for choice in choices)
    good = [choice for choice in choices if choice.forecast.mean >= AS_GOOD * most]
    size = max(good, key=_safety).ensemble_size
    best = picked([choice for choice in choices if choice.ensemble_size == size])
    # Many labels are worth little where they are all the same one.
    accuracy, likeliest = rules.worth(RULES_JUDGED)
    return replace(best, accuracy=accuracy, likeliest=likeliest)


def picked(choices: Sequence[Choice]) -> Choice:
    """Return the choice with the largest mean ratio, among choices with the same number of models.

    Nearly equal ratios are not treated as equal, because even a difference of a thousandth may hide
    a mechanism that gives only a tenth of the answers under some rules.
    """
    parts = parts_of_best([choice.forecast for choice in choices]).tolist()
    return max(zip(parts, choices, strict=True), key=lambda each: (each[0], _safety(each[1])))[1]


def surest(request: PlanRequest, trial: Trial, excess_max: float) -> Choice | None:
    """Return the settings that give the most labelled answers if the drawn rule is unfavourable.

    Settings are compared by the number of labelled answers that is exceeded under nine in ten
    made-up rules.

    Args:
        request: the planned release, with a known number of rows.
        trial: the population and the learning method to try.
        excess_max: the largest allowed bound on the relabelling rule's error rate above the best
            rule's.

    """
    choices = choices_of(request, trial, excess_max)
    return max(choices, key=lambda each: (each.forecast.low, _safety(each)), default=None)


def choices_of(
    request: PlanRequest, trial: Trial, excess_max: float, rules: MadeUpRules | None = None
) -> list[Choice]:
    """Return the forecast of every combination of settings in a grid.

    Args:
        request: the planned release, with a known number of rows.
        trial: the population and the learning method to try.
        excess_max: the largest allowed bound on the relabelling rule's error rate above the best
            rule's.
        rules: the made-up labelling rules; None to make them here.

    """
    shared = with_shares(request, excess_max)
    budget = shared.budget
    rules = trial.rules(shared) if rules is None else rules
    if rules is None or budget is None:
        return []
    by_cell = votes_by_cell(trial.learner)
    sizes = _sizes_of_cells(shared) if by_cell else _sizes(shared, budget)
    weighed = list(_calibrations(shared, budget))
    return [choice for size in sizes for choice in _choices(shared, trial, rules, weighed, size)]


def with_shares(request: PlanRequest, excess_max: float = RELABEL_EXCESS_MAX) -> PlanRequest:
    """Return a request with just enough budget for relabelling, and the rest for answers.

    Relabelling (replacing the rows' labels by those of a drawn rule) gets the smallest share, of a
    few that are tried, with which the bound on the drawn rule's error rate above the best rule's is
    at most ``excess_max``.

    The shares are not changed if the release uses a random sample of its rows, if its relabelling
    rule is drawn from the labellings of the rows themselves (``hypotheses.grid = "private"``), or
    if its calibration is ``paper``.
    """
    relabel, answers = request.charge(Mechanism.RELABEL), request.charge(Mechanism.ANSWERS)
    budget = request.budget
    if relabel is None or answers is None or budget is None or request.row_count is None:
        return request
    if budget.sampling_rate < 1 or budget.relabel_is_private or request.row.is_printed:
        return request
    both = relabel.epsilon + answers.epsilon
    fitting = [share for share in RELABEL_SHARES if share * request.epsilon < both]
    enough = [share for share in fitting if _excess(request, share) <= excess_max]
    if not enough:
        return request
    epsilon = enough[0] * request.epsilon
    parts = {
        Mechanism.RELABEL: replace(relabel, epsilon=epsilon),
        Mechanism.ANSWERS: replace(answers, epsilon=both - epsilon),
    }
    charges = tuple(parts.get(charge.mechanism, charge) for charge in request.charges)
    changed = replace(request, charges=charges)
    return replace(changed, budget=shared_budget(changed.asked))


def _excess(request: PlanRequest, share: Fraction) -> float:
    return excess_error(
        hypothesis_count=request.relabel_hypothesis_count,
        beta=request.beta,
        row_count=request.row_count or 1,
        epsilon=float(share * request.epsilon),
    )


def _safety(choice: Choice) -> tuple[float, int, int]:
    """Rank by what the worst leaf leaves, to two digits; then few learners, a small T."""
    worst = float(f"{choice.worst:.{DIGITS}g}")
    return worst, -choice.ensemble_size, -(choice.cutoff or 0)


def _sizes(request: PlanRequest, budget: PipelineBudget) -> tuple[int, ...]:
    """Return values of k worth a trial, rising, that leave a chunk rows enough."""
    try:
        table = approximate_profile(
            epsilon=budget.answers_epsilon,
            delta=budget.answers_delta,
            cutoff=max(CUTOFFS[:3]),
            draws=request.asked.draws_at(budget.answers_epsilon),
        )
    except ConfigurationError:
        return ()
    least = size_at_unanimity(table.distance_at(HIT_PROBABILITY_MAX))
    most = min(SIZE_MAX, (request.sampled_row_count or 0) // CHUNK_ROWS_MIN)
    rounded = {int(float(f"{float(factor * least):.{DIGITS}g}")) for factor in SIZES}
    own = request.ensemble_size
    return tuple(sorted(size for size in {*rounded, own or 0} if 1 <= size <= most))


def _sizes_of_cells(request: PlanRequest) -> tuple[int, ...]:
    """Return values of k worth a trial over cells: a learner a row, and every few rows."""
    rows = request.sampled_row_count or 0
    own = request.ensemble_size or 0
    sizes = {own, *(rows // each for each in CELL_ROWS)}
    return tuple(sorted(size for size in sizes if 1 <= size <= rows))


def _choices(
    request: PlanRequest, trial: Trial, rules: MadeUpRules, weighed: Sequence[Weighed], size: int
) -> Iterator[Choice]:
    """Try out one k, and say what every mechanism and T make of it."""
    rows = trial.learner.chunk_rows((request.sampled_row_count or 0) // size)
    extent = extent_of(trial, chunk_row_count=rows, seconds_max=SECONDS_COMPARED)
    if extent is None:
        return
    agreement = try_out(
        rules,
        trial.learner,
        chunk_row_count=rows,
        learner_count=min(size, extent.learner_count),
        hypothesis_count=extent.hypothesis_count,
    )
    for calibration in weighed:
        choice = _choice(request, calibration, agreement, size=size, rows=rows)
        yield replace(choice, worst=choice.forecast.low) if votes_by_cell(trial.learner) else choice


def _choice(
    request: PlanRequest, calibration: Weighed, agreement: Agreement, *, size: int, rows: int
) -> Choice:
    return Choice(
        mechanism=row_of(calibration).name,
        ensemble_size=size,
        chunk_row_count=rows,
        cutoff=calibration.cutoff,
        relabel_share=_share(request, Mechanism.RELABEL),
        answers_share=_share(request, Mechanism.ANSWERS),
        forecast=forecast_answers(
            calibration, agreement, ensemble_size=size, limit=request.query_count
        ),
        worst=labels_at_worst(
            calibration, ensemble_size=size, chunk_row_count=rows, limit=request.query_count
        ),
    )


def _share(request: PlanRequest, mechanism: Mechanism) -> Fraction:
    charge = request.charge(mechanism)
    return Fraction(0) if charge is None else charge.epsilon / request.epsilon


def _calibrations(request: PlanRequest, budget: PipelineBudget) -> Iterator[Weighed]:
    """Return what may serve at a request's budget; what has no parameters is left out."""
    epsilon, delta = budget.answers_epsilon, budget.answers_delta
    tried = [each for each in PLANNED.values() if each.variants and request.may_serve(each.row)]
    for cutoff in sorted({*CUTOFFS, request.cutoff}):
        for planned in tried:
            if planned.takes_cutoff:
                asked, own = request.asked_of(planned.row, epsilon)
                with suppress(ConfigurationError):
                    yield planned.quick(replace(asked, cutoff=cutoff), epsilon=own, delta=delta)
    for planned in tried:
        if not planned.takes_cutoff:
            asked, own = request.asked_of(planned.row, epsilon)
            with suppress(ConfigurationError):
                yield planned.quick(asked, epsilon=own, delta=delta)
