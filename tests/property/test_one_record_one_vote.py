"""One record, one vote: whatever record is replaced, at most one learner of k moves.

A record with copies in a resample of calibration paper moves at most one learner a
copy.  Each planted fault at the end breaks the same property, which must notice.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.data.rows import PrivateRows
from app.noise.scripted import ScriptedNoise
from app.privacy.multiplicative_weights import mechanism as multiplicative_weights
from app.privacy.soft_labels.mechanism import histogram
from app.privacy.voting.votes import aggregate
from app.release import drawing as draw_ensemble
from app.release.classifier.drawn_student import publish_student
from app.release.private_state import RESAMPLE
from app.release.statistics.statistics_table import statistics_draw
from app.release.terms.configuration import configure
from tests.builders.release.small_release import (
    STABLE,
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    ask,
    private_rows,
    seeded_noise,
)
from tests.builders.release.student_release import STUDENT
from tests.builders.release.student_release import TREE as TREE_STUDENT
from tests.property.one_record import (
    DOUBLES,
    QUERIES,
    RECORDS,
    SOURCES,
    Case,
    Neighbors,
    both,
    capped,
    copies,
    estimator,
    learners,
    neighbors,
    read,
    rule,
    scored,
    settings_of,
    votes,
)
from tests.property.planted_chunk_faults import (
    in_two_chunks,
    sampled_by_content,
    scaled_on_all_rows,
    stratified,
    with_one_class_state,
    with_one_generator,
    without_duplicates,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble
    from app.release.statistics.statistics_table import StatisticsDraw

EXAMPLES = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
TREE = estimator("sklearn.tree.DecisionTreeClassifier", '{"max_depth": 2}')
BAYES = estimator("sklearn.naive_bayes.GaussianNB")
NEAREST = estimator("sklearn.neighbors.KNeighborsClassifier", '{"n_neighbors": 1}')
FINITE = Case.of(
    "finite",
    {
        "hypotheses__class": "finite",
        "hypotheses__predictors": json.dumps(
            [
                f"tests.builders.learners.row_predictors:{name}"
                for name in ("large", "of_group_a", "never")
            ]
        ),
    },
)
# What the private grid draws is the rows' own labelling; a fixed one takes its place.
PRIVATE_GRID = Case.of(
    "private grid, relabelled",
    {"hypotheses__class": "thresholds", "hypotheses__grid": "private"},
    relabels=True,
)
CASES = [
    rule("canonical"),
    rule("halving"),
    rule("canonical", relabels=True),
    rule("halving", relabels=True),
    rule("canonical", "thresholds"),
    rule("canonical", "intervals"),
    rule("halving", "intervals", relabels=True),
    rule("canonical", "halfspaces"),
    rule("halving", "halfspaces"),
    rule("canonical", "stumps"),
    rule("halving", "stumps", relabels=True),
    rule("canonical", "rectangles", relabels=True),
    rule("halving", "rectangles"),
    FINITE,
    PRIVATE_GRID,
    TREE,
    estimator("sklearn.tree.DecisionTreeClassifier", '{"max_depth": 2}', relabels=True),
    BAYES,
    NEAREST,
    capped(NEAREST),
    capped(estimator("sklearn.naive_bayes.GaussianNB", relabels=True)),
    capped(FINITE),
    estimator("sklearn.linear_model.LogisticRegression"),
    estimator("sklearn.discriminant_analysis.LinearDiscriminantAnalysis"),
    estimator("sklearn.ensemble.RandomForestClassifier", '{"n_estimators": 3}'),
    estimator(f"{DOUBLES}.FailsOnOddChunks"),
    estimator(f"{DOUBLES}.DrawsToPredict"),
]
CELLS = Case.of(
    "cells",
    {
        "hypotheses__class": "cells",
        "hypotheses__cells": json.dumps(
            ["number >= 0.5", "group = a", "", "", "size >= 5", "", ""]
        ),
    },
    relabels=True,
)
CALIBRATIONS = [
    Case.of("svt", {"privacy__calibration": "svt"}, relabels=True),
    Case.of("noisy-vote", {"answers__mechanism": "noisy-vote"}),
    Case.of("three labels", {"data__classes": '["no", "yes", "maybe"]'}),
]
PAPER = {
    "privacy__calibration": "paper",
    "privacy__epsilon": "5",
    "privacy__delta": "0.036",
    "privacy__shares__relabel": "0.2",
    "privacy__shares__answers": "0.8",
    "privacy__shares__classifier": "0",
    "answers__after": "halt",
    "answers__queries": "2",
    "answers__alpha": "0.9",
    "answers__beta": "0.5",
    "answers__ensemble": "100",
    "hypotheses__class": "thresholds",
}


def moved(one: Ensemble, other: Ensemble) -> NDArray[np.int64]:
    """Return the learners of which some vote differs."""
    return np.flatnonzero((votes(one) != votes(other)).any(axis=1))


def check_one_vote(case: Case, pair: Neighbors, source: str = "csv") -> None:
    """Replace the record: only learners that hold it move, and what serves moves by one a copy."""
    one, other = both(case, pair, source=source)
    allowed = copies(pair, one.pieces)
    assert len(allowed) <= 1 or RESAMPLE in one.pieces
    assert np.count_nonzero(row_differences(one.rows, other.rows)) <= 1
    differing = moved(one.ensemble, other.ensemble)
    assert len(differing) <= len(allowed)
    assert set(differing) <= set(allowed.tolist())
    counts = [each.ensemble.vote_counts(QUERIES) for each in (one, other)]
    assert np.abs(counts[0] - counts[1]).sum(axis=1).max() <= 2 * len(allowed)
    check_distance(*counts, moves=len(allowed))
    alone = sum(each.vote_counts(QUERIES) for each in learners(one.ensemble))
    assert np.array_equal(counts[0], alone)


def row_differences(one: PrivateRows, other: PrivateRows) -> NDArray[np.bool_]:
    """Tell for every row whether its encoding or its label differs."""
    same = (one.values == other.values) | (np.isnan(one.values) & np.isnan(other.values))
    differs: NDArray[np.bool_] = ~same.all(axis=1) | (one.labels != other.labels)
    return differs


def check_distance(one: NDArray[np.int64], other: NDArray[np.int64], *, moves: int = 1) -> None:
    """Check Lemma S on every row: distances by one a move, and 0 where one changes the winner."""
    (first, before), (second, after) = aggregate(one), aggregate(other)
    assert np.abs(before - after).max() <= moves
    if moves <= 1:
        assert not (before + after)[first != second].any()


@pytest.mark.parametrize("case", CASES + CALIBRATIONS, ids=lambda case: case.name)
@EXAMPLES
@given(pair=neighbors(), source=st.sampled_from(SOURCES))
def test_one_record_moves_one_vote(case: Case, pair: Neighbors, source: str) -> None:
    """At most the one learner moves in whose chunk the record lies, whatever the source."""
    check_one_vote(case, pair, source)


@pytest.mark.parametrize("rule_name", ["canonical", "halving"])
@EXAMPLES
@given(pair=neighbors())
def test_a_resample_moves_a_vote_a_copy(rule_name: str, pair: Neighbors) -> None:
    """In calibration paper a record moves no more learners than the resample holds copies."""
    check_one_vote(Case.of("paper", {**PAPER, "learner__rule": rule_name}, relabels=True), pair)


@EXAMPLES
@given(pair=neighbors(), source=st.sampled_from(SOURCES))
def test_one_record_moves_one_vote_in_every_cell(pair: Neighbors, source: str) -> None:
    """Learners over cells are kept as sums of votes: each cell's moves by one, as Lemma S says."""
    one, other = both(CELLS, pair, source=source)
    counts = [each.ensemble.vote_counts(QUERIES) for each in (one, other)]
    assert np.abs(counts[0] - counts[1]).sum(axis=1).max() <= 2
    check_distance(*counts)


