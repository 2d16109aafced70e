"""How many labels a calibration gives, by how widely the learners agree."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import ConfigurationError
from app.planning.capacity import AGREEMENTS
from app.planning.curves import panels, values
from app.planning.mechanisms.planning_table import capacity
from app.planning.output.count_format import count
from app.planning.output.plan_sentences import summary
from app.planning.plan import plan_release
from app.planning.variants import Lever, changed, labels_at, levers
from app.privacy.budget.ensemble_size import HIT_PROBABILITY_MAX, approximate_profile
from app.privacy.noisy_vote import calibration as noisy_vote
from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile
from app.privacy.stability import mechanism as stability
from app.privacy.voting.votes import tally
from tests.builders.release.small_release import seeded_noise
from tests.builders.schema.plan_requests import asking, request

DELTA = Fraction(1, 10**6)
TABLE = profile.calibrate(epsilon=Fraction(4), delta=DELTA, cutoff=5)
HALF = Fraction(1, 2)


def no_progress(done: int, total: int) -> None:
    """Show nothing."""
    del done, total


def test_the_mean_is_that_of_runs_of_the_mechanism() -> None:
    """Runs of the serving step on votes of one agreement give as many labels as are planned."""
    import numpy as np

    size = 100
    found = capacity(TABLE, ensemble_size=size, agreement=Fraction(4, 5))
    assert found.unstable_probability is not None
    (value,) = tally(np.array([[80, 20]]))
    assert value.distance == found.distance
    parameters = stability.Parameters(TABLE.thresholds, TABLE.cutoff)
    noise, runs, labels = seeded_noise(11), 3000, 0
    for _ in range(runs):
        state = stability.initial_state(parameters, noise)
        while state.hit_count < parameters.cutoff:
            state, hit = stability.step(parameters, state, value.distance, noise)
            labels += not hit
    # A run's labels are negative binomial: variance T (1 - p) / p^2. Five standard errors
    # are missed once in 1.7 million seeds; this one is fixed.  `labels` is rounded down.
    probability = found.unstable_probability
    error = math.sqrt(TABLE.cutoff * (1 - probability) / probability**2 / runs)
    assert abs(labels / runs - found.labels) < 5 * error + 1


@pytest.mark.parametrize("size", [1, 2, 3, 100, 101])
def test_the_distance_is_that_of_the_votes(size: int) -> None:
    """A share of k votes for one label, the others for one other, lies where a tally says."""
    import numpy as np

    for agreement in AGREEMENTS:
        first = math.floor(agreement * size)
        (value,) = tally(np.array([[first, size - first]]))
        found = capacity(TABLE, ensemble_size=size, agreement=agreement)
        assert found.distance == (value.distance if 2 * first > size else 0)


def test_labels_leave_out_what_is_unstable() -> None:
    """T answers carry no label: where every query is unstable, none is given."""
    found = capacity(TABLE, ensemble_size=1, agreement=Fraction(1))
    assert (found.answers, found.labels) == (TABLE.cutoff, 0)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_noisy_vote_serves_as_many_as_its_noise_lets_win(classes: int) -> None:
    """With the m that is planned the lead is wide enough, and with a percent more it is not."""
    calibrate = partial(noisy_vote.calibrate, epsilon=Fraction(1), delta=DELTA, class_count=classes)
    found = capacity(calibrate(answer_limit=50), ensemble_size=1000, agreement=Fraction(9, 10))
    assert found.answers == found.labels > 10
    enough = calibrate(answer_limit=found.labels)
    assert enough.lead_at(HIT_PROBABILITY_MAX) <= found.lead
    more = calibrate(answer_limit=math.ceil(1.01 * found.labels))
    assert more.lead_at(HIT_PROBABILITY_MAX) > found.lead


@pytest.mark.parametrize(
    ("epsilon", "cutoff"), [(Fraction(1, 2), 5), (Fraction(2), 100), (Fraction(10), 1)]
)
def test_the_quick_table_is_the_one_that_serves(epsilon: Fraction, cutoff: int) -> None:
    """In doubles every probability is within a ten-thousandth of itself of the integers'."""
    quick = approximate_profile(epsilon=epsilon, delta=DELTA, cutoff=cutoff)
    exact = profile.calibrate(epsilon=epsilon, delta=DELTA, cutoff=cutoff, is_by_cutoff=True)
    for distance in range(len(exact.thresholds)):
        probability = exact.hit_probability(distance)
        assert quick.hit_probability(distance) == pytest.approx(probability, rel=1e-4)
    assert abs(quick.distance_at(1e-3) - exact.distance_at(1e-3)) <= 1


