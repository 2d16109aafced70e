"""A plan as three lines: the number of answers, their accuracy, and one recommended change.

The first two lines follow from public numbers. The third line comes from a trial in which models
are trained on made-up records. A *drawn rule* is a rule that the release draws at random from a
public class of rules, to relabel the rows or as the published classifier. The *best rule* is the
rule of this class with the lowest error rate on the rows.

A made-up labelling rule stands for the rule that will be drawn for relabelling, which depends on
the private rows, so that planning does not know it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError
from app.planning.capacity import AGREEMENTS, USUAL_AGREEMENT
from app.planning.mechanisms.planning_table import capacity
from app.planning.output.epsilon_sentence import epsilon_words
from app.planning.output.plan_sentences import SEQUELS
from app.planning.output.prediction_document import learner_at_once
from app.planning.output.prediction_sentences import worth_words
from app.planning.plan import excess_errors, unbounded_notes
from app.planning.trial.recommendation import AS_GOOD
from app.planning.variants import quick_calibration, size_of
from app.privacy.budget.composition import Mechanism
from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.planning.capacity import Capacity
    from app.planning.plan import Plan
    from app.planning.request import PlanRequest
    from app.planning.trial.forecast import Forecast
    from app.planning.trial.recommendation import Choice

LEAST_AGREEMENT: Final = AGREEMENTS[-1]
NAMES: Final = {
    Mechanism.RELABEL: "the rule behind the answers",
    Mechanism.CLASSIFIER: "the published classifier",
}
LABELS_NAMED: Final = 8
# Above this a bound on the excess error says nothing.
EXCESS_MAX: Final = 0.5
BEST: Final = "How accurate the best rule of a class is depends on the records."
PUBLISH: Final = (
    "publish a classifier at once, which is more accurate and never runs out (privacy.shares"
    ' classifier = 1, [classifier] learner = "{learner}", conclave learn)'
)


def answers_line(request: PlanRequest) -> str:
    """Return a line on how many queries get a label, for two fractions of agreeing models."""
    if request.budget is None:
        return f"Answers: any number, since {SEQUELS[request.after]}, from the first query on."
    try:
        calibration = quick_calibration(request)
    except ConfigurationError as error:
        return f"Answers: none, since {error}."
    size, sampled, unit = size_of(request, calibration), request.sampled_row_count, request.unit
    if sampled is not None and size > sampled:
        return f"Answers: none, since k = {size:,} learners are more than {sampled:,} {unit}s."
    usual, least = (
        capacity(calibration, ensemble_size=size, agreement=agreement)
        for agreement in (USUAL_AGREEMENT, LEAST_AGREEMENT)
    )
    rows = "" if sampled is not None else f" ({unit}s enough for k = {size:,} learners; see --rows)"
    limit, served = request.query_count, _labels(usual, request.query_count)
    if request.row.counts_decisions:
        return f"Answers: {_of_cells(usual)}{rows}; {_end_of_cells(request)}."
    seldom = "" if usual.distance is not None else ", one in a hundred at most by the noise,"
    after = request.after if served >= AS_GOOD * limit else request.on_cutoff
    return (
        f"Answers: {served:,} of m = {limit:,} queries get a label{seldom} where nine learners in"
        f" ten agree on each, {_labels(least, limit):,} where two in three do{rows}; then"
        f" {SEQUELS[after]}."
    )


def _of_cells(usual: Capacity) -> str:
    """Say what a cell gets that is decided once."""
    if usual.unstable_probability is None:
        return "every cell gets a label, once for all who ask in it"
    share = 1 - usual.unstable_probability
    return (
        f"each cell is decided once for all who ask in it, and {share:.4%} of those get a label"
        " on which nine learners in ten agree"
    )


def _end_of_cells(request: PlanRequest) -> str:
    """Say what follows the answers, or that nothing ends them."""
    if not request.never_ends:
        return f"then {SEQUELS[request.after]}"
    return (
        f"nothing ends it, since answers.queries = {request.query_count:,} is more than the"
        f" {request.cell_count:,} cells there are: set it to {request.cell_count:,} or less for an"
        " end"
    )


def _labels(found: Capacity, limit: int) -> int:
    """Return the labels among m queries of one agreement."""
    if found.answers <= limit:
        return found.labels
    return round(limit * (found.labels / found.answers))


def accuracy_line(
    request: PlanRequest, *, classes: Sequence[str], label_shares: Mapping[str, float] | None
) -> str:
    """Return a line that bounds by how much answers are less accurate than the best rule.

    Args:
        request: the configured release.
        classes: the names of the labels.
        label_shares: the frequency of each label in a public sample; None without a sample.

    """
    bounds = excess_errors(request)
    told = [*_bounded(request, bounds), *_unbounded(request, bounds)]
    rare = rare_labels(request, bounds, classes=classes, label_shares=label_shares)
    if not told:
        return f"Accuracy: no public number says without the number of {request.unit}s. {rare}"
    best = f" {BEST}" if bounds else ""
    return f"Accuracy: {'; '.join(told)}.{best} {rare}".rstrip()


def _drawn(request: PlanRequest) -> tuple[Mechanism, ...]:
    """Return what has a share and gives labels."""
    has_answers = request.charge(Mechanism.ANSWERS) is not None
    first = (Mechanism.RELABEL,) if has_answers else ()
    last = (Mechanism.CLASSIFIER,) if request.charge(Mechanism.CLASSIFIER) is not None else ()
    return (*first, *last)


def _bounded(request: PlanRequest, bounds: Mapping[Mechanism, float]) -> list[str]:
    """Say how far what is drawn may be from the best of its class."""
    known = [each for each in _drawn(request) if each in bounds]
    least = [
        f"{NAMES[each]} is wrong on at most {bounds[each]:.1%} more {request.unit}s"
        for each in known
        if bounds[each] < EXCESS_MAX
    ]
    none = [f"{NAMES[each]}: nothing is promised" for each in known if bounds[each] >= EXCESS_MAX]
    if not least:
        return none
    together = " and ".join(least)
    return [
        f"{together} than the best of its class, with probability {1 - request.beta:.0%}",
        *none,
    ]


def _unbounded(request: PlanRequest, bounds: Mapping[Mechanism, float]) -> list[str]:
    """Say why no bound is known, where n is."""
    unknown = [each for each in _drawn(request) if each not in bounds]
    if request.row_count is None:
        return []
    own = f"{NAMES[Mechanism.RELABEL]}: none, since {request.unit}s keep labels of their own"
    relabel = [own] if Mechanism.RELABEL in unknown else []
    return [*relabel, *unbounded_notes(request, bounds)]


def rare_labels(
    request: PlanRequest,
    bounds: Mapping[Mechanism, float],
    *,
    classes: Sequence[str],
    label_shares: Mapping[str, float] | None,
) -> str:
    """Return a text on labels so rare that perhaps no answer ever gives them.

    The text is empty if no bound on the frequency of such labels is known.

    Args:
        request: the configured release.
        bounds: a bound on each drawn rule's error rate above the best rule's, by the mechanism that
            draws the rule.
        classes: the names of the labels.
        label_shares: the frequency of each label in a public sample; None without a sample.

    """
    shares = [bounds.get(Mechanism.RELABEL, 0.0), request.rare_share or 0.0]
    share = min(1.0, max(shares))
    if request.row_count is None or share <= 0:
        return ""
    least = f"{math.ceil(share * request.row_count):,} {request.unit}s ({share:.1%})"
    if label_shares is None:
        named = " or ".join(f'"{name}"' for name in classes[:LABELS_NAMED])
        more = "" if len(classes) <= LABELS_NAMED else " or another"
        return f"A label of fewer than {least} may be given to nobody: is {named}{more} so rare?"
    rare = [f'"{name}"' for name in classes if label_shares.get(name, 0.0) < share]
    if not rare:
        return f"Every label of the public sample is frequent enough: on more than {least}."
    return f"May be given to nobody, with fewer than {least}: {', '.join(rare[:LABELS_NAMED])}."


def change_line(plan: Plan) -> str:
    """Return a line with the recommended change of settings, and the meaning of epsilon."""
    return f"Change: {_change(plan)} {epsilon_words(plan.request)}"


def _change(plan: Plan) -> str:
    if plan.reasons:
        advice = f" To change: {'; '.join(plan.advice)}." if plan.advice else ""
        return f"this release does not work: {'; '.join(plan.reasons)}.{advice}"
    learner = learner_at_once(plan)
    publish = "" if learner is None else PUBLISH.format(learner=learner)
    if plan.answers.calibration is None:
        return "nothing."
    online = _online(plan)
    return (
        f"{publish}. To answer online, {online}" if publish else f"{online[0].upper()}{online[1:]}"
    )


def _online(plan: Plan) -> str:
    """Say which settings give more answers of an ensemble."""
    found = plan.prediction
    if found is None:
        return f"no settings were compared: {plan.unpredicted or 'nothing was tried out'}."
    own, limit = expected(found.own), f"of m = {plan.request.query_count:,} made-up queries"
    if found.best is None or not is_better(found.best, found.own):
        return (
            f"keep these settings: {limit} {own} get a label, and none that were tried give more."
        )
    return (
        f"set {settings_words(found.best)} (conclave plan --toml): {limit}"
        f" {expected(found.best.forecast)} get a label, in place of {own}.{worth_words(found.best)}"
    )


def is_better(choice: Choice, own: Forecast) -> bool:
    """Return whether a choice gives clearly more labelled answers than the present settings."""
    return choice.forecast.mean * AS_GOOD > own.mean


def settings_words(choice: Choice) -> str:
    """Return a choice of planned settings as a short text."""
    row = MECHANISMS[choice.mechanism]
    calibration = "" if row.calibration is None else f' "{row.calibration}"'
    cutoff = "" if choice.cutoff is None else f", cutoff = {choice.cutoff:,}"
    return (
        f'"{row.mechanism}"{calibration}, ensemble = {choice.ensemble_size:,}{cutoff}, shares'
        f" relabel = {float(choice.relabel_share):g} and answers = {float(choice.answers_share):g}"
    )


def expected(forecast: Forecast) -> str:
    """Return a text with the mean number of labelled answers, and its range over made-up rules."""
    low, high = (f"{round(each):,}" for each in (forecast.low, forecast.high))
    return f"{round(forecast.mean):,} on average ({low} to {high} by eight rules in ten)"
