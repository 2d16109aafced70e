"""What a plan predicts and recommends, tried out on made-up people."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.planning.output.prediction_sentences import prediction_words
from app.planning.plan import plan_release
from app.planning.trial.agreement import try_out
from app.planning.trial.forecast import Forecast
from app.planning.trial.made_up_records import ColumnLaw, MadeUpRules, Population
from app.planning.trial.prediction import as_printed
from app.planning.trial.recommendation import CUTOFFS, Choice, picked, recommend, with_shares
from app.planning.trial.run_trial import predict
from app.planning.trial.trial_size import SECONDS_OWN, Trial, extent_of, is_quick
from app.privacy.budget.composition import Mechanism, Shares
from app.privacy.mechanisms import MECHANISMS
from tests.builders.schema.plan_requests import USUAL, request

if TYPE_CHECKING:
    from app.planning.request import PlanRequest

SHARES = (0.8, 0.5, 0.2)
TESTS = tuple(
    BinaryTest(feature_index=index, cut=1.0, category_code=None, public_frequency=share)
    for index, share in enumerate(SHARES)
)
CELLS = CellClass(splits=CellSplits((TESTS[1], TESTS[0]), ((1, ~0), (~1, ~2))), class_count=2)
LAWS = tuple(ColumnLaw(edges=(0.0, 1.0, 2.0), shares=(1 - share, share)) for share in SHARES)
LEARNER = Learner(
    hypothesis_class=hypothesis_class(ClassAsked(kind="trees", tests=TESTS, depth=2, class_count=2))
)
TRIAL = Trial(
    population=Population(LAWS),
    learner=LEARNER,
    tests=tuple((f"test {index}", min(share, 1 - share)) for index, share in enumerate(SHARES)),
    hypothesis_count=3,
)

MANY_TESTS = tuple(
    BinaryTest(feature_index=0, cut=float(cut), category_code=None, public_frequency=0.5)
    for cut in range(60)
)


def of_many_tests(depth: int) -> Trial:
    """Learners of trees over sixty tests: those of depth 4 take too long to be tried out."""
    asked = ClassAsked(kind="trees", tests=MANY_TESTS, depth=depth, class_count=2)
    learner = Learner(hypothesis_class=hypothesis_class(asked))
    return replace(TRIAL, learner=learner, hypothesis_count=None)


SLOW = of_many_tests(4)


def rules_of(learner: Learner, population: Population) -> MadeUpRules:
    """What relabels 4,000 rows with a tenth of epsilon 1."""
    return MadeUpRules(learner.hypothesis_class, population, 0.1, 4000)


def small(epsilon: int = 8, shares: Shares = USUAL, **changes: object) -> PlanRequest:
    """A release whose class has three tests, and whatever a test changes of it."""
    size = 3**3 * 2**4
    usual = request(shares, epsilon)
    sized = replace(usual, hypothesis_count=size, relabel_hypothesis_count=size, ensemble_size=400)
    return replace(sized, **changes)  # type: ignore[arg-type]  # the test names real fields


def test_learners_agree_where_their_chunk_has_a_row_of_every_leaf() -> None:
    """A stump whose rarer side holds r rows of a chunk gets ``1 - e^-r`` of the votes there."""
    share, rows = 0.1, 10
    test = BinaryTest(feature_index=0, cut=1.0, category_code=None, public_frequency=share)
    stumps = Learner(
        hypothesis_class=hypothesis_class(
            ClassAsked(kind="stumps", tests=(test,), depth=1, class_count=2)
        )
    )
    rare = Population((ColumnLaw(edges=(0.0, 1.0, 2.0), shares=(1 - share, share)),))
    learners, rules = 400, 8
    found = try_out(
        rules_of(stumps, rare),
        stumps,
        chunk_row_count=rows,
        learner_count=learners,
        hypothesis_count=rules,
    )
    # A chunk without such a row, or, less often, with such rows alone, votes one label.
    right = 1 - (1 - share) ** rows
    least = found.leads.min(axis=1)
    assert found.learner_count == learners
    # Five standard errors of the mean of 3,200 votes.
    error = 5 * 2 * math.sqrt(right * (1 - right) / (learners * rules))
    assert least.mean() == pytest.approx(2 * right - 1, abs=error)


def test_what_is_tried_out_is_the_same_every_time() -> None:
    """Nothing but public seeds is drawn from."""
    first, second = (
        try_out(
            rules_of(LEARNER, TRIAL.population),
            LEARNER,
            chunk_row_count=9,
            learner_count=8,
            hypothesis_count=2,
        )
        for _ in "12"
    )
    assert np.array_equal(first.leads, second.leads)


def test_what_is_tried_out_has_as_many_rows_as_learners_are_trained_on() -> None:
    """A trial of a sample of nine rows of each chunk is one of chunks of nine rows."""
    of_nine, sampled = (
        try_out(
            rules_of(LEARNER, TRIAL.population),
            learner,
            chunk_row_count=rows,
            learner_count=8,
            hypothesis_count=2,
        )
        for learner, rows in ((LEARNER, 9), (replace(LEARNER, rows_max=9), 90))
    )
    assert np.array_equal(of_nine.leads, sampled.leads)


def test_learners_of_a_row_lead_in_a_cell_by_its_people() -> None:
    """Over cells the lead is the cell's share of the learners, and no leaf divides them."""
    cells = Learner(hypothesis_class=CELLS)
    found = try_out(
        rules_of(cells, TRIAL.population),
        cells,
        chunk_row_count=1,
        learner_count=20_000,
        hypothesis_count=2,
    )
    # Cells hold a half of the people, and of the others four fifths and a fifth: 0.1.
    for row in found.leads:
        assert sorted({round(lead, 1) for lead in row.tolist()}) == [0.1, 0.4, 0.5]
    planned = plan_release(small(ensemble_size=20_000))
    predicted = predict(planned, replace(TRIAL, learner=cells))
    assert predicted is not None
    assert predicted.cliff is None
    assert predicted.best is not None
    assert predicted.best.worst == predicted.best.forecast.low