def test_a_table_that_is_too_long_for_a_look_is_refused() -> None:
    """A tiny epsilon has no quick table, rather than a wrong one."""
    with pytest.raises(ConfigurationError, match="12000 entries"):
        approximate_profile(epsilon=Fraction(1, 100), delta=DELTA, cutoff=20)


@settings(max_examples=30)
@given(st.fractions(min_value=HALF, max_value=1), st.fractions(min_value=HALF, max_value=1))
def test_learners_that_agree_more_give_no_fewer_labels(one: Fraction, other: Fraction) -> None:
    """Labels grow with the agreement, for every mechanism."""
    low, high = sorted((one, other))
    served = {"epsilon": Fraction(2), "delta": DELTA}
    for calibration in (
        TABLE,
        svt.calibrate(**served, cutoff=5),
        noisy_vote.calibrate(**served, answer_limit=10, class_count=2),
    ):
        few = capacity(calibration, ensemble_size=150, agreement=low)
        many = capacity(calibration, ensemble_size=150, agreement=high)
        assert few.labels <= many.labels


@pytest.mark.parametrize("lever", [Lever.EPSILON, Lever.CUTOFF, Lever.ROWS])
def test_a_change_is_what_a_plan_of_it_says(lever: Lever) -> None:
    """What a lever is said to give is what planning with its other value gives."""
    planned = request(epsilon=2, cutoff=4)
    value = {Lever.EPSILON: 4, Lever.CUTOFF: 8, Lever.ROWS: 9000}[lever]
    other = changed(planned, lever, Fraction(value))
    direct = {
        Lever.EPSILON: request(epsilon=4, cutoff=4),
        Lever.CUTOFF: request(epsilon=2, cutoff=8),
        Lever.ROWS: request(epsilon=2, cutoff=4, row_count=9000),
    }[lever]
    assert other == direct
    for each in plan_release(direct).capacities:
        assert labels_at(other, each.agreement) == pytest.approx(each.labels, rel=1e-3, abs=1)


def test_the_levers_are_those_of_the_mechanism() -> None:
    """A noisy vote and calibration paper have no T to set; no answers, no lever."""
    assert levers(request()) == (Lever.EPSILON, Lever.CUTOFF, Lever.ROWS)
    assert levers(request(mechanism="noisy-vote")) == (Lever.EPSILON, Lever.ROWS)
    assert levers(request(calibration="paper", epsilon=1)) == (Lever.EPSILON, Lever.ROWS)
    assert levers(request(budget=None)) == ()


def test_more_learners_than_rows_give_nothing() -> None:
    """Where k is a number, fewer rows than that make no release."""
    assert labels_at(request(ensemble_size=500, row_count=499), Fraction(1)) is None
    assert labels_at(request(ensemble_size=500, row_count=500), Fraction(1)) is not None


def test_paper_is_swept_with_its_own_cutoff() -> None:
    """Calibration paper has curves along epsilon and n; out of its range it has no point."""
    found = panels(
        request(calibration="paper", epsilon=1, row_count=10**9),
        rows_needed=None,
        progress=no_progress,
    )
    assert [panel.lever for panel in found] == [Lever.EPSILON, Lever.ROWS]
    assert any(point.labels for point in found[1].curves[0].points)


