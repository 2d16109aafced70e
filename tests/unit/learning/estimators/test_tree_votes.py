"""Decision trees of an ensemble vote together as they do one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from app.learning.estimators.packing import pack_trees, packing_of
from app.learning.estimators.tree_votes import single_precision
from app.learning.trees import packed_trees

COLUMNS = 5


def _trees(
    generator: np.random.Generator, size: int, depth: int, class_count: int
) -> list[DecisionTreeClassifier | ExtraTreeClassifier | int]:
    """Return trees fitted on noise of few values, whose cuts the queries meet, and a constant."""
    models: list[DecisionTreeClassifier | ExtraTreeClassifier | int] = [class_count - 1]
    for index in range(size):
        rows = generator.integers(0, 9, (30, COLUMNS)) / 8.0
        labels = generator.integers(0, class_count, 30)
        kind = ExtraTreeClassifier if index % 2 else DecisionTreeClassifier
        models.append(kind(max_depth=depth, random_state=0).fit(rows, labels))
    return models


def _queries(
    generator: np.random.Generator, batch: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return queries on cuts, beside them by less than single precision tells, and anywhere."""
    rows = generator.integers(0, 17, (batch, COLUMNS)) / 16.0
    rows[::3] += 1e-9
    rows[1::3] = generator.random(rows[1::3].shape)
    return rows


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 5),
    class_count=st.integers(2, 5),
    batch=st.sampled_from([1, 2, 8, 9, 64, 65, 130]),
)
def test_votes_are_those_of_predict(seed: int, depth: int, class_count: int, batch: int) -> None:
    """Trees of any shape give the counts of a loop over scikit-learn's `predict`."""
    generator = np.random.default_rng(seed)
    models = _trees(generator, 12, depth, class_count)
    rows = _queries(generator, batch)
    packed = pack_trees(
        models, column_count=COLUMNS, class_count=class_count, fallback=0, depth=depth
    )
    votes = [
        np.full(batch, model) if isinstance(model, int) else model.predict(rows) for model in models
    ]
    expected = [(np.stack(votes) == label).sum(axis=0) for label in range(class_count)]
    assert np.array_equal(packed.vote_counts(rows), np.stack(expected, axis=1))


def test_blocks_of_trees_and_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vote is the same alone, in a batch and in a block of trees."""
    generator = np.random.default_rng(4)
    rows = _queries(generator, 150)
    packed = pack_trees(
        _trees(generator, 40, 3, 3), column_count=COLUMNS, class_count=3, fallback=0, depth=3
    )
    together = packed.vote_counts(rows)
    monkeypatch.setattr(packed_trees, "TREES_PER_BLOCK", 7)
    assert np.array_equal(packed.vote_counts(rows), together)
    alone = [packed.vote_counts(row[np.newaxis])[0] for row in rows]
    assert np.array_equal(alone, together)
    assert packed.size == 41


@given(st.floats(allow_nan=False), st.floats(width=32, allow_nan=False))
def test_a_cut_in_single_precision_cuts_alike(cut: float, value: float) -> None:
    """Whatever a column holds in single precision, it lies on the same side."""
    rounded = single_precision(np.array([cut]))[0]
    assert (np.float32(value) > rounded) == (value > cut)


@pytest.mark.parametrize(
    ("params", "packs"),
    [
        ({"max_depth": 4}, True),
        ({}, False),
        ({"max_depth": 11}, False),
        ({"max_depth": None}, False),
    ],
)
def test_what_packs_is_told_by_the_depth(params: dict[str, object], packs: bool) -> None:  # noqa: FBT001 -- a column
    """Without a depth in the configuration a tree may be of any, which its time would tell."""
    assert (packing_of("sklearn.tree.DecisionTreeClassifier", params) is not None) == packs
