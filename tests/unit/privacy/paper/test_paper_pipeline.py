"""Calibration paper serves the printed parameters where they keep what they claim."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from app.errors import ConfigurationError, InvariantError
from app.privacy.budget.composition import Charge, Mechanism
from app.privacy.paper.paper_pipeline import (
    PaperTargets,
    copies_max,
    paper_budget,
    paper_calibration,
)
from app.privacy.sparse_vector import calibration as svt
from tests.builders.schema.plan_requests import request

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "privacy-vectors.json").read_text())
TARGETS = PaperTargets(alpha=0.1, beta=0.05, query_count=400)


def charge(epsilon: object, delta: object = "1e-6") -> Charge:
    """What the answers are charged."""
    return Charge(Mechanism.ANSWERS, Fraction(str(epsilon)), Fraction(str(delta)))


def relabelling(epsilon: object) -> Charge:
    """What relabelling is charged."""
    return Charge(Mechanism.RELABEL, Fraction(str(epsilon)), Fraction(1, 10**13))


@pytest.mark.parametrize("case", VECTORS["nandi_bassily"])
@pytest.mark.parametrize("grid", ["public", "private"])
def test_what_serves_is_what_is_printed(case: dict[str, dict[str, float]], grid: str) -> None:
    """Step by step the vectors: q, the bootstrap's epsilon and delta, T, lambda and w."""
    given, out = case["in"], case["out"]
    relabel, answers = relabelling(Fraction(str(given["epsilon"])) / 5), None
    answers = charge(Fraction(str(given["epsilon"])) * 4 / 5, given["delta"])
    targets = PaperTargets(alpha=given["alpha"], beta=given["beta"], query_count=int(given["m"]))
    budget = paper_budget(
        targets, relabel=relabel, answers=answers, private_grid=grid == "private", class_count=2
    )
    assert budget is not None
    assert budget.sampled_row_count(int(given["n"])) == out["n_prime"]
    assert float(budget.answers_epsilon) == pytest.approx(out["eps_hat"], rel=1e-9)
    assert float(budget.answers_delta) == pytest.approx(out["delta_hat"], rel=1e-9)
    assert budget.copies == math.floor(math.log(2 / given["delta"]))
    served = paper_calibration(targets, relabel=relabel, answers=answers)
    assert served.cutoff == out["T"]
    assert float(served.threshold_scale) == pytest.approx(out["lambda"], rel=1e-9)
    assert served.query_scale == 2 * served.threshold_scale
    assert served.threshold_scale >= Fraction(out["lambda"]) * (1 - Fraction(1, 10**10))
    assert served.threshold == math.ceil(out["w"])
    assert served.variant is svt.Variant.REFRESHED
    assert (served.epsilon, served.delta) == (budget.answers_epsilon, budget.answers_delta)


def test_relabelling_costs_the_printed_parameter() -> None:
    """A public grid costs 1 on the sample, dichotomies of the rows Lemma L at 1."""
    costs = {}
    for private in (False, True):
        budget = paper_budget(
            TARGETS,
            relabel=relabelling(1),
            answers=charge(4),
            private_grid=private,
            class_count=2,
        )
        assert budget is not None
        costs[private] = budget.relabel_epsilon
    assert costs[False] == 1
    assert float(costs[True] or 0) == pytest.approx(2 * math.log1p(math.exp(0.5)))


def test_without_shares_there_is_nothing_to_divide() -> None:
    """Without answers there is no pipeline; without relabelling all of epsilon samples."""
    nothing = paper_budget(TARGETS, relabel=None, answers=None, private_grid=False, class_count=2)
    assert nothing is None
    budget = paper_budget(
        TARGETS, relabel=None, answers=charge(1), private_grid=True, class_count=2
    )
    assert budget is not None
    assert (budget.relabel_epsilon, budget.relabel_is_private) == (None, False)
    assert budget.sampling_rate == Fraction(1, 56)