def test_public_points_are_as_uncertain_as_their_number() -> None:
    """Few points are drawn anew for every rule, so that leads differ from rule to rule."""
    points = Population(LAWS).rows(50, b"points")
    cells = Learner(hypothesis_class=CELLS)
    found = try_out(
        rules_of(cells, Population(LAWS, points)),
        cells,
        chunk_row_count=1,
        learner_count=5000,
        hypothesis_count=9,
    )
    # Shares of 50 points scatter by 0.07, where 5,000 learners scatter by 0.007.
    assert found.leads.max(axis=1).std() > 0.02


def test_a_plan_predicts_every_mechanism() -> None:
    """Each that serves at the budget has its labels, and the papers' own has too few rows."""
    planned = plan_release(small())
    found = predict(planned, TRIAL)
    assert found is not None
    assert set(found.by_mechanism) == {*planned.calibrations, "paper"}
    assert found.by_mechanism["paper"] is None
    assert found.by_mechanism["profile"] is not None
    # All are nearly m here, and a mean of three numbers is rounded.
    nearly_equal = 1 + 1e-12
    assert found.own.low <= found.own.mean * nearly_equal
    assert found.own.mean <= found.own.high <= planned.request.query_count
    assert found.own.mean == pytest.approx(found.by_mechanism["profile"].mean)
    assert (found.hypothesis_count, found.with_points) == (3, False)


def test_what_is_recommended_gives_no_fewer_labels_than_what_is_planned() -> None:
    """The planned k and T are among what is compared, at shares that are not worse."""
    planned = plan_release(small(cutoff=3))
    found = predict(planned, TRIAL)
    assert found is not None
    assert found.best is not None
    assert found.best.forecast.mean >= 0.9 * found.own.mean
    # The noisy vote of two labels has no cutoff.
    assert found.best.cutoff in {*CUTOFFS, 3, None}
    assert found.best.relabel_share + found.best.answers_share == Fraction(7, 10)
    # Labels are made up with chance in them, and a rule still knows more than their likeliest.
    assert found.best.accuracy is not None
    assert found.best.likeliest is not None
    assert 0.5 <= found.best.likeliest < found.best.accuracy < 1


def test_relabelling_is_given_the_least_share_that_is_enough() -> None:
    """With many rows a twentieth is enough, with few rows more, and the sum stays."""
    shares = {}
    for rows in (20_000, 700):
        changed = with_shares(small(1, row_count=rows))
        relabel, answers = changed.charge(Mechanism.RELABEL), changed.charge(Mechanism.ANSWERS)
        assert relabel is not None
        assert answers is not None
        assert relabel.epsilon + answers.epsilon == Fraction(7, 10)
        shares[rows] = relabel.epsilon
    assert shares[20_000] == Fraction(1, 20) < shares[700]


def test_samples_and_unknown_rows_keep_their_shares() -> None:
    """Where shares mean something else, or n is not known, they are left alone."""
    for asked in (request(rate="1/2"), request(row_count=None)):
        assert with_shares(asked) is asked


def test_nothing_is_recommended_for_rows_that_feed_no_chunk() -> None:
    """With fewer rows than learners at any budget there is no choice to try."""
    assert recommend(small(row_count=20, ensemble_size=None), TRIAL) is None


def test_nothing_is_recommended_where_nothing_can_be_tried() -> None:
    """Without rows, with learners that take too long, or with too little of epsilon for a table."""
    assert recommend(small(row_count=None), TRIAL) is None
    assert recommend(small(), SLOW) is None
    shares = Shares(relabel=Fraction(1, 10**4), answers=Fraction(1, 10**4))
    assert recommend(small(1, shares=shares), TRIAL) is None


