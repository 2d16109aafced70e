"""A plan in sentences, for readers who do not know the papers in ``docs/algorithms.md``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.planning.capacity import ANSWERS_MAX, USUAL_AGREEMENT
from app.planning.mechanisms.planning_table import PLANNED
from app.planning.output.count_format import count
from app.planning.output.prediction_sentences import prediction_words
from app.planning.variants import Lever
from app.privacy.budget.account import ACCOUNT_PROOF

if TYPE_CHECKING:
    from app.planning.capacity import Capacity
    from app.planning.plan import Plan

SEQUELS: Final = {
    "classifier": "one published classifier answers, without limit",
    "student": "a student of the answers takes over, without limit and free of charge",
    "halt": "the release halts and repeats recorded answers only",
}
OFTEN: Final = 0.1
LEVER_WORDS: Final = {
    Lever.EPSILON: "epsilon {value:g}",
    Lever.CUTOFF: "a cutoff of {value:,.0f}",
    Lever.ROWS: "{value:,.0f} {unit}s",
}
ASSUMPTION: Final = (
    "How widely the learners agree on a query is a property of the records, which planning does"
    " not read. Relabelling makes them agree; a query that is asked again costs nothing."
)


def summary(plan: Plan) -> tuple[str, ...]:
    """Return a plan in a few sentences, the most important first."""
    answered = () if not plan.capacities else (_answers(plan), _sequel(plan))
    tried = prediction_words(plan)
    classifier = plan.request.classifier_words
    lines = (_verdict(plan), *answered, *tried, _mechanism(plan), _more(plan), _proofs(plan))
    lines = (*lines, *classifier)
    assumption = (ASSUMPTION,) if plan.capacities else ()
    return tuple(line for line in lines if line) + assumption


def _verdict(plan: Plan) -> str:
    request, size, unit = plan.request, plan.answers.ensemble_size, plan.request.unit
    if size is None:
        return f"No ensemble answers: {SEQUELS[request.after]}, from the first query on."
    if request.row_count is None:
        needed = plan.answers.rows_needed
        least = "" if needed is None else f"; it takes {needed:,} {unit}s or more"
        return (
            f"The number of {unit}s is not given (--rows): k = {size:,} learners would do{least}."
        )
    rows = f"{request.row_count:,} {unit}s at epsilon {float(request.epsilon):g}"
    if not plan.feasible:
        return f"This release does not work on {rows} as configured."
    smallest = plan.answers.chunk_row_count
    return (
        f"This release works on {rows}: k = {size:,} learners, {smallest:,} {unit}s or more each."
    )


def _answers(plan: Plan) -> str:
    """Say how many queries are served, at the usual agreement and at the widest."""
    usual = next(each for each in plan.capacities if each.agreement == USUAL_AGREEMENT)
    widest = plan.capacities[0]
    limit = plan.request.query_count
    if plan.request.row.counts_decisions:
        return _of_cells(usual, widest)
    if usual.unstable_probability is None:
        return (
            f"All m = {limit:,} queries get a label. It is that of the most votes, in ninety-nine"
            f" of a hundred or more, where m is {count(usual.answers)} or less and nine learners"
            f" in ten agree; {count(widest.answers)} where all do."
        )
    cutoff = plan.answers.cutoff
    if usual.answers >= limit:
        return (
            f"Where nine learners in ten agree, all m = {limit:,} queries are answered; without"
            f" that limit {count(usual.labels)} would be, before unstable answer T = {cutoff:,}."
        )
    return (
        f"Of queries on which nine learners in ten agree, {_served(usual, limit)} before unstable"
        f" answer T = {cutoff:,} ends the ensemble; of those on which all agree,"
        f" {_served(widest, limit)}."
    )


def _of_cells(usual: Capacity, widest: Capacity) -> str:
    """Say what a cell gets that is decided once, whatever number of queries is asked."""
    if usual.unstable_probability is None:
        enough = next((each for each in (usual, widest) if each.answers), None)
        agreeing = "nine learners in ten agree" if enough is usual else "all learners agree"
        seldom = "more than one in a hundred is another, whatever the votes"
        if enough is not None:
            seldom = f"where {agreeing} it is that of the most votes in ninety-nine of a hundred"
        return f"Every cell gets a label, whatever is asked: {seldom}."
    return (
        "Every cell is decided once, and any number of them may be unstable: where nine learners"
        f" in ten agree, {_chance(usual)} is, and where all do, {_chance(widest)}."
    )


def _chance(capacity: Capacity) -> str:
    """Write the chance of an unstable answer as people say it."""
    probability = capacity.unstable_probability or 0.0
    if probability >= OFTEN:
        return f"{probability:.0%}"
    return f"one in {count(round(1 / max(probability, 1 / ANSWERS_MAX)))}"


def _served(capacity: Capacity, limit: int) -> str:
    if capacity.answers >= limit:
        return f"all m = {limit:,} are answered"
    return f"about {count(capacity.labels)} get a label" if capacity.labels else "none gets a label"


def _sequel(plan: Plan) -> str:
    request = plan.request
    if request.never_ends:
        return "Nothing ends it: there are fewer cells than answers."
    if plan.answers.cutoff is None or request.after == request.on_cutoff:
        return f"Then {SEQUELS[request.after]}."
    return (
        f"After answer m {SEQUELS[request.after]}; after unstable answer T"
        f" {SEQUELS[request.on_cutoff]}."
    )


def _mechanism(plan: Plan) -> str:
    """Say which mechanism needs the fewest votes, and how many the next one takes."""
    ranked = sorted(plan.votes_needed, key=lambda name: plan.votes_needed[name])
    serving = plan.request.row.shown
    own = next((name for name in ranked if name.startswith(serving)), None)
    if own is None or len(ranked) < len(("own", "other")):
        return ""
    best, second = ranked[:2]
    other = second if own == best else best
    verdict = "takes the fewest votes" if own == best else "does not take the fewest votes"
    return (
        f"{_named(own)} {verdict} where two thirds of the learners agree: k ="
        f" {plan.votes_needed[own]:,}, and {_named(other)} {plan.votes_needed[other]:,}."
    )


def _proofs(plan: Plan) -> str:
    """Say by which theorem each mechanism keeps its claim, and the account that they may share."""
    request = plan.request
    rows = [each.row for each in PLANNED.values() if each.variants and request.may_serve(each.row)]
    places = [f"{_named(row.shown)} by {row.theorem}, in {row.proof}" for row in rows]
    budget = plan.request.budget
    if budget is not None and budget.account is not None:
        places.append(f"one account of all shares in {ACCOUNT_PROOF}")
    return f"Proved: {'; '.join(places)}." if plan.calibrations else ""


def _named(mechanism: str) -> str:
    return f'"{mechanism}"'


def _more(plan: Plan) -> str:
    """Say what gives more answers, where not all m are served at the usual agreement."""
    served = {each.agreement: each for each in plan.capacities}
    usual = served.get(USUAL_AGREEMENT)
    if usual is None or usual.answers >= plan.request.query_count:
        return ""
    better = [each for each in plan.changes if (each.labels or 0) > usual.labels]
    better.sort(key=lambda each: -(each.labels or 0))
    unit = plan.request.unit
    gains = [
        f"{count(each.labels or 0)} with "
        f"{LEVER_WORDS[each.lever].format(value=each.value, unit=unit)}"
        for each in better
    ]
    if not gains:
        return ""
    return (
        f"For more labels, where nine learners in ten agree: {', '.join(gains)}, all else as it is."
    )
