"""A release to plan, and whatever a test changes of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from app.planning.request import PlanRequest
from app.privacy.budget.composition import Mechanism, Shares, charges
from app.privacy.budget.sampled_budget import pipeline_budget
from app.privacy.paper.paper_pipeline import PaperTargets, paper_budget

TARGETS = PaperTargets(alpha=0.1, beta=0.05, query_count=2000)
USUAL = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))


def request(
    shares: Shares = USUAL,
    epsilon: int = 8,
    *,
    rate: str = "1",
    private: bool = False,
    **changes: object,
) -> PlanRequest:
    """A release that works, with a short table, and whatever a test changes of it."""
    delta = Fraction(1, 10**6)
    charged = charges(epsilon=Fraction(epsilon), delta=delta, shares=shares)
    parts = {charge.mechanism: charge for charge in charged}
    relabel, answers = parts.get(Mechanism.RELABEL), parts.get(Mechanism.ANSWERS)
    budget = pipeline_budget(
        relabel=relabel, answers=answers, sampling_rate=Fraction(rate), private_grid=private
    )
    if changes.get("calibration") == "paper":
        budget = paper_budget(
            TARGETS, relabel=relabel, answers=answers, private_grid=private, class_count=2
        )
    usual = PlanRequest(
        calibration="profile",
        mechanism="stability",
        row_count=20_000,
        epsilon=Fraction(epsilon),
        delta=delta,
        charges=charged,
        budget=budget,
        targets=TARGETS,
        cutoff=5,
        ensemble_size=None,
        class_count=2,
        hypothesis_count=34**3 * 2**4,
        relabel_hypothesis_count=34**3 * 2**4,
        classifier_hypothesis_count=50**7 * 2**8,
        dimension=19,
        classifier_dimension=47,
        universal=True,
        learner_asked="exponential",
    )
    return replace(usual, **changes)  # type: ignore[arg-type]  # the test names real fields


def asking(query_count: int) -> PaperTargets:
    """The usual accuracy, of another number of queries."""
    return replace(TARGETS, query_count=query_count)
