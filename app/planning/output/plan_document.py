"""Plans as JSON documents, in the form of ``conclave plan --json``.

``docs/algorithms.md`` names the research papers whose parameters and theorems a plan shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.planning.mechanisms.planning_table import calibration_documents
from app.planning.output.plan_sentences import summary
from app.planning.output.prediction_document import prediction_document
from app.planning.variants import setting_of
from app.privacy.mechanisms import MECHANISMS
from app.privacy.stability.cell_table import DECISIONS_MOVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.planning.curves import Panel
    from app.planning.mechanisms.planning_registration import Document
    from app.planning.plan import Plan
    from app.planning.plan_result import Stability, Verdict
    from app.planning.request import PlanRequest
    from app.privacy.paper.paper import PaperParameters
    from app.privacy.paper.sample_complexity_theorems import Theorem
    from app.release.statistics.statistics_table import StatisticsForecast


def paper_document(found: PaperParameters) -> Document:
    """Return as JSON the parameters of the papers' algorithms, named by the papers' symbols."""
    return {
        "n_prime": found.sampled_row_count,
        "T_real": found.cutoff_real,
        "T": found.cutoff,
        "eps_prime": found.epsilon_prime,
        "eps_hat": found.epsilon_hat,
        "delta_hat": found.delta_hat,
        "lambda": found.laplace_scale,
        "w": found.threshold,
        "k": found.ensemble_size,
        "m_o_real": found.public_query_count_real,
        "m_o": found.public_query_count,
    }


def theorems_document(theorems: Sequence[Theorem]) -> Document:
    """Return a JSON document of the numbers of rows that the papers' theorems require."""
    return {"sample_complexity": [_theorem_document(theorem) for theorem in theorems]}


def _theorem_document(theorem: Theorem) -> Document:
    """Describe one theorem; where its numbers are past every double, they are null."""
    bound = theorem.bound
    return {
        "theorem": theorem.name,
        "setting": theorem.setting.value,
        "rows": bound and bound.rows,
        "constant": bound and bound.constant.value,
        "rows_explicit": bound and bound.rows_explicit,
        "queries": bound and bound.query_count,
        "T": bound and bound.cutoff,
        "k": bound and bound.ensemble_size,
        "error_bound": theorem.promise,
        "error": bound and bound.error,
        "failure": bound and bound.failure,
    }


def plan_document(plan: Plan) -> Document:
    """Return a planned release as a JSON document."""
    return {
        **_verdict_document(plan),
        **_budget_document(plan),
        **_sizes_document(plan),
        **_test_document(plan.answers),
        **_capacity_document(plan),
        "statistics": _statistics_document(plan.request.statistics),
        **prediction_document(plan),
    }


def _capacity_document(plan: Plan) -> Document:
    """Describe how many answers there are, and what a change would make of them."""
    return {
        "summary": summary(plan),
        "after": plan.request.after,
        "on_cutoff": plan.request.on_cutoff,
        "answers_by_agreement": [
            {
                "agreement": float(each.agreement),
                "lead": each.lead,
                "distance": each.distance,
                "unstable_probability": each.unstable_probability,
                "answers": each.answers,
                "labels": each.labels,
            }
            for each in plan.capacities
        ],
        "labels_by_mechanism": plan.others,
        "changes": [
            {
                "setting": setting_of(each.lever, plan.request.unit),
                "value": each.value,
                "labels": each.labels,
            }
            for each in plan.changes
        ],
    }


def _statistics_document(forecasts: Sequence[StatisticsForecast]) -> Document | None:
    """Describe the statistics table as it would be on few public points, and on many."""
    if not forecasts:
        return None
    names = ("few_points", "many_points")
    return {
        name: {
            "hypotheses": each.hypothesis_count,
            "cells": each.cell_count,
            "updates": each.update_count,
            "alpha": each.alpha,
            "proven": each.is_proven,
        }
        for name, each in zip(names, forecasts, strict=True)
    }


def curves_document(found: Sequence[Panel]) -> Document:
    """Return the curves of a plot (number of answers against a parameter) as a JSON document."""
    return {
        "curves": {
            panel.lever.value: [
                {
                    "agreement": float(curve.agreement),
                    "points": [[point.value, point.labels] for point in curve.points],
                }
                for curve in panel.curves
            ]
            for panel in found
        }
    }


def _verdict_document(plan: Plan) -> Document:
    best = None if plan.best is None else MECHANISMS[plan.best]
    return {
        "feasible": plan.feasible,
        "reasons": plan.reasons,
        "advice": plan.advice,
        "notes": plan.notes,
        "calibration": plan.request.calibration,
        "mechanism": plan.request.mechanism,
        "output": "score" if plan.request.with_scores else "label",
        "best_mechanism": None if best is None else best.mechanism,
        "best_calibration": None if best is None else best.calibration,
        "votes_needed": plan.votes_needed,
    }


def _budget_document(plan: Plan) -> Document:
    """Describe what is charged, and what the parts may cost on the rows they run on."""
    request, budget = plan.request, plan.request.budget
    return {
        "epsilon": float(request.epsilon),
        "delta": float(request.delta),
        "charges": [
            {
                "mechanism": charge.mechanism.value,
                "epsilon": float(charge.epsilon),
                "delta": float(charge.delta),
            }
            for charge in request.charges
        ],
        "sampling": None if budget is None else float(budget.sampling_rate),
        "sample_budget": None
        if budget is None
        else {
            "relabel_epsilon": None
            if budget.relabel_epsilon is None
            else float(budget.relabel_epsilon),
            "relabel_parameter": plan.relabel_parameter,
            "answers_epsilon": float(budget.answers_epsilon),
            "answers_delta": float(budget.answers_delta),
        },
    }


def _sizes_document(plan: Plan) -> Document:
    request, answers = plan.request, plan.answers
    return {
        **({} if request.unit == "row" else {"unit": request.unit}),
        "n": request.row_count,
        "n_prime": request.sampled_row_count,
        "rows_needed": answers.rows_needed,
        "m": request.query_count,
        "m_o": request.query_count if request.universal else None,
        "m_o_wanted": plan.public_query_count,
        "T": answers.cutoff,
        **_cells_document(request),
        "k": answers.ensemble_size,
        "chunk_rows": answers.chunk_row_count,
        "classes": request.class_count,
        "learner": request.learner,
        "vc_dimension": request.dimension,
        "hypotheses": str(request.hypothesis_count),
        "excess_error": {name.value: bound for name, bound in plan.excess_errors.items()},
    }


def _cells_document(request: PlanRequest) -> Document:
    """Describe the cells that are decided once; nothing of another release."""
    if not request.row.counts_decisions:
        return {}
    return {"cells": request.cell_count, "decisions_moved": DECISIONS_MOVED}


def _test_document(answers: Verdict) -> Document:
    """Describe the parameters of what answers; what does not apply is null."""
    stability = answers.stability
    return {
        **calibration_documents(answers),
        "distance": None if stability is None else _distance_document(stability),
        "paper": None if answers.paper is None else paper_document(answers.paper),
    }


def _distance_document(stability: Stability) -> Document:
    return {
        "needed": stability.wanted_distance,
        "needed_hits": stability.wanted_probability,
        "agreement_needed": stability.wanted_agreement,
        "unanimous": stability.unanimous_distance,
        "unanimous_hits": stability.unanimous_probability,
        "hits_max": stability.largest_probability,
    }
