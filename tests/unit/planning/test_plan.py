"""A plan says what a configuration gives, and what to change where it cannot work."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from unittest.mock import ANY

import msgspec
import pytest

from app.errors import ConfigurationError, InvariantError
from app.planning.mechanisms.planning_table import best_mechanism
from app.planning.mechanisms.stability_plan import exact_number, profile_document
from app.planning.output.plan_document import plan_document
from app.planning.output.short_plan import accuracy_line
from app.planning.plan import plan_release
from app.privacy.budget.composition import Mechanism, Shares, charges
from app.privacy.budget.sampled_budget import pipeline_budget
from app.privacy.stability.hit_table import calibrate
from tests.builders.schema.plan_requests import TARGETS, asking, request


def test_usual_release_is_feasible() -> None:
    """Enough rows and epsilon make a plan with every parameter and no reason against it."""
    plan = plan_release(request())
    assert (plan.feasible, plan.answers.reasons, plan.answers.advice) == (True, (), ())
    found = plan.answers
    assert found.stability is not None
    assert found.ensemble_size == 3 * (2 * found.stability.wanted_distance + 1)
    assert plan.request.sampled_row_count == 20_000
    assert found.chunk_row_count == 20_000 // found.ensemble_size
    assert (found.cutoff, found.paper, found.noisy_lead) == (5, None, None)
    assert set(plan.excess_errors) == {"relabel", "classifier"}


def test_two_thirds_are_the_agreement_that_auto_provides_for() -> None:
    """With k by the rule, two thirds of the votes lie at the distance wanted."""
    plan = plan_release(request())
    assert plan.answers.stability is not None
    assert plan.answers.stability.wanted_agreement == pytest.approx(2 / 3)


def test_too_few_rows_are_infeasible_and_say_what_to_change() -> None:
    """At a tiny n even unanimous votes are unstable; the plan says how many rows do."""
    plan = plan_release(request(row_count=300))
    assert not plan.feasible
    assert len(plan.answers.reasons) == 1
    assert plan.answers.rows_needed is not None
    assert f"n = {plan.answers.rows_needed} rows" in plan.answers.advice[0]
    assert plan_release(request(row_count=plan.answers.rows_needed)).feasible


def test_advised_epsilon_is_enough() -> None:
    """The epsilon that a plan advises makes the same rows do."""
    plan = plan_release(request(row_count=1000, epsilon=2))
    assert not plan.feasible
    advised = float(plan.answers.advice[1].rsplit(" ", 1)[1])
    scaled = request(row_count=1000, epsilon=1)
    answers = Shares(answers=Fraction(1))
    (better,) = charges(epsilon=Fraction(str(advised)), delta=scaled.delta, shares=answers)
    budget = pipeline_budget(relabel=None, answers=better)
    assert plan_release(replace(scaled, charges=(better,), budget=budget)).feasible


@pytest.mark.parametrize("calibration", ["profile", "certified", "svt"])
def test_no_epsilon_is_advised_where_none_would_do(calibration: str) -> None:
    """With a handful of rows only more rows help; an epsilon without a table is not tried."""
    plan = plan_release(request(row_count=10, calibration=calibration))
    assert not plan.feasible
    assert not any("epsilon" in advice for advice in plan.answers.advice)


def test_more_chunks_than_rows_are_infeasible() -> None:
    """Every chunk needs a row."""
    plan = plan_release(request(row_count=3000, ensemble_size=3001))
    assert not plan.feasible
    assert "k = 3001 chunks" in plan.answers.reasons[0]
    assert plan.answers.rows_needed == 3001


def test_small_ensemble_is_advised_its_range() -> None:
    """Where the rows suffice and k does not, the plan names the k that do."""
    plan = plan_release(request(ensemble_size=21))
    assert not plan.feasible
    (advice,) = plan.answers.advice
    assert advice.startswith("set answers.ensemble to ")
    size = int(advice.split()[3])
    assert plan_release(request(ensemble_size=size)).feasible
    assert not plan_release(request(ensemble_size=size - 1)).feasible


def test_small_ensemble_without_rows_is_advised_a_minimum() -> None:
    """Without n the advice has no upper end."""
    plan = plan_release(request(ensemble_size=21, row_count=None))
    assert not plan.feasible
    assert "or more" in plan.answers.advice[0]


def test_unknown_rows_give_the_rows_needed() -> None:
    """Without n, k is what the votes need and nothing is held against it."""
    plan = plan_release(request(row_count=None))
    assert plan.feasible
    assert (plan.request.sampled_row_count, plan.answers.chunk_row_count, plan.excess_errors) == (
        None,
        None,
        {},
    )
    assert any("n is not known" in note for note in plan.notes)


def test_ensemble_below_the_rule_is_noted() -> None:
    """A k that works for clear majorities only is feasible, with the share it needs."""
    stability = plan_release(request()).answers.stability
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


def test_a_classifier_without_a_bound_says_why_it_has_no_estimate() -> None:
    """A linear score is not drawn from a list of rules, and no theorem bounds its errors."""
    drawn = request(Shares(classifier=Fraction(1)))
    linear = replace(drawn, classifier_hypothesis_count=None, learner="linear")
    (note,) = set(plan_release(linear).notes) - set(plan_release(drawn).notes)
    assert note.startswith('the published classifier, learner "linear": no accuracy is estimated,')
    assert note in accuracy_line(linear, classes=("no", "yes"), label_shares=None)
    unknown = replace(linear, row_count=None)
    assert note not in plan_release(unknown).notes


@pytest.mark.parametrize(("queries", "noted"), [(2000, True), (10**5, False)])
def test_queries_before_the_classifier_are_weighed(*, queries: int, noted: bool) -> None:
    """Fewer public points than the guarantee asks for are noted."""
    plan = plan_release(request(targets=asking(queries)))
    assert plan.public_query_count == 35_590
    assert any("m_o = 35590" in note for note in plan.notes) is noted


def test_without_answers_there_is_no_ensemble() -> None:
    """A zero share of answers starts with what follows them."""
    plan = plan_release(request(Shares(classifier=Fraction(1))))
    assert plan.feasible
    assert (plan.answers.ensemble_size, plan.answers.cutoff, plan.answers.stability) == (
        None,
        None,
        None,
    )
    assert "starts with what follows" in plan.notes[0]


@pytest.mark.parametrize(
    ("queries", "cutoff", "best"),
    [(50, 5, "noisy-vote"), (1000, 5, "profile"), (50, 20, "noisy-vote"), (5000, 20, "profile")],
)
def test_the_mechanism_that_needs_the_fewest_votes_is_computed(
    queries: int, cutoff: int, best: str
) -> None:
    """A noisy vote wins with few queries, a stability test with many."""
    plan = plan_release(request(targets=asking(queries), cutoff=cutoff))
    assert plan.best == best
    assert min(plan.votes_needed, key=plan.votes_needed.__getitem__) == best
    assert set(plan.votes_needed) == {"profile", "svt one-threshold", "svt refreshed", "noisy-vote"}
    assert plan.votes_needed["profile"] == (plan.answers.ensemble_size if queries > 50 else ANY)


def test_better_mechanism_is_noted() -> None:
    """A release that another mechanism would serve with fewer votes says which, and the k."""
    notes = plan_release(request(targets=asking(50))).notes
    assert any(note.startswith("with so few queries a noisy vote") for note in notes)
    notes = plan_release(request(calibration="svt")).notes
    assert any(note.startswith("calibration profile would need fewer votes") for note in notes)
    notes = plan_release(request(mechanism="noisy-vote")).notes
    assert any(note.startswith("the stability test of profile would") for note in notes)


def test_a_mechanism_without_parameters_is_left_out() -> None:
    """A cutoff beyond what is compared leaves the noisy vote alone."""
    plan = plan_release(request(mechanism="noisy-vote", cutoff=10**9))
    assert set(plan.votes_needed) == {"noisy-vote"}
    assert plan.best == "noisy-vote"
    assert best_mechanism({}) is None


# -- what follows, and scores --------------------------------------------------------------


def test_a_student_is_charged_nothing() -> None:
    """A plan with a student has the charges of one without, and says that it costs nothing."""
    plain, taught = plan_release(request()), plan_release(request(with_student=True))
    assert taught.request.charges == plain.request.charges
    assert set(taught.notes) - set(plain.notes) == {
        "a student is trained on the answers alone: it is charged nothing"
    }


def test_a_bin_needs_the_distance_of_a_label() -> None:
    """With two thirds of k = 3 (2 d + 1) scores in one bin it is at distance d or farther."""
    plan = plan_release(request(with_scores=True))
    assert plan.answers.stability is not None
    distance = plan.answers.stability.wanted_distance
    size = 3 * (2 * distance + 1)
    assert -(-size // 6) - 1 >= distance
    (note,) = set(plan.notes) - set(plan_release(request()).notes)
    assert note.startswith(f"a bin worth releasing is at distance {distance}: k = {size} learners")
    assert "an unstable score takes two of the 5 units" in note


def test_scores_without_answers_have_no_distance() -> None:
    """Where the ensemble has no share nothing is said of bins."""
    shares = Shares(classifier=Fraction(1))
    assert "bin" not in " ".join(plan_release(request(shares, with_scores=True)).notes)


# -- calibration paper -------------------------------------------------------------------


def test_paper_says_how_many_rows_it_would_take() -> None:
    """Calibration paper is infeasible on ordinary data, by a stated factor."""
    shares = Shares(relabel=Fraction(1, 10), answers=Fraction(6, 10), classifier=Fraction(3, 10))
    asked = request(shares, epsilon=1, calibration="paper")
    plan = plan_release(asked)
    assert not plan.feasible
    assert plan.answers.paper is not None
    assert plan.answers.ensemble_size == plan.answers.paper.ensemble_size
    assert plan.request.sampled_row_count == 250
    needed = plan.answers.rows_needed
    assert needed is not None
    assert f"n = {needed} rows" in plan.answers.advice[0]
    assert plan_release(replace(asked, row_count=needed)).feasible
    assert not plan_release(replace(asked, row_count=needed - 1)).feasible
    assert plan.excess_errors[Mechanism.RELABEL] > 0
    assert plan.relabel_parameter == 1


def test_paper_with_fewer_chunks_is_planned_as_given() -> None:
    """A k of one's own may fit the sample; whether votes get through is weighed as ever."""
    plan = plan_release(request(epsilon=1, calibration="paper", ensemble_size=100))
    assert plan.answers.ensemble_size == 100
    assert not plan.feasible
    assert "even if all k = 100 votes agree" in plan.answers.reasons[0]
    assert any("the printed k" in advice for advice in plan.answers.advice)