def test_a_resample_holds_copies() -> None:
    """Of a record drawn into several chunks, the property allows each, and no more is needed."""
    pair = Neighbors(
        records=((0.2, 1.0, "a", "no"), (0.8, 1.0, "a", "yes")) * 6,
        place=0,
        replacement=(0.2, 1.0, "a", "yes"),
        sampled=12,
        chunk_count=12,
        seed=0,
    )
    case = Case.of("paper", PAPER)
    pairs = [replace(pair, seed=seed) for seed in range(20)]
    openings = [both(case, each) for each in pairs]
    held = [copies(each, one.pieces) for each, (one, _) in zip(pairs, openings, strict=True)]
    assert {0, 1, 2} <= set(map(len, held))
    for (one, other), chunks in zip(openings, held, strict=True):
        # With one row a chunk, every chunk that holds a copy votes its new label.
        assert moved(one.ensemble, other.ensemble).tolist() == chunks.tolist()


# -- scores, statistics, student ---------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        scored(rule("canonical")),
        scored(rule("halving", relabels=True)),
        scored(rule("canonical", "intervals")),
        scored(TREE),
        scored(BAYES),
    ],
    ids=lambda case: case.name,
)
@EXAMPLES
@given(pair=neighbors(), bin_count=st.sampled_from([2, 3, 10, 1000]))
def test_one_record_moves_one_score(case: Case, pair: Neighbors, bin_count: int) -> None:
    """One learner's scores move; either histogram loses one and gains one, as Lemma S says."""
    one, other = both(case, pair)
    before, after = one.ensemble.scores(QUERIES), other.ensemble.scores(QUERIES)
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    assert set(np.flatnonzero(~same.all(axis=0))) <= set(copies(pair, one.pieces).tolist())
    for shifted in (False, True):
        counts = [
            np.array([histogram(scores, bin_count, shifted=shifted) for scores in found])
            for found in (before, after)
        ]
        assert np.abs(counts[0] - counts[1]).sum(axis=1).max() <= 2
        check_distance(*counts)


