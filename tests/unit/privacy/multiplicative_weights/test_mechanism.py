"""Query release: runs worked by hand, and tables against exact answers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.enumerated.boxes import Axis, box_class, box_dichotomies
from app.learning.statistics_tables.representative_domain import (
    Projection,
    RepresentativeDomain,
    product_domain,
    representative_axes,
)
from app.noise.scripted import ScriptedNoise, seeded_words
from app.privacy.multiplicative_weights.calibration import (
    QueryReleaseBudget,
    calibrate,
    calibrate_accuracy,
)
from app.privacy.multiplicative_weights.mechanism import Parameters, Table, draw
from tests.builders.mechanisms.prescribed import NOTHING
from tests.builders.mechanisms.releasing import (
    CELL_COUNT,
    ROW_COUNT,
    counts_of,
    prescribed,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.enumerated.boxes import Boxes

HALVES = ((0, 1),)


@pytest.mark.parametrize(
    ("query_noise", "threshold_noise", "hit"),
    [(4, 0, False), (3, 0, True), (2, 0, True), (0, -4, False), (0, -3, True), (5, 1, False)],
)
def test_a_test_fails_at_an_error_beyond_its_threshold(
    query_noise: int, threshold_noise: int, *, hit: bool
) -> None:
    """With 9 of 10 rows labelled 1, the uniform law errs by 4, and the test is against 1."""
    given = prescribed(
        labels=HALVES,
        row_count=10,
        thresholds=(1,),
        query_noise=[query_noise],
        threshold_noise=[threshold_noise],
        answer_noise=[-2],
    )
    expected = Table(10, (7,), 1, 1) if hit else Table(10, (5,), 0, 1)
    assert draw(given, counts_of((1, 9)), NOTHING) == expected


@pytest.mark.parametrize(("answer_noise", "count"), [(-11, 0), (-10, 0), (-9, 0), (1, 10), (9, 10)])
def test_a_count_is_of_none_to_all_rows(answer_noise: int, count: int) -> None:
    """An answer beyond what there can be is clipped."""
    given = prescribed(
        labels=HALVES, row_count=10, query_noise=[-99], answer_noise=[answer_noise], thresholds=(1,)
    )
    assert draw(given, counts_of((1, 9)), NOTHING).counts == (count,)


@pytest.mark.parametrize("answer", [2, 7, 29, 38])
def test_an_update_moves_the_law_to_the_answer(answer: int) -> None:
    """Where noise is nothing to speak of, the law gives the query what was answered."""
    given = prescribed(
        labels=[(0, 0, 1, 1), (0, 0, 1, 1)],
        thresholds=(1,),
        query_noise=[-99, 99],
        answer_noise=[0],
    )
    table = draw(given, counts_of((40 - answer, 0, answer, 0)), NOTHING)
    assert table == Table(ROW_COUNT, (answer, answer), 1, 1)


@pytest.mark.parametrize(
    ("answer", "test_deviation", "answer_deviation", "moved"),
    [
        (38, 0, 3, 35),  # the answer proves 15 rows, the test 9.5
        (38, 0, 12, 30),  # the answer proves 6 rows and the test 9.5: 29.5, to even
        (38, 2, 12, 28),  # the test proves 7.5: 27.5, to even
        (2, 0, 3, 5),
        (2, 2, 12, 12),
    ],
)
def test_an_update_moves_the_law_as_far_as_is_proven(
    answer: int, test_deviation: int, answer_deviation: int, moved: int
) -> None:
    """The law goes to where the answer, or the test against 10, says that the truth is at least."""
    given = prescribed(
        labels=[(0, 0, 1, 1), (0, 0, 1, 1)],
        thresholds=(10,),
        query_noise=[-99, 99],
        answer_noise=[0],
        test_deviation=test_deviation,
        answer_deviation=answer_deviation,
    )
    table = draw(given, counts_of((40 - answer, 0, answer, 0)), NOTHING)
    assert table.counts == (answer, moved)


def test_an_update_moves_other_queries_with_it() -> None:
    """Weight goes from the cells of label 0 to those of label 1, in proportion."""
    given = prescribed(
        labels=[(0, 0, 1, 1), (0, 1, 0, 1), (1, 0, 0, 0)],
        thresholds=(1,),
        query_noise=[-99, 99, 99],
        answer_noise=[0],
    )
    # Half of the rows, a quarter of them, then the law's for 36 of 40 in the last cells.
    assert draw(given, counts_of((4, 0, 0, 36)), NOTHING).counts == (36, 20, 2)


@pytest.mark.parametrize("answer_noise", [-(10**6), 10**6])
def test_an_answer_that_is_far_off_leaves_the_law_finite(answer_noise: int) -> None:
    """Noise beyond all bounds moves the law to within a quarter of a row of its end."""
    given = prescribed(
        labels=[(0, 0, 1, 1), (0, 0, 1, 1), (1, 1, 1, 1)],
        thresholds=(1,),
        query_noise=[-99, 99, 99],
        answer_noise=[answer_noise],
    )
    end = 0 if answer_noise < 0 else ROW_COUNT
    assert draw(given, counts_of(), NOTHING).counts == (end, end, ROW_COUNT)


@pytest.mark.parametrize("label", [0, 1])
def test_a_constant_query_is_answered_by_the_law(label: int) -> None:
    """All rows or none are labelled 1; if noise fails its test all the same, nothing breaks."""
    labels = [(label,) * 4, (0, 0, 1, 1)]
    passing = prescribed(labels=labels, query_noise=[0, 99])
    assert draw(passing, counts_of(), NOTHING).counts == (label * ROW_COUNT, 20)
    failing = prescribed(labels=labels, query_noise=[-99, 99], answer_noise=[0])
    assert draw(failing, counts_of(), NOTHING).counts == (label * ROW_COUNT, 20)


def test_passes_test_what_has_no_answer_yet() -> None:
    """A query with an answer of its own is left out of the passes that follow."""
    given = prescribed(
        thresholds=(9, 5),
        query_noise=[99, -99, 99, 99, 99, 99, 99],
        answer_noise=[1],
    )
    table = draw(given, counts_of(), NOTHING)
    assert (table.update_count, table.pass_count) == (1, 2)


def test_the_last_update_ends_the_tests() -> None:
    """After U failed tests nothing is tested; what was noted stays and the law gives the rest."""
    given = prescribed(
        thresholds=(9, 5), updates=2, query_noise=[99, -99, -99], answer_noise=[0, 0]
    )
    # The order of four is 0, 3 (a step of 3), 2, 1: query 3 and 2 fail, 1 is never tested.
    table = draw(given, counts_of(), NOTHING)
    assert (table.update_count, table.pass_count) == (2, 0)
    assert table.counts[0] == 30
    assert table.counts[3] == 25
    assert table.counts[2] == 0


def test_an_update_that_is_the_last_test_completes_its_pass() -> None:
    """The pass in which the last query used the last update counts as complete."""
    given = prescribed(labels=HALVES, row_count=10, updates=1, query_noise=[-99], answer_noise=[0])
    assert draw(given, counts_of((1, 9)), NOTHING) == Table(10, (9,), 1, 1)
    again = prescribed(
        labels=HALVES,
        row_count=10,
        thresholds=(2, 1),
        updates=1,
        query_noise=[-99],
        answer_noise=[0],
    )
    assert draw(again, counts_of((1, 9)), NOTHING) == Table(10, (9,), 1, 2)


def test_a_refreshed_threshold_draws_its_noise_again() -> None:
    """After a failed test the next one is against noise of its own."""
    given = prescribed(
        thresholds=(1,),
        threshold_noise=[0, -99, 0],
        query_noise=[-30, -30, -30, -30],
        answer_noise=[0],
        refreshed=True,
    )
    assert draw(given, counts_of(), NOTHING).update_count == 1


@pytest.mark.parametrize("query_count", [1, 2, 3, 5, 8, 13, 100])
def test_every_query_is_tested_once_a_pass(query_count: int) -> None:
    """Whatever their number, all queries come up, in an order that jumps about."""
    labels = [(0, 1)] * query_count
    given = prescribed(
        labels=labels, thresholds=(3, 2), query_noise=[99] * (2 * query_count), row_count=10
    )
    assert draw(given, counts_of((5, 5)), NOTHING) == Table(10, (5,) * query_count, 0, 2)


def test_a_count_reads_as_a_mean_between_minus_one_and_one() -> None:
    """No row labelled 1 is -1, half of them 0 and all of them +1."""
    table = Table(10, (0, 5, 9, 10), 0, 1)
    assert [table.expectation(index) for index in range(4)] == [-1, 0, Fraction(4, 5), 1]


@pytest.mark.parametrize(
    "cells",
    [(25, 9, 6), (25, 9, 6, 0, 0), (25, 9, 6, 1), (24, 9, 6, 0), (26, 9, 6, -1)],
)
def test_counts_of_other_rows_or_cells_are_refused(cells: Sequence[int]) -> None:
    """What is not n rows in C cells raises before anything is drawn."""
    noise = ScriptedNoise([])
    with pytest.raises(InvariantError):
        draw(prescribed(threshold_noise=()), counts_of(cells), noise)


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": table_of()[0]},
        {"labels": table_of([[]])},
        {"labels": table_of([[0, 2]])},
        {"row_count": 0},
        {"thresholds": ()},
        {"thresholds": (5, 5)},
        {"thresholds": (4, 5)},
        {"thresholds": (5,), "test_deviation": 5},
        {"answer_deviation": -1},
        {"test_deviation": -1},
    ],
)
def test_parameters_that_prove_nothing_are_refused(changes: dict[str, object]) -> None:
    """Tables that are none, passes that do not descend and bad deviations raise."""
    with pytest.raises(InvariantError):
        replace(prescribed(), **changes)  # type: ignore[arg-type]  # each has its own type


def test_a_threshold_of_the_tests_own_is_refused() -> None:
    """The sparse vector's threshold is 0: the pass's is part of the value."""
    given = prescribed()
    with pytest.raises(InvariantError, match="own threshold"):
        replace(given, test=replace(given.test, threshold=1))


# --- Against exact answers ---------------------------------------------------------

ROWS = 20_000
POINTS = np.array([[0.1, 2.0], [0.2, 6.0], [0.35, 4.0], [0.5, 9.0], [0.7, 3.0], [0.9, 7.0]])


def private_rows() -> NDArray[np.float64]:
    """Return rows of two features that depend on each other, some missing."""
    generator = np.random.default_rng(5)
    first = generator.beta(2, 5, ROWS)
    second = np.where(
        generator.random(ROWS) < 0.05, np.nan, 10 * first + generator.normal(0, 1, ROWS)
    )
    return np.stack([first, second], axis=1)


def released_domain() -> tuple[Boxes, RepresentativeDomain]:
    """Return H~ of the rectangles on public points, and its cells; no private row goes in."""
    hypotheses = box_dichotomies("rectangles", POINTS, [0, 1])
    references = {axis.feature_index: axis.cuts.tolist() for axis in hypotheses.axes}
    return hypotheses, product_domain(hypotheses, representative_axes(references, 2))


def test_every_count_is_as_near_the_exact_one_as_its_pass_says() -> None:
    """On 20,000 rows of a small joint law, over ten draws, no promise fails."""
    hypotheses, domain = released_domain()
    encoded = hypotheses.encode(private_rows())
    cells = domain.private_cell_count(encoded)
    exact = hypotheses.predict(encoded).sum(axis=1, dtype=np.int64)
    given = QueryReleaseBudget(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        row_count=ROWS,
        query_count=len(hypotheses),
        cell_count=domain.cell_count,
        failure=Fraction(1, 1000),
    )
    served = calibrate(given, update_count=12)
    parameters = Parameters.calibrated(served, domain.labels)
    for seed in range(10):
        table = draw(parameters, cells, ScriptedNoise(seeded_words(seed)))
        assert 1 <= table.update_count <= 12
        assert table.pass_count >= 1
        reached = served.thresholds[table.pass_count - 1] + served.test_deviation
        errors = np.abs(np.array(table.counts) - exact)
        assert errors.max() <= reached
        assert errors.mean() < ROWS / 25


def test_an_accuracy_that_lasts_is_kept_for_the_whole_class() -> None:
    """Where alpha is promised, all passes are made and each mean is within alpha / 2 of exact."""
    labels = np.triu(np.ones((9, 10), dtype=np.uint8), 1)
    cells = np.array([10**6 * weight for weight in (1, 0, 7, 2, 0, 0, 5, 3, 1, 1)], dtype=np.int64)
    given = QueryReleaseBudget(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        row_count=int(cells.sum()),
        query_count=9,
        cell_count=10,
        failure=Fraction(1, 10**6),
    )
    served = calibrate_accuracy(given, accuracy=Fraction(1, 5))
    parameters = Parameters.calibrated(served, labels)
    table = draw(parameters, cells, ScriptedNoise(seeded_words(1)))
    assert table.pass_count == len(served.thresholds)
    for index, count in enumerate((labels @ cells).tolist()):
        exact = Fraction(2 * count, served.row_count) - 1
        assert abs(table.expectation(index) - exact) <= Fraction(1, 10)


def test_a_calibration_of_other_cells_is_refused() -> None:
    """A table of labels that the noise was not calibrated for raises."""
    given = QueryReleaseBudget(
        epsilon=Fraction(1),
        delta=Fraction(1, 10**6),
        row_count=ROW_COUNT,
        query_count=4,
        cell_count=5,
        failure=Fraction(1, 10),
    )
    with pytest.raises(InvariantError, match="calibrated for"):
        Parameters.calibrated(calibrate(given, update_count=1), table_of())


def test_any_hypothesis_of_the_class_is_answered_by_projection() -> None:
    """A box with cuts of its own gets the count of the one that agrees on the public points."""
    hypotheses, _ = released_domain()
    projection = Projection(hypotheses, hypotheses.encode(POINTS))
    axes = [
        Axis(0, np.array([0.3, 0.6]), np.array([0.6, 0.3])),
        Axis(1, np.array([5.5]), np.array([0.5])),
    ]
    asked = box_class("rectangles", axes).hypotheses
    table = Table(ROWS, tuple(range(len(hypotheses))), 0, 1)
    for labels in asked.predict(asked.encode(POINTS)).astype(np.uint8):
        index = projection.index_of(labels)
        assert np.array_equal(hypotheses.predict(hypotheses.encode(POINTS))[index], labels)
        assert table.expectation(index) == Fraction(2 * index, ROWS) - 1


def test_the_domain_holds_cells_that_no_row_is_in() -> None:
    """All cells have weight from the start: with no failed test they share the rows evenly."""
    _, domain = released_domain()
    single = np.zeros(domain.cell_count, dtype=np.int64)
    single[3] = ROW_COUNT
    spread = np.zeros(domain.cell_count, dtype=np.int64)
    spread[[5, 17]] = ROW_COUNT // 2
    tables = [
        draw(
            prescribed(labels=domain.labels.tolist(), query_noise=[10**6] * len(domain.labels)),
            cells,
            NOTHING,
        )
        for cells in (single, spread)
    ]
    assert tables[0] == tables[1]
    shares = domain.labels.sum(axis=1, dtype=np.int64) / domain.cell_count
    assert list(tables[0].counts) == [round(ROW_COUNT * float(share)) for share in shares]


def test_a_row_moved_to_an_empty_cell_is_answered_alike() -> None:
    """A private point outside all occupied cells changes its counts by one, and no cell."""
    cells = list(CELL_COUNT)
    cells[0], cells[3] = cells[0] - 1, cells[3] + 1
    words = [-99, 99, 99, 99]
    tables = [
        draw(prescribed(query_noise=words, answer_noise=[0]), counts_of(each), NOTHING)
        for each in (CELL_COUNT, cells)
    ]
    # The answer moves by one, and the law that follows from it with the answer alone.
    assert [table.counts[0] for table in tables] == [15, 16]
    for one, other in zip(tables[0].counts, tables[1].counts, strict=True):
        assert abs(one - other) <= 1
