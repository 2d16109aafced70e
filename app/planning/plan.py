"""A plan: every parameter of a release, whether it is feasible, and advice.

A plan depends only on a :class:`PlanRequest`, that is, on the configuration and the public number
of rows. No private row is read. A *drawn rule* is a rule that the release draws at random from a
public class of rules, to relabel the rows or as the published classifier. The *best rule* is the
rule of this class with the lowest error rate on the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.learning.enumerated.enumerated_class import SIZE_MAX
from app.planning.capacity import AGREEMENTS, USUAL_AGREEMENT
from app.planning.mechanisms.planning_table import (
    PLANNED,
    best_mechanism,
    calibrations,
    capacity,
    votes_needed,
)
from app.planning.plan_result import Verdict
from app.planning.variants import Lever, change, levers, value_of
from app.privacy.budget.account import ACCOUNT_PROOF, ONE_ACCOUNT
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential.amplification import relabel_parameter
from app.privacy.exponential.mechanism import excess_error
from app.privacy.mechanisms import STABILITY, size_wanted
from app.privacy.paper.paper import public_query_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.planning.capacity import Capacity
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Weighed
    from app.planning.trial.prediction import Prediction
    from app.planning.variants import Change

NO_ESTIMATE: Final = (
    "no accuracy is estimated, since no theorem bounds it, as one does for a rule drawn from a"
    " class, and made-up records cannot say how well its scores fit yours (docs/utility.md has"
    " measured accuracies)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parameters of a planned release, and whether it can work.

    Attributes:
        request: the planned release.
        answers: the answering mechanism, its parameters and whether it can work.
        relabel_parameter: the epsilon of the exponential mechanism that relabels the rows (draws a
            rule that replaces their labels), before the correction for numerical errors; None
            without relabelling.
        public_query_count: the number m_o of answers that Algorithm 4 of Nandi and Bassily requires
            (``docs/algorithms.md``), to compare with the configured number m.
        excess_errors: for each drawn rule, by the mechanism that draws it, a bound on its error
            rate above that of the best rule; the bound fails with probability at most
            ``answers.beta``. Empty if the number of rows is unknown.
        votes_needed: the number k of votes with which each mechanism gives a label at this budget
            if two thirds of the models agree, by the mechanism's name.
        capacities: the number of answers for several fractions of agreeing models; empty if the
            release gives no answers by vote.
        others: the number of labelled answers that each mechanism would give with the planned k
            votes at this budget, if nine tenths of the models agree, by the mechanism's name.
        changes: the number of labelled answers for other values of epsilon, cutoff and number of
            rows, if nine tenths of the models agree.
        reasons: the reasons why the release cannot work, as sentences.
        advice: the settings to change if the release cannot work, as sentences.
        notes: further notes on the plan, as sentences.
        calibrations: the noise parameters of each mechanism at this budget, by the mechanism's
            name.
        prediction: the forecast from trials on made-up records; None without a trial.
        unpredicted: the reason why no trial was possible; empty if there was a trial or if no trial
            was requested.

    """

    request: PlanRequest
    answers: Verdict
    relabel_parameter: float | None
    public_query_count: int
    excess_errors: dict[Mechanism, float]
    votes_needed: dict[str, int]
    capacities: tuple[Capacity, ...]
    others: dict[str, int]
    changes: tuple[Change, ...]
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    notes: tuple[str, ...]
    calibrations: Mapping[str, Weighed] = field(default_factory=dict)
    prediction: Prediction | None = None
    unpredicted: str = ""

    @property
    def feasible(self) -> bool:
        """Whether the release can work with the planned number of rows, if one is given."""
        return not self.reasons

    @property
    def publishes_at_once(self) -> bool:
        """Whether a classifier may be published at once, which is better than online answers.

        This is False if the models (such as scikit-learn estimators) do not belong to the public
        class of rules, and for a release to which rows are added, which ``conclave learn`` does not
        support.
        """
        return not (self.request.with_estimator or self.request.is_growing)

    @property
    def best(self) -> str | None:
        """The name of the mechanism that needs the fewest votes to give a label.

        Two thirds of the votes are assumed to agree.
        """
        return best_mechanism(self.votes_needed)