@pytest.mark.parametrize(
    ("class_count", "epsilon", "fits"), [(2, "0.01", True), (4, "0.01", True), (10, "1", False)]
)
def test_many_labels_on_a_private_grid_are_checked_exactly(
    *, class_count: int, epsilon: str, fits: bool
) -> None:
    """Two labels fit at any epsilon; ten do not fit at 1, and the line says what does."""

    def ask() -> object:
        return paper_budget(
            TARGETS,
            relabel=relabelling(Fraction(epsilon) / 5),
            answers=charge(Fraction(epsilon) * 4 / 5),
            private_grid=True,
            class_count=class_count,
        )

    if fits:
        assert ask() is not None
        return
    with pytest.raises(ConfigurationError) as refused:
        ask()
    assert str(refused.value) == (
        'hypotheses.grid: "private" with 10 classes does not fit calibration paper at this '
        'epsilon: set it to "public", or privacy.epsilon higher'
    )


@pytest.mark.parametrize("delta", ["1e-20", "1e-6", "0.036"])
@pytest.mark.parametrize("beta", [1e-9, 0.05, 0.95])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
@pytest.mark.parametrize("query_count", [1, 3, 30, 10**4])
def test_printed_parameters_pass_the_check(
    query_count: int, alpha: float, beta: float, delta: str
) -> None:
    """Across the range the printed lambda and w keep the sparse vector's claim."""
    targets = PaperTargets(alpha=alpha, beta=beta, query_count=query_count)
    svt.check(paper_calibration(targets, relabel=None, answers=charge(5, delta)))


def test_much_less_noise_than_printed_would_not_pass() -> None:
    """The check that accepts the printed numbers has teeth: an eighth of lambda is not accepted."""
    served = paper_calibration(TARGETS, relabel=None, answers=charge(1))
    with pytest.raises(InvariantError):
        svt.check(replace(served, threshold_scale=served.threshold_scale / 8))
    with pytest.raises(InvariantError):
        svt.check(replace(served, threshold=served.threshold * 3 // 4))


@pytest.mark.parametrize(
    ("targets", "line"),
    [
        (
            PaperTargets(alpha=0.99, beta=1e-60, query_count=1),
            (
                "answers.beta: is so small that the printed cutoff T = 6 exceeds what the printed "
                "threshold covers at m = 1 queries: set it higher"
            ),
        ),
        (
            PaperTargets(alpha=0.9, beta=0.05, query_count=10**6),
            (
                "answers.alpha: gives a cutoff of T = 114185, and at most 100000 are accounted: "
                "set it or answers.queries lower"
            ),
        ),
    ],
)
def test_what_does_not_keep_its_claim_is_refused(targets: PaperTargets, line: str) -> None:
    """One line names what to change."""
    with pytest.raises(ConfigurationError) as refused:
        paper_calibration(targets, relabel=None, answers=charge(1))
    assert str(refused.value) == line


def test_a_budget_out_of_range_is_refused() -> None:
    """Above epsilon 5 the papers' sampling does not come out."""
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon"):
        paper_budget(
            TARGETS, relabel=relabelling(1), answers=charge(5), private_grid=False, class_count=2
        )


@pytest.mark.parametrize("row_count", [20, 1000])
@pytest.mark.parametrize("delta", [0.036, 0.0134, 1e-4, 1e-9])
def test_a_record_fills_more_rows_rarely(row_count: int, delta: float) -> None:
    """Drawn with replacement, a record stands in more than ln(2/delta) rows below delta/2."""
    most = copies_max(Fraction(str(delta)))
    tail = sum(
        math.comb(row_count, copies)
        * (1 / row_count) ** copies
        * (1 - 1 / row_count) ** (row_count - copies)
        for copies in range(most + 1, 60)
        if copies <= row_count
    )
    assert tail <= delta / 2


def test_printed_constants_need_a_share_for_answers() -> None:
    """Without one the setting is named."""
    with pytest.raises(ConfigurationError, match=r"privacy\.shares\.answers"):
        _ = replace(request().asked, answers=None).answers_charge
