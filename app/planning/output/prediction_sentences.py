"""The prediction of a plan by trials on made-up data, in a few sentences.

In a trial, made-up rules label made-up records, and models are trained on these records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.planning.output.count_format import count
from app.planning.output.prediction_document import learner_at_once
from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from app.planning.plan import Plan
    from app.planning.trial.forecast import Forecast
    from app.planning.trial.recommendation import Choice
    from app.planning.trial.small_leaf_risk import Cliff

PUBLISH: Final = (
    "A classifier of this public class that is published at once (answers = 0, conclave learn,"
    ' [classifier] learner = "{learner}") is more accurate and never runs out. Answers of an'
    " ensemble suit learners that cannot be listed, the time before public points"
    " exist, and owners who publish no model."
)
VOTE: Final = (
    "Answers of an ensemble are right for this learner: its models cannot be listed, and so none"
    " can be drawn at once."
)

GROW: Final = (
    "A release that grows takes no conclave learn: where the classifier has a share, its server"
    " publishes each generation's part."
)


def prediction_words(plan: Plan) -> tuple[str, ...]:
    """Return sentences on a plan's prediction and recommendation, or on why there is none."""
    found = plan.prediction
    if found is None:
        return (f"Not predicted: {plan.unpredicted}.",) if plan.unpredicted else ()
    risk = () if found.cliff is None else (_risk(found.cliff),)
    best = () if found.best is None else (_recommended(found.best),)
    return (_expected(plan), *risk, *best, _instead(plan))


def _instead(plan: Plan) -> str:
    """Say what would be better, or that nothing is."""
    if plan.request.is_growing:
        return GROW
    learner = learner_at_once(plan)
    return VOTE if learner is None else PUBLISH.format(learner=learner)


def _expected(plan: Plan) -> str:
    """Say what is expected, and on whom it was tried."""
    found = plan.prediction
    if found is None:
        return ""
    people = "the public points" if found.with_points else "people made up by public shares"
    return (
        f"Tried out on {people}: of m = {plan.request.query_count:,} queries {_likely(found.own)}"
        f" get a label, {_labels(found.own.mean)} on the average of {found.hypothesis_count}"
        " made-up rules."
    )


def _risk(cliff: Cliff) -> str:
    tests = f", as {' or '.join(cliff.tests)} would be" if cliff.tests else ""
    return (
        f"The risk: a leaf with {cliff.leaf_rows[0]:.2g} to {cliff.leaf_rows[1]:.2g} rows a chunk"
        f" ({cliff.leaf_shares[0]:.1%} to {cliff.leaf_shares[1]:.1%} of people{tests}) divides"
        f" the learners; then {_labels(cliff.labels)} may be all."
    )


def _recommended(best: Choice) -> str:
    row = MECHANISMS[best.mechanism]
    calibration = "" if row.calibration is None else f' by "{row.calibration}"'
    cutoff = "" if best.cutoff is None else f", T = {best.cutoff:,}"
    return (
        f'Recommended: "{row.mechanism}"{calibration}{cutoff},'
        f" k = {best.ensemble_size:,}, shares"
        f" {float(best.relabel_share):g} to relabel and {float(best.answers_share):g} to answers:"
        f" {_likely(best.forecast)}, and with the worst leaf {_labels(best.worst)}."
        f"{worth_words(best)}"
    )


def worth_words(best: Choice) -> str:
    """Return a sentence that compares the rules' accuracy with that of one constant label."""
    if best.accuracy is None or best.likeliest is None:
        return ""
    return (
        f" Its made-up rules give {best.accuracy:.0%} of made-up labels, of which the likeliest"
        f" label alone is {best.likeliest:.0%}."
    )


def _likely(forecast: Forecast) -> str:
    """Say what most rules give, within a factor of two, and the others where there are any."""
    found = forecast.likely
    if found.otherwise is None:
        return f"about {_labels(found.number)}"
    return (
        f"about {_labels(found.number)} by {found.share:.0%} of the rules and about"
        f" {_labels(found.otherwise)} by the others"
    )


def _labels(number: float) -> str:
    return count(round(number))
