"""Plans of releases that decide each public cell once, for two decisions."""

from __future__ import annotations

from typing import Any

import pytest

from app.planning.output.plan_document import plan_document
from app.planning.output.short_plan import answers_line
from app.planning.plan import Plan, plan_release
from app.planning.request import PlanRequest
from app.privacy.budget.ensemble_size import approximate_decisions
from app.privacy.noisy_vote.cell_vote_table import DecisionNoise, DecisionVotes
from app.privacy.stability.cell_table import DecisionTable
from tests.builders.schema.plan_requests import asking, request

CELLS = 24


def cells(**changes: Any) -> PlanRequest:
    """Return a request over cells, with as many answers as there are cells."""
    asked: dict[str, Any] = {
        "cell_count": CELLS,
        "counts_decisions": True,
        "targets": asking(CELLS),
        **changes,
    }
    return request(**asked)


def notes(plan: Plan) -> str:
    """Return all notes of a plan."""
    return "\n".join(plan.notes)


def test_a_plan_of_cells_has_no_cutoff() -> None:
    """The table is for two decisions, T is null, and T is no lever."""
    plan = plan_release(cells())
    assert isinstance(plan.answers.calibration, DecisionTable)
    assert (plan.feasible, plan.answers.cutoff, plan.changes) == (True, None, ())
    document = plan_document(plan)
    assert (document["T"], document["cells"], document["decisions_moved"]) == (None, CELLS, 2)
    assert "any number of them may be unstable" in str(document["summary"])


def test_more_answers_than_cells_are_warned_of() -> None:
    """The ensemble never ends then, and nothing follows it; as many as there are is fine."""
    assert "never" not in notes(plan_release(cells()))
    plan = plan_release(cells(targets=asking(CELLS + 1)))
    assert f"answers.queries = {CELLS + 1} is more than the {CELLS} cells" in notes(plan)
    assert "the classifier never follows" in notes(plan)
    assert "Nothing ends it" in str(plan_document(plan)["summary"])
    told = answers_line(plan.request)
    assert told.endswith(f"than the {CELLS} cells there are: set it to {CELLS} or less for an end.")
    assert "classifier" not in told
    assert "then one published classifier answers" in answers_line(cells())


@pytest.mark.parametrize(("classes", "kind"), [(2, DecisionVotes), (3, DecisionNoise)])
def test_a_noisy_vote_of_cells_is_alike_for_any_number(classes: int, kind: type) -> None:
    """It is calibrated for two answers, however many are asked."""
    few, many = (
        plan_release(
            cells(mechanism="noisy-vote", class_count=classes, targets=asking(number))
        ).answers
        for number in (2, 10**6)
    )
    assert isinstance(many.calibration, kind)
    assert many.calibration == few.calibration
    assert many.noisy_lead is not None
    calibration = many.noisy_lead.calibration
    lead = many.noisy_lead.wanted_lead
    assert (calibration.answers_within(lead - 1), calibration.answers_within(lead)) == (0, 10**18)


def test_too_few_rows_are_advised_without_a_cutoff() -> None:
    """The advice names rows, one a learner, and no T; so many rows do."""
    plan = plan_release(cells(row_count=5))
    assert not plan.feasible
    assert not any("cutoff" in line for line in (*plan.answers.reasons, *plan.answers.advice))
    needed = plan.answers.rows_needed
    assert needed is not None
    assert needed == plan_release(cells(row_count=needed)).answers.ensemble_size
    assert plan_release(cells(row_count=needed)).feasible


def test_a_plan_in_doubles_is_the_one_that_serves() -> None:
    """The table of plots is the one of a release, to one in ten thousand."""
    served = plan_release(cells()).answers.calibration
    assert isinstance(served, DecisionTable)
    quick = approximate_decisions(epsilon=served.epsilon, delta=served.delta)
    for distance in range(len(served.thresholds)):
        exact = served.hit_probability(distance)
        assert quick.hit_probability(distance) == pytest.approx(exact, rel=1e-4)


def test_the_chance_of_an_unstable_cell_is_said_in_words() -> None:
    """With many learners it is one in a number, and with few a share."""
    assert "one in" in str(plan_document(plan_release(cells()))["summary"])
    assert "%" in str(plan_document(plan_release(cells(row_count=5)))["summary"])
