"""A plan says what a configuration gives, and what to change where it cannot work."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest

from app.accounting.composition import Shares, charges
from app.accounting.profile import calibrate
from app.errors import ConfigurationError, InvariantError
from app.planning.document import exact_number, plan_document, profile_document
from app.planning.plan import best_mechanism, plan_release
from app.planning.request import PlanRequest

USUAL = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))


def request(shares: Shares = USUAL, epsilon: int = 8, **changes: object) -> PlanRequest:
    """A release that works, with a short table, and whatever a test changes of it."""
    delta = Fraction(1, 10**6)
    usual = PlanRequest(
        calibration="profile",
        row_count=20_000,
        epsilon=Fraction(epsilon),
        delta=delta,
        charges=charges(epsilon=Fraction(epsilon), delta=delta, shares=shares),
        query_count=2000,
        cutoff=5,
        ensemble_size=None,
        class_count=2,
        hypothesis_count=34**3 * 2**4,
        classifier_hypothesis_count=50**7 * 2**8,
        universal=True,
        alpha=0.1,
        beta=0.05,
    )
    return replace(usual, **changes)  # type: ignore[arg-type]  # the test names real fields


def test_usual_release_is_feasible() -> None:
    """Enough rows and epsilon make a plan with every parameter and no reason against it."""
    plan = plan_release(request())
    assert (plan.feasible, plan.reasons, plan.advice) == (True, (), ())
    assert plan.stability is not None
    assert plan.ensemble_size == 3 * (2 * plan.stability.wanted_distance + 1)
    assert plan.sampled_row_count == 20_000
    assert plan.chunk_row_count == 20_000 // plan.ensemble_size
    assert (plan.cutoff, plan.paper) == (5, None)
    assert set(plan.excess_errors) == {"relabel", "classifier"}


def test_two_thirds_are_the_agreement_that_auto_provides_for() -> None:
    """With k by the rule, two thirds of the votes lie at the distance wanted."""
    plan = plan_release(request())
    assert plan.stability is not None
    assert plan.stability.wanted_agreement == pytest.approx(2 / 3)


def test_too_few_rows_are_infeasible_and_say_what_to_change() -> None:
    """At a tiny n even unanimous votes are unstable; the plan says how many rows do."""
    plan = plan_release(request(row_count=300))
    assert not plan.feasible
    assert len(plan.reasons) == 1
    assert plan.rows_needed is not None
    assert f"n = {plan.rows_needed} rows" in plan.advice[0]
    assert plan_release(request(row_count=plan.rows_needed)).feasible


def test_advised_epsilon_is_enough() -> None:
    """The epsilon that a plan advises makes the same rows do."""
    plan = plan_release(request(row_count=1000, epsilon=2))
    assert not plan.feasible
    advised = float(plan.advice[1].rsplit(" ", 1)[1])
    scaled = request(row_count=1000, epsilon=1)
    answers = Shares(answers=Fraction(1))
    better = charges(epsilon=Fraction(str(advised)), delta=scaled.delta, shares=answers)
    assert plan_release(replace(scaled, charges=better)).feasible


def test_no_epsilon_is_advised_where_none_would_do() -> None:
    """With a handful of rows only more rows help."""
    plan = plan_release(request(row_count=10))
    assert not plan.feasible
    assert not any("epsilon" in advice for advice in plan.advice)


def test_more_chunks_than_rows_are_infeasible() -> None:
    """Every chunk needs a row."""
    plan = plan_release(request(row_count=3000, ensemble_size=3001))
    assert not plan.feasible
    assert "k = 3001 chunks" in plan.reasons[0]
    assert plan.rows_needed == 3001


def test_small_ensemble_is_advised_its_range() -> None:
    """Where the rows suffice and k does not, the plan names the k that do."""
    plan = plan_release(request(ensemble_size=21))
    assert not plan.feasible
    (advice,) = plan.advice
    assert advice.startswith("set answers.ensemble to ")
    size = int(advice.split()[3])
    assert plan_release(request(ensemble_size=size)).feasible
    assert not plan_release(request(ensemble_size=size - 1)).feasible


def test_small_ensemble_without_rows_is_advised_a_minimum() -> None:
    """Without n the advice has no upper end."""
    plan = plan_release(request(ensemble_size=21, row_count=None))
    assert not plan.feasible
    assert "or more" in plan.advice[0]


def test_unknown_rows_give_the_rows_needed() -> None:
    """Without n, k is what the votes need and nothing is held against it."""
    plan = plan_release(request(row_count=None))
    assert plan.feasible
    assert (plan.sampled_row_count, plan.chunk_row_count, plan.excess_errors) == (None, None, {})
    assert any("n is not known" in note for note in plan.notes)


def test_ensemble_below_the_rule_is_noted() -> None:
    """A k that works for clear majorities only is feasible, with the share it needs."""
    stability = plan_release(request()).stability
    assert stability is not None
    plan = plan_release(request(ensemble_size=2 * stability.wanted_distance + 5))
    assert plan.feasible
    assert any("of the votes agree" in note for note in plan.notes)


def test_small_chunks_are_noted() -> None:
    """Chunks below the rows of their class are feasible, with a word of warning."""
    plan = plan_release(request(row_count=2000, ensemble_size=200))
    assert plan.feasible
    assert any("learners will often disagree" in note for note in plan.notes)


def test_loose_bound_of_a_draw_is_noted() -> None:
    """A draw whose error bound exceeds alpha is named with its bound."""
    shares = Shares(answers=Fraction(9, 10), classifier=Fraction(1, 1000))
    plan = plan_release(request(shares))
    assert any(note.startswith("the classifier draw") for note in plan.notes)


@pytest.mark.parametrize(("queries", "noted"), [(2000, True), (10**5, False)])
def test_queries_before_the_classifier_are_weighed(*, queries: int, noted: bool) -> None:
    """Fewer public points than the guarantee asks for are noted."""
    plan = plan_release(request(query_count=queries))
    assert plan.public_query_count == 35_590
    assert any("m_o = 35590" in note for note in plan.notes) is noted


def test_without_answers_there_is_no_ensemble() -> None:
    """A zero share of answers starts with what follows them."""
    plan = plan_release(request(Shares(classifier=Fraction(1))))
    assert plan.feasible
    assert (plan.ensemble_size, plan.cutoff, plan.stability) == (None, None, None)
    assert "starts with what follows" in plan.notes[0]


@pytest.mark.parametrize(
    ("queries", "cutoff", "best"),
    [
        (184, 5, "noisy-vote"),
        (185, 5, "stability"),
        (349, 20, "noisy-vote"),
        (2000, 20, "stability"),
    ],
)
def test_noisy_vote_wins_with_few_queries(queries: int, cutoff: int, best: str) -> None:
    """A noisy vote wins below about 130 + 11 T queries."""
    assert best_mechanism(query_count=queries, cutoff=cutoff) == best


def test_better_mechanism_is_noted() -> None:
    """A release that a noisy vote would serve with fewer votes says so."""
    assert any("noisy vote" in note for note in plan_release(request(query_count=50)).notes)


def test_paper_says_how_many_rows_it_would_take() -> None:
    """Calibration paper is infeasible on ordinary data, by a stated factor."""
    shares = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))
    asked = request(shares, epsilon=1, calibration="paper")
    plan = plan_release(asked)
    assert not plan.feasible
    assert plan.paper is not None
    assert plan.ensemble_size == plan.paper.ensemble_size
    assert plan.sampled_row_count == 250
    needed = plan.rows_needed
    assert needed is not None
    assert f"n = {needed} rows" in plan.advice[0]
    assert plan_release(replace(asked, row_count=needed)).feasible
    assert not plan_release(replace(asked, row_count=needed - 1)).feasible
    assert "relabel" not in plan.excess_errors


def test_paper_without_rows_is_not_judged() -> None:
    """Without n the paper's plan gives the n that it takes."""
    shares = Shares(answers=Fraction(1))
    plan = plan_release(request(shares, epsilon=1, calibration="paper", row_count=None))
    assert plan.feasible
    assert (plan.sampled_row_count, plan.chunk_row_count) == (None, None)
    assert any("n is not known" in note for note in plan.notes)


