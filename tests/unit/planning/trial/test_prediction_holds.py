"""Releases of rows that have a hypothesis of their own give what was predicted, within two."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.ensemble import Learner, fit_ensemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.agreement import try_out
from app.planning.trial.forecast import expected_answers
from app.planning.trial.made_up_records import ColumnLaw, MadeUpRules, Population
from app.privacy.budget.ensemble_size import approximate_profile
from app.privacy.voting.votes import aggregate
from tests.builders.release.small_release import seeded_noise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.budget.ensemble_size import ApproximateProfile

ROWS, LIMIT, TEST_COUNT = 12_000, 5000, 4
SHARES = (0.5, 0.4, 0.3, 0.55)
LAWS = tuple(ColumnLaw(edges=(0.0, 1.0, 2.0), shares=(1 - share, share)) for share in SHARES)
TESTS = tuple(
    BinaryTest(feature_index=index, cut=1.0, category_code=None, public_frequency=share)
    for index, share in enumerate(SHARES)
)
CLASSES = {
    "stumps": hypothesis_class(ClassAsked(kind="stumps", tests=TESTS, depth=1, class_count=2)),
    "trees": hypothesis_class(ClassAsked(kind="trees", tests=TESTS, depth=2, class_count=2)),
    "cells": CellClass(splits=CellSplits((TESTS[0], TESTS[1]), ((1, ~0), (~1, ~2))), class_count=2),
}
CELLS = [("stumps", 200), ("stumps", 400), ("trees", 200), ("trees", 300), ("cells", 12_000)]


@pytest.mark.parametrize(("kind", "size"), CELLS)
@pytest.mark.parametrize("cutoff", [1, 20])
def test_a_release_gives_what_was_predicted(kind: str, size: int, cutoff: int) -> None:
    """Rows with noisy labels, relabelled, chunked and voted on by the app, give as many labels."""
    # Leaves of these classes hold 0.12 of the people or more, 4.8 rows of the smallest
    # chunk: a learner misses one with probability e^-4.8, 2.5 of 300, give or take 1.6.
    # Hits fall by e in 16 votes, so that measured rates scatter by a tenth; a factor of two
    # is seven times that, once in 10^11 seeds, and seeds are fixed besides.
    predicted = prediction(kind, size, cutoff, chunk_row_count=ROWS // size)
    assert 0.5 < predicted / measurement(kind, size, cutoff) < 2


def test_chunks_of_another_size_would_be_noticed() -> None:
    """Predicted with chunks of a tenth of their rows, a release is off by more than two."""
    predicted = prediction("trees", 300, 1, chunk_row_count=4)
    assert not 0.5 < predicted / measurement("trees", 300, 1) < 2


def prediction(kind: str, size: int, cutoff: int, *, chunk_row_count: int) -> float:
    """What plan predicts of one T."""
    tried = try_out(
        MadeUpRules(CLASSES[kind], Population(LAWS), 0.1, ROWS),
        Learner(hypothesis_class=CLASSES[kind]),
        chunk_row_count=chunk_row_count,
        learner_count=size if kind == "cells" else 96,
        hypothesis_count=8,
    )
    return forecast_answers(table_of(cutoff), tried, ensemble_size=size, limit=LIMIT).likely.number


def measurement(kind: str, size: int, cutoff: int) -> float:
    """What a release of rows with noisy labels of a logistic rule gives, the mean over coins."""
    searched = CLASSES[kind]
    random = np.random.default_rng(3)
    values: NDArray[np.float64] = (random.random((ROWS, TEST_COUNT)) < SHARES).astype(np.float64)
    values *= 1.5
    chance = 1 / (1 + np.exp(-(values @ np.array([2.0, -1.5, 1.0, 0.5]) - 1.0)))
    encoded, labels = searched.encode(values), (random.random(ROWS) < chance).astype(np.int64)
    noise = seeded_noise(5)
    hypothesis = searched.draw(encoded, labels, 0.1, noise)
    ensemble = fit_ensemble(
        Learner(hypothesis_class=searched),
        values,
        hypothesis.predict(encoded),
        permutation=noise.permutation(ROWS),
        offsets=chunk_offsets(ROWS, size),
        secret=b"test",
    )
    _, distances = aggregate(ensemble.vote_counts(values[:2000]))
    table = table_of(cutoff)
    rates = np.array([np.mean([table.hit_probability(int(each)) for each in distances])])
    return float((expected_answers(rates, cutoff=cutoff, limit=LIMIT) * (1 - rates))[0])


def table_of(cutoff: int) -> ApproximateProfile:
    """The calibration of the answers at one T."""
    return approximate_profile(epsilon=Fraction(9, 10), delta=Fraction(1, 10**6), cutoff=cutoff)