STATISTICS_ROWS = 12
STATISTICS = {
    "privacy__shares__relabel": "0.1",
    "privacy__shares__answers": "0.3",
    "privacy__shares__classifier": "0.1",
    "privacy__shares__statistics": "0.5",
    "hypotheses__class": "thresholds",
}


@cache
def table_draw() -> StatisticsDraw:
    """Return the draw of a table that the queries fix."""
    configuration = configure(settings_of(STATISTICS))
    return statistics_draw(configuration, QUERIES, row_count=STATISTICS_ROWS)


def cell_counts(pair_records: Sequence[Any], source: str) -> NDArray[np.int64]:
    """Return the private counts that the mechanism is given."""
    given: list[NDArray[np.int64]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiplicative_weights, "draw", lambda _, counts, __: given.append(counts))
        table_draw().draw(read(pair_records, source), seeded_noise())
    return given[0]


@EXAMPLES
@given(
    records=st.lists(RECORDS, min_size=STATISTICS_ROWS, max_size=STATISTICS_ROWS),
    replacement=RECORDS,
    place=st.integers(0, STATISTICS_ROWS - 1),
    source=st.sampled_from(SOURCES),
)
def test_one_record_moves_two_cells_by_one(
    records: list[Any], replacement: Any, place: int, source: str
) -> None:
    """A replaced record leaves one private cell and enters one; nothing else is counted."""
    before = cell_counts(records, source)
    after = cell_counts([*records[:place], replacement, *records[place + 1 :]], source)
    assert before.sum() == after.sum() == STATISTICS_ROWS
    change = after - before
    assert sorted(change[change != 0].tolist()) in ([], [-1, 1])


@pytest.mark.parametrize("changes", [STUDENT, {**STUDENT, **TREE_STUDENT}], ids=["rule", "tree"])
@settings(EXAMPLES, max_examples=3)
@given(place=st.integers(0, 59), margin=st.floats(-50, 50), label=st.sampled_from([0, 1]))
def test_one_record_moves_no_student(
    changes: dict[str, str], place: int, margin: float, label: int
) -> None:
    """Given the same answers, the student is the same to the byte."""
    rows = private_rows()
    values, labels = rows.values.copy(), rows.labels.copy()
    values[place, 0], labels[place] = margin, label
    others = PrivateRows(values=values, labels=labels)
    assert published_student(changes, rows) == published_student(changes, others)


def published_student(changes: dict[str, str], rows: PrivateRows) -> bytes:
    """Open a release, let it give four answers, and return what it publishes."""
    with tempfile.TemporaryDirectory() as folder:
        release = SmallRelease(Path(folder), changes).open(rows=rows)
        release.private_ensemble = VotesByMargin()
        answerer = RowAnswerer(release, ScriptedNoise([STABLE] * 4))
        answerer.answer_batch([ask(margin) for margin in (-30, -1, 1, 30)])
        publish_student(answerer.release)
        release.ledger.close()
        assert answerer.release.classifier is not None
        return answerer.release.classifier.json


# -- planted faults ----------------------------------------------------------------


def check_at_most_one(case: Case, pair: Neighbors) -> None:
    """Replace the record: at most one learner moves, whichever it is."""
    one, other = both(case, pair, source="npz")
    assert len(moved(one.ensemble, other.ensemble)) <= 1


@pytest.mark.parametrize(
    ("fault", "case"),
    [
        (scaled_on_all_rows, rule("canonical")),
        (scaled_on_all_rows, TREE),
        (without_duplicates, rule("canonical")),
        (stratified, rule("canonical")),
        (in_two_chunks, rule("canonical")),
        (sampled_by_content, capped(NEAREST)),
        (with_one_generator, rule("halving")),
        (with_one_class_state, estimator(f"{DOUBLES}.CarriesOn")),
    ],
    ids=lambda each: each.name if isinstance(each, Case) else each.__name__,
)
def test_a_planted_fault_is_caught(fault: Callable[..., Ensemble], case: Case) -> None:
    """Each fault moves two votes or more by one record, in a pair of tables that is drawn."""

    @settings(max_examples=200, phases=[Phase.explicit, Phase.generate], report_multiple_bugs=False)
    @given(pair=neighbors(rows_min=4, rows_max=8, chunks_min=2))
    def at_fault(pair: Neighbors) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(draw_ensemble, "fit_ensemble", fault)
            check_at_most_one(case, pair)

    with pytest.raises(AssertionError):
        at_fault()