def test_curves_pass_through_the_plan() -> None:
    """The planned value is on every axis, and its point is what the plan's own table says."""
    told: list[tuple[int, int]] = []
    planned = request(epsilon=2, cutoff=4)
    found = panels(
        planned, rows_needed=None, progress=lambda done, total: told.append((done, total))
    )
    assert told[-1][0] == told[-1][1] == len(told)
    capacities = plan_release(planned).capacities
    for panel in found:
        assert panel.planned is not None
        for curve, each in zip(panel.curves, capacities, strict=True):
            grid = [point.value for point in curve.points]
            assert grid == sorted(set(grid))
            (middle,) = [point for point in curve.points if point.value == panel.planned]
            assert middle.labels == pytest.approx(each.labels, rel=1e-3, abs=1)


def test_rows_that_are_not_known_are_turned_around_those_needed() -> None:
    """Without n its axis spans what a release like this needs, and marks no plan."""
    found = panels(request(row_count=None), rows_needed=5000, progress=no_progress)
    (rows,) = [panel for panel in found if panel.lever is Lever.ROWS]
    assert rows.planned is None
    assert rows.curves[0].points[0].value == 500


def test_whole_numbers_stay_whole() -> None:
    """T and n are counts, given once each, however small."""
    assert values(Lever.CUTOFF, Fraction(1))[0] == 1
    assert all(each.denominator == 1 for each in values(Lever.ROWS, Fraction(777)))


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (1234, "1,234"), (5_600_000, "5.6 million"), (2 * 10**9, "2 billion")],
)
def test_counts_are_written_as_people_say_them(number: int, words: str) -> None:
    """Thousands have commas, millions a name."""
    assert count(number) == words


def test_past_counting_a_power_of_ten_is_written() -> None:
    """No name stands for what is more than a thousand trillion."""
    assert count(3 * 10**15) == "3.0e+15"


def test_the_words_of_a_release_that_works() -> None:
    """Rows and learners, answers, what follows, and which mechanism: in this order."""
    lines = summary(plan_release(request()))
    assert lines[0].startswith("This release works on 20,000 rows at epsilon 8: k = ")
    assert lines[1].startswith("Where nine learners in ten agree, all m = 2,000 queries are")
    assert lines[2].startswith("After answer m one published classifier answers, without limit;")
    assert lines[3].startswith('"profile" takes the fewest votes')
    assert "planning does not read" in lines[-1]


def test_the_words_of_a_release_that_does_not_work() -> None:
    """It says so first, that no label is given, and what doubling a setting would give."""
    lines = summary(plan_release(request(row_count=500, on_cutoff="classifier")))
    assert lines[0] == "This release does not work on 500 rows at epsilon 8 as configured."
    assert "before unstable answer T = 5 ends the ensemble" in lines[1]
    assert lines[2] == "Then one published classifier answers, without limit."
    (more,) = [line for line in lines if line.startswith("For more")]
    assert "with epsilon 16" in more
    assert "with 1,000 rows" in more


def test_the_words_without_n_or_answers() -> None:
    """Without n the rows that it takes are named; without answers, what answers instead."""
    assert summary(plan_release(request(row_count=None)))[0].startswith("The number of rows is not")
    (only,) = summary(plan_release(request(budget=None)))
    assert only.startswith("No ensemble answers: one published classifier answers")


def test_the_words_of_a_noisy_vote() -> None:
    """Every query gets a label; another mechanism that suits better is named with its votes."""
    few = summary(plan_release(request(mechanism="noisy-vote", targets=asking(10))))
    assert few[1].startswith("All m = 10 queries get a label.")
    assert few[3].startswith('"noisy-vote" takes the fewest votes')
    many = summary(plan_release(request(mechanism="noisy-vote")))
    assert many[3].startswith('"noisy-vote" does not take the fewest votes')
    assert 'and "profile"' in many[3]


def test_what_is_past_counting_is_a_bound() -> None:
    """A sparse vector whose hits are rarer than a double can say has a finite count."""
    calibration = svt.calibrate(epsilon=Fraction(100), delta=DELTA, cutoff=5)
    found = capacity(calibration, ensemble_size=10**6, agreement=Fraction(1))
    assert found.answers == 10**18