def plan_release(request: PlanRequest) -> Plan:
    """Return the plan of a configuration.

    Args:
        request: the public values of the configuration.

    Raises:
        ConfigurationError: no noise parameters fit the budget.

    """
    answers = plan_answers(request)
    parameter = _relabel_parameter(request)
    errors = excess_errors(request)
    public_queries = math.ceil(
        public_query_count(
            alpha=request.alpha, beta=request.beta, dimension=request.classifier_dimension
        )
    )
    found = _compare(request, answers)
    needed = votes_needed(request, found)
    listing_reasons, listing_advice = _listing(request)
    return Plan(
        request=request,
        answers=answers,
        relabel_parameter=parameter,
        public_query_count=public_queries,
        excess_errors=errors,
        votes_needed=needed,
        capacities=_capacities(answers),
        others=_others(answers, found),
        changes=_changes(request),
        reasons=answers.reasons + listing_reasons,
        advice=answers.advice + listing_advice,
        notes=answers.notes
        + _account_notes(request)
        + _score_notes(request, answers)
        + cell_notes(request)
        + _student_notes(request)
        + _excess_notes(request, errors)
        + unbounded_notes(request, errors)
        + _public_query_notes(request, public_queries)
        + _comparison_notes(request, needed),
        calibrations=found,
    )


def plan_answers(request: PlanRequest) -> Verdict:
    """Return the planned answers only, without the comparison with other mechanisms.

    Raises:
        ConfigurationError: no noise parameters fit the budget.

    """
    budget = request.budget
    if request.charge(Mechanism.ANSWERS) is None or budget is None:
        note = "answers have no share: the release starts with what follows them"
        return Verdict(notes=(note,))
    return PLANNED[request.row.name].plan(request, budget)


def _relabel_parameter(request: PlanRequest) -> float | None:
    """Return what the relabelling draw runs at, but for its numerical error."""
    cost = None if request.budget is None else request.budget.relabel_epsilon
    if request.budget is None or cost is None:
        return None
    if not request.budget.relabel_is_private:
        return float(cost)
    return float(relabel_parameter(cost=cost, class_count=request.class_count) or 0)


def excess_errors(request: PlanRequest) -> dict[Mechanism, float]:
    """Return, for each drawn rule, an upper bound on its error rate above the best rule's.

    Each bound fails with probability at most beta, the setting ``answers.beta``. The bounds are
    listed by the mechanism that draws the rule.
    """
    bounds, parameter = {}, _relabel_parameter(request)
    sampled, classifier = request.sampled_row_count, request.charge(Mechanism.CLASSIFIER)
    if sampled and parameter:
        bounds[Mechanism.RELABEL] = excess_error(
            hypothesis_count=request.relabel_hypothesis_count,
            beta=request.beta,
            row_count=sampled,
            epsilon=parameter,
        )
    count = request.classifier_hypothesis_count
    if request.row_count is not None and classifier is not None and count is not None:
        bounds[Mechanism.CLASSIFIER] = excess_error(
            hypothesis_count=count,
            beta=request.beta,
            row_count=request.row_count,
            epsilon=float(classifier.epsilon),
        )
    return bounds


def _compare(request: PlanRequest, answers: Verdict) -> dict[str, Weighed]:
    """Calibrate each mechanism for the answers' budget, or for what they are charged as printed."""
    charge, budget = request.charge(Mechanism.ANSWERS), request.budget
    if charge is None or budget is None:
        return {}
    if request.row.is_printed:
        return calibrations(request, charge.epsilon, charge.delta, known=None)
    return calibrations(
        request, budget.answers_epsilon, budget.answers_delta, known=answers.calibration
    )


def _capacities(answers: Verdict) -> tuple[Capacity, ...]:
    """Return what queries get from the mechanism that serves."""
    calibration, size = answers.calibration, answers.ensemble_size
    if calibration is None or size is None:
        return ()
    return tuple(
        capacity(calibration, ensemble_size=size, agreement=agreement) for agreement in AGREEMENTS
    )


def _others(answers: Verdict, found: Mapping[str, Weighed]) -> dict[str, int]:
    """Return what each mechanism would give with the votes that serve."""
    size = answers.ensemble_size
    if size is None:
        return {}
    return {
        name: capacity(calibration, ensemble_size=size, agreement=USUAL_AGREEMENT).labels
        for name, calibration in found.items()
    }


def _changes(request: PlanRequest) -> tuple[Change, ...]:
    """Turn each lever to twice its value, and T to half of it as well."""
    turned = []
    if request.row.counts_decisions:
        return ()  # labels have no end to compare
    for lever in levers(request):
        planned = value_of(request, lever)
        if planned is None:
            continue
        factors = (Fraction(1, 2), Fraction(2)) if lever is Lever.CUTOFF else (Fraction(2),)
        turned += [
            change(request, lever, planned * factor, USUAL_AGREEMENT)
            for factor in factors
            if planned * factor >= 1 or lever is Lever.EPSILON
        ]
    return tuple(turned)