def test_paper_refuses_a_budget_that_it_does_not_cover() -> None:
    """The range of the papers' argument is kept."""
    with pytest.raises(ConfigurationError, match=r"privacy\.epsilon"):
        plan_release(request(calibration="paper"))


@pytest.mark.parametrize(
    "change",
    [
        {"row_count": 0},
        {"ensemble_size": 0},
        {"query_count": 0},
        {"cutoff": 0},
        {"alpha": 1.0},
        {"beta": 0.0},
        {"hypothesis_count": 0},
    ],
)
def test_requests_out_of_range_are_refused(change: dict[str, float]) -> None:
    """Planning is asked about releases that the settings let through."""
    with pytest.raises(InvariantError):
        replace(request(), **change)  # type: ignore[arg-type]  # the test names real fields


@pytest.mark.parametrize("calibration", ["profile", "paper"])
def test_document_is_json_with_every_parameter(calibration: str) -> None:
    """The JSON form has the parameters by their symbols, the charges and the verdict."""
    plan = plan_release(request(epsilon=4, calibration=calibration))
    document = json.loads(msgspec.json.encode(plan_document(plan)))
    assert document["feasible"] is plan.feasible
    assert document["k"] == plan.ensemble_size
    assert document["T"] == plan.cutoff
    assert document["m_o"] == 2000
    assert [charge["mechanism"] for charge in document["charges"]] == [
        "relabel",
        "answers",
        "classifier",
    ]
    assert (document["table"] is None) is (calibration == "paper")
    assert (document["paper"] is None) is (calibration == "profile")


def test_document_of_a_table_reads_back_exactly() -> None:
    """Alpha and ln R are the very numbers that serve, read as doubles or as decimals."""
    table = calibrate(epsilon=Fraction(4), delta=Fraction(1, 10**6), cutoff=2)
    encoded = msgspec.json.encode(profile_document(table))
    for read in (float, Decimal):
        document = json.loads(encoded, parse_float=read)
        assert Fraction(document["alpha"]) == table.alpha
        assert Fraction(document["lnR"]) == table.ln_ratio
    assert [int(threshold) for threshold in document["threshold"]] == list(table.thresholds)
    assert len(document["hit_probability"]) == len(table.thresholds)
    assert document["word_bits"] == 64


@pytest.mark.parametrize(
    ("value", "text"),
    [(Fraction(3), b"3.0"), (Fraction(5, 4), b"1.25"), (Fraction(1, 8), b"0.125")],
)
def test_exact_number_has_all_of_its_decimals(value: Fraction, text: bytes) -> None:
    """A binary fraction is written with all of its decimals."""
    assert bytes(exact_number(value)) == text


def test_exact_number_refuses_what_has_no_end() -> None:
    """A third has no exact decimal form."""
    with pytest.raises(InvariantError):
        exact_number(Fraction(1, 3))
