"""The part of a plan's JSON document about trials on made-up data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from app.planning.plan import Plan
    from app.planning.trial.forecast import Forecast
    from app.planning.trial.prediction import Prediction
    from app.planning.trial.recommendation import Choice
    from app.planning.trial.small_leaf_risk import Cliff


def prediction_document(plan: Plan) -> dict[str, object]:
    """Return a plan's prediction and recommendation as JSON; null without a trial."""
    found = plan.prediction
    return {
        "prediction": None if found is None else _predicted(found),
        "unpredicted": plan.unpredicted or None,
        "cliff": None if found is None else _cliff(found.cliff),
        "recommendation": None
        if found is None or found.best is None
        else _choice(plan, found.best),
    }


def learner_at_once(plan: Plan) -> str | None:
    """Return the name of the method that would learn a classifier to be published at once.

    The result is None if no classifier may be published at once, or if the number of rows is
    unknown.
    """
    known = plan.request.row_count is not None and plan.publishes_at_once
    return plan.request.learner_at_once if known else None


def _predicted(found: Prediction) -> dict[str, object]:
    return {
        **_forecast(found.own),
        "people": "points" if found.with_points else "shares",
        "hypotheses": found.hypothesis_count,
        "learners": found.learner_count,
        "by_mechanism": {
            name: None if forecast is None else _forecast(forecast)
            for name, forecast in found.by_mechanism.items()
        },
    }


def _forecast(forecast: Forecast) -> dict[str, object]:
    found = forecast.likely
    return {
        "labels": found.number,
        "labels_likelihood": found.share,
        "labels_otherwise": found.otherwise,
        "labels_mean": forecast.mean,
        "labels_low": forecast.low,
        "labels_high": forecast.high,
        "labels_unlimited": forecast.median_unlimited,
    }


def _cliff(cliff: Cliff | None) -> dict[str, object] | None:
    if cliff is None:
        return None
    return {
        "leaf_rows": cliff.leaf_rows,
        "leaf_shares": cliff.leaf_shares,
        "tests": cliff.tests,
        "labels": cliff.labels,
        "hypotheses_at_risk": cliff.hypotheses_at_risk,
    }


def _choice(plan: Plan, choice: Choice) -> dict[str, object]:
    row = MECHANISMS[choice.mechanism]
    return {
        "publish_at_once": plan.publishes_at_once,
        "classifier_learner": learner_at_once(plan),
        "mechanism": row.mechanism,
        "calibration": row.calibration,
        "k": choice.ensemble_size,
        "chunk_rows": choice.chunk_row_count,
        "T": choice.cutoff,
        "shares": {
            "relabel": float(choice.relabel_share),
            "answers": float(choice.answers_share),
        },
        **_forecast(choice.forecast),
        "labels_at_worst": choice.worst,
        "accuracy": choice.accuracy,
        "likeliest_label": choice.likeliest,
    }