def test_nothing_is_predicted_where_nothing_can_be_tried() -> None:
    """Neither without a number of rows, nor where learners take too long."""
    assert predict(plan_release(small(row_count=None)), TRIAL) is None
    assert predict(plan_release(small()), SLOW) is None


def test_printed_parameters_are_weighed_where_rows_feed_them() -> None:
    """The papers' own constants give a forecast for a thousand million rows, and none for few."""
    paper, profile = MECHANISMS["paper"], MECHANISMS["profile"]
    agreement = try_out(
        rules_of(LEARNER, TRIAL.population),
        LEARNER,
        chunk_row_count=20,
        learner_count=9,
        hypothesis_count=1,
    )
    many = as_printed(paper, small(1, row_count=10**9), agreement)
    assert many is not None
    assert many.mean > 0
    assert as_printed(paper, small(1), agreement) is None
    assert as_printed(paper, small(row_count=None), agreement) is None
    assert as_printed(profile, small(row_count=10**9), agreement) is None


def test_time_is_bounded_by_public_numbers() -> None:
    """A quick learner is tried on more than a slow one, and an endless one not at all."""
    free = replace(TRIAL, hypothesis_count=None)
    quick, few = (
        extent_of(free, chunk_row_count=20),
        extent_of(of_many_tests(3), chunk_row_count=20),
    )
    assert quick is not None
    assert few is not None
    assert quick.hypothesis_count * quick.learner_count > few.hypothesis_count * few.learner_count
    assert extent_of(SLOW, chunk_row_count=20) is None
    asked = extent_of(replace(SLOW, hypothesis_count=3), chunk_row_count=20)
    assert asked is not None
    assert asked.hypothesis_count == 3
    less = extent_of(free, chunk_row_count=20, seconds_max=SECONDS_OWN / 8)
    assert less is not None
    assert less.hypothesis_count * less.learner_count < quick.hypothesis_count * quick.learner_count


def test_an_estimator_is_tried_where_all_chunks_are_fitted_at_once() -> None:
    """Logistic regression is, and a nearest neighbour takes nobody knows how long."""
    columns = (PublicColumn(bounds=(0.0, 2.0)),) * len(SHARES)
    paths = ("sklearn.linear_model.LogisticRegression", "sklearn.neighbors.KNeighborsClassifier")
    learners = [replace(LEARNER, estimator=path, columns=columns) for path in paths]
    assert [is_quick(learner) for learner in learners] == [True, False]
    tried = try_out(
        rules_of(learners[0], TRIAL.population),
        learners[0],
        chunk_row_count=20,
        learner_count=9,
        hypothesis_count=1,
    )
    assert tried.leads.max() == 1
    logistic = replace(TRIAL, learner=learners[0], hypothesis_count=None)
    assert extent_of(logistic, chunk_row_count=20) is not None


def test_words_say_what_to_do_and_why_nothing_is_said() -> None:
    """The expectation, the risk, the advice and what is better; or a reason."""
    planned = plan_release(small(1, learner_at_once="linear"))
    quick = replace(TRIAL, hypothesis_count=1)
    assert prediction_words(planned) == ()
    reason = replace(planned, unpredicted="the number of rows is not given")
    assert prediction_words(reason) == ("Not predicted: the number of rows is not given.",)
    told = replace(planned, prediction=predict(planned, quick))
    words = prediction_words(told)
    assert "made up by public shares" in words[0]
    assert words[-2].startswith("Recommended: ")
    assert "conclave learn" in words[-1]
    points = replace(quick, population=Population(LAWS, np.ones((3, 3))))
    estimator = replace(planned, request=replace(planned.request, with_estimator=True))
    words = prediction_words(replace(estimator, prediction=predict(planned, points)))
    assert "the public points" in words[0]
    assert "cannot be listed" in words[-1]


def test_the_pick_is_what_gives_most_of_the_best_and_safety_breaks_equal_parts_alone() -> None:
    """A part that is all but a twentieth gives way, however well its worst leaf does."""

    def choice(cutoff: int, labels: list[float], worst: float) -> Choice:
        return Choice(
            mechanism="profile",
            ensemble_size=100,
            chunk_row_count=10,
            cutoff=cutoff,
            relabel_share=Fraction(1, 10),
            answers_share=Fraction(9, 10),
            forecast=Forecast(np.array(labels), None),
            worst=worst,
        )

    most, safe = choice(1, [1000, 1000], 10), choice(50, [999, 960], 900)
    assert picked([most, safe]) is most
    assert picked([safe, most]) is most
    equal = choice(5, [1000, 1000], 20)
    assert picked([most, equal]) is equal