def test_paper_without_rows_is_not_judged() -> None:
    """Without n the paper's plan gives the n that it takes."""
    shares = Shares(answers=Fraction(1))
    plan = plan_release(request(shares, epsilon=1, calibration="paper", row_count=None))
    assert plan.feasible
    assert (plan.request.sampled_row_count, plan.answers.chunk_row_count) == (None, None)
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
        {"targets": asking(0)},
        {"dimension": -1},
        {"relabel_hypothesis_count": 0},
        {"cutoff": 0},
        {"targets": replace(TARGETS, alpha=1.0)},
        {"targets": replace(TARGETS, beta=0.0)},
        {"hypothesis_count": 0},
    ],
)
def test_requests_out_of_range_are_refused(change: dict[str, object]) -> None:
    """Planning is asked about releases that the settings let through."""
    with pytest.raises(InvariantError):
        replace(request(), **change)  # type: ignore[arg-type]  # the test names real fields


@pytest.mark.parametrize("calibration", ["profile", "paper"])
def test_document_is_json_with_every_parameter(calibration: str) -> None:
    """The JSON form has the parameters by their symbols, the charges and the verdict."""
    plan = plan_release(request(epsilon=4, calibration=calibration))
    document = json.loads(msgspec.json.encode(plan_document(plan)))
    assert document["feasible"] is plan.feasible
    assert document["k"] == plan.answers.ensemble_size
    assert document["T"] == plan.answers.cutoff
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