def _listing(request: PlanRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say where a private grid has more labellings than can be listed, and what helps."""
    count = request.relabel_hypothesis_count
    if request.budget is None or not request.budget.relabel_is_private or count <= SIZE_MAX:
        return (), ()
    reason = (
        f"the sample of n' = {request.sampled_row_count} rows may have {count} labellings by the"
        f" class, and at most {SIZE_MAX} can be listed"
    )
    advice = (
        'set hypotheses.grid = "public", privacy.sampling lower, or leave a feature out by an'
        " empty list of its tests"
    )
    return (reason,), (advice,)


def _score_notes(request: PlanRequest, answers: Verdict) -> tuple[str, ...]:
    """Say what the distance and the cutoff are of, where answers are scores."""
    stability = answers.stability
    if not request.with_scores or stability is None:
        return ()
    size = size_wanted(table=stability.calibration, query_count=request.query_count)
    note = (
        f"a bin worth releasing is at distance {stability.wanted_distance}: k = {size} learners"
        f" with two thirds of the scores in it; an unstable score takes two of the"
        f" {stability.calibration.cutoff} units, a bin of the shifted histogram one"
    )
    return (note,)


def cell_notes(request: PlanRequest) -> tuple[str, ...]:
    """Return a note if more answers are planned than there are public cells to answer once each."""
    if not request.never_ends:
        return ()
    follows = "" if request.after == "halt" else f" and the {request.after} never follows"
    note = (
        f"answers.queries = {request.query_count} is more than the {request.cell_count} cells"
        f" there are, each decided once: the ensemble answers for ever{follows};"
        f" set it to {request.cell_count} or less for an end"
    )
    return (note,)


def _account_notes(request: PlanRequest) -> tuple[str, ...]:
    """Say that relabelling, answers and classifier are one account, where they are."""
    if request.budget is None or request.budget.account is None:
        return ()
    return (f"{ONE_ACCOUNT}: {ACCOUNT_PROOF}",)


def _student_notes(request: PlanRequest) -> tuple[str, ...]:
    if not request.with_student:
        return ()
    return ("a student is trained on the answers alone: it is charged nothing",)


def _excess_notes(request: PlanRequest, excess_errors: dict[Mechanism, float]) -> tuple[str, ...]:
    return tuple(
        f"the {mechanism} draw may cost up to {excess:.3g} in error rate, above alpha ="
        f" {request.alpha:g}: more {request.unit}s, a larger share or fewer tests make it safer"
        for mechanism, excess in excess_errors.items()
        if excess > request.alpha
    )


def unbounded_notes(
    request: PlanRequest, excess_errors: Mapping[Mechanism, float]
) -> tuple[str, ...]:
    """Say why no accuracy is estimated of a published classifier that no theorem bounds."""
    if request.row_count is None or request.charge(Mechanism.CLASSIFIER) is None:
        return ()
    if Mechanism.CLASSIFIER in excess_errors:
        return ()
    return (f'the published classifier, learner "{request.learner}": {NO_ESTIMATE}',)


def _public_query_notes(request: PlanRequest, public_queries: int) -> tuple[str, ...]:
    from_class = request.classifier_hypothesis_count is not None
    if request.never_ends or not request.universal or not from_class:
        return ()
    if request.query_count >= public_queries:
        return ()
    note = (
        f"the published classifier's guarantee asks for m_o = {public_queries} queries"
        f" at alpha = {request.alpha:g} and a VC dimension of up to"
        f" {request.classifier_dimension}; it will be drawn after {request.query_count}"
    )
    return (note,)


def _comparison_notes(request: PlanRequest, needed: dict[str, int]) -> tuple[str, ...]:
    """Name the mechanism with which fewer votes would do."""
    best, serving = best_mechanism(needed), request.row.shown
    if best is None or best == serving:
        return ()
    size = min(needed.values())
    compared = (each for each in PLANNED.values() if request.may_serve(each.row))
    words = next((each.fewer_votes for each in compared if each.row.shown == best), "")
    if words:
        return (words.format(size=size),)
    setting = "calibration" if request.mechanism == STABILITY else "the stability test of"
    return (f"{setting} {best} would need fewer votes at this budget: k = {size}",)
