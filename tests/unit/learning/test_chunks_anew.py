"""A chunk that is fitted anew alone comes out as among all; the others stay, to the byte."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import InvariantError
from app.learning.cells.cell_class import CellClass, CellSplits
from app.learning.encoding.public_columns import PublicColumn
from app.learning.ensemble import Learner, fit_chunks_anew, fit_ensemble, read_ensemble_bytes
from app.learning.hypothesis import ChunkwiseEnsemble, ClassAsked
from app.learning.registry import hypothesis_class
from tests.builders.learners.enumeration import unit_tests

COLUMNS = (PublicColumn(bounds=(0.0, 1.0)), PublicColumn(category_count=2))
CHUNKS = 6
SECRET = b"s" * 32
ESTIMATORS: dict[str, dict[str, object]] = {
    "sklearn.linear_model.LogisticRegression": {},
    "sklearn.tree.DecisionTreeClassifier": {"max_depth": 2},
    "sklearn.naive_bayes.GaussianNB": {},
    "sklearn.ensemble.RandomForestClassifier": {"n_estimators": 2, "max_depth": 2},
}


def searching(kind: str, rule: str = "canonical", depth: int = 1) -> Learner:
    """Return the learner of a class."""
    tests = unit_tests(2 if kind == "trees" else 1)
    asked = ClassAsked(kind=kind, tests=tests, columns=COLUMNS, depth=depth, class_count=2)
    return Learner(hypothesis_class=hypothesis_class(asked), rule=rule, columns=COLUMNS)


TREES = searching("trees").hypothesis_class
CELLS = CellClass(splits=CellSplits(unit_tests(2), ((1, ~0), (~1, ~2))), class_count=2)
LEARNERS = {
    "trees": searching("trees", depth=2),
    "trees that halve": searching("trees", "halving"),
    "thresholds": searching("thresholds"),
    "intervals": searching("intervals"),
    "intervals that halve": searching("intervals", "halving"),
    "cells, all counted anew": Learner(hypothesis_class=CELLS, columns=COLUMNS),
    **{
        path.rpartition(".")[2]: Learner(
            hypothesis_class=TREES, estimator=path, params=params, columns=COLUMNS
        )
        for path, params in ESTIMATORS.items()
    },
}


def rows_of(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that a threshold labels, but for some."""
    values = np.stack([generator.random(count), generator.integers(0, 4, count)], axis=1)
    labels = ((values[:, 0] >= 0.5) ^ (generator.random(count) < 0.2)).astype(np.int64)
    return values, labels


@pytest.mark.parametrize("name", LEARNERS)
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    changed=st.sets(st.integers(0, CHUNKS - 1), min_size=1, max_size=2),
    lengths=st.lists(st.integers(0, 12), min_size=2 * CHUNKS, max_size=2 * CHUNKS),
)
def test_a_chunk_alone_comes_out_as_among_all(
    name: str, seed: int, changed: set[int], lengths: list[int]
) -> None:
    """Other rows in some chunks, more or fewer or none: byte for byte the fit of everything."""
    learner, generator = LEARNERS[name], np.random.default_rng(seed)
    before = [rows_of(generator, length) for length in lengths[:CHUNKS]]
    other = [rows_of(generator, length) for length in lengths[CHUNKS:]]
    after = [other[index] if index in changed else before[index] for index in range(CHUNKS)]
    bodies = []
    for parts in (before, after):
        values, labels = (np.concatenate(each) for each in zip(*parts, strict=True))
        offsets = np.cumsum([0, *(len(each) for _, each in parts)])
        fitted = fit_ensemble(
            learner,
            values,
            labels,
            permutation=np.arange(len(labels)),
            offsets=offsets,
            secret=SECRET,
        )
        bodies.append(fitted.to_bytes())
    alone = fit_chunks_anew(
        learner,
        bodies[0],
        values,
        labels,
        permutation=np.arange(len(labels)),
        offsets=offsets,
        chunks=np.array(sorted(changed)),
        secret=SECRET,
    )
    assert alone == bodies[1]
    assert read_ensemble_bytes(learner, alone).size == CHUNKS


@pytest.mark.parametrize("kind", ["trees", "intervals"])
def test_votes_with_scores_are_not_exchanged(kind: str) -> None:
    """Scores go with no generation, and are refused where they would be lost."""
    chosen = searching(kind)
    learner = Learner(
        hypothesis_class=chosen.hypothesis_class, rule="canonical", columns=COLUMNS, scored=True
    )
    values, labels = rows_of(np.random.default_rng(1), 12)
    fitted = fit_ensemble(
        learner,
        values,
        labels,
        permutation=np.arange(12),
        offsets=np.array([0, 6, 12]),
        secret=SECRET,
    )
    assert isinstance(fitted, ChunkwiseEnsemble)
    with pytest.raises(InvariantError, match="exchanged without scores"):
        fitted.exchanged(np.array([0]), fitted)
