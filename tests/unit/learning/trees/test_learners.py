"""Rules over thresholds, failures, and one record moving one vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import Learner, check_learner, fit_ensemble, read_ensemble_bytes
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class
from app.learning.trees import canonical_learner
from app.learning.trees.learners import fit_trees
from app.learning.trees.tree_class import TreeClass
from tests.builders.learners.enumeration import unit_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import HypothesisClass
    from app.learning.trees.packed_trees import PackedTrees

THRESHOLDS = ThresholdClass(tests=unit_tests(3))
TREES = TreeClass(tests=unit_tests(4), depth=2, class_count=2)


def _fit(
    rule: str,
    hypotheses: TreeClass | ThresholdClass,
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    chunk_count: int = 1,
) -> PackedTrees:
    return fit_trees(
        rule,
        bits=bits,
        labels=labels,
        offsets=chunk_offsets(len(bits), chunk_count),
        hypothesis_class=hypotheses,
        secret=b"t" * 32,
    )


def test_canonical_thresholds_take_the_first_best_cut() -> None:
    """Cuts 1 and 2 make no error; the earlier one is taken, before the constants."""
    bits = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 0]], dtype=np.uint8)
    packed = _fit("canonical", THRESHOLDS, bits, np.array([0, 1, 0]))
    assert packed._cells.tolist() == [[1, 0, 1]]


def test_halving_thresholds_are_uniform_among_the_right_ones() -> None:
    """Two of five hypotheses make no error: 4,000 draws, six standard deviations."""
    bits = np.array([[0, 0, 0], [1, 1, 1], [1, 0, 0]], dtype=np.uint8)
    packed = _fit(
        "halving", THRESHOLDS, np.tile(bits, (40, 1)), np.tile([0, 1, 0], 40), chunk_count=40
    )
    seen = np.bincount(packed._cells[:, 0], minlength=3)
    assert seen[0] == 0
    assert abs(int(seen[1]) - 2000) < 6 * np.sqrt(1000)


def test_halving_thresholds_weigh_errors_where_all_err() -> None:
    """Contradictory rows leave weights exp(-2 errors), never a failure."""
    bits = np.array([[0, 0, 0], [0, 0, 0]], dtype=np.uint8)
    packed = _fit("halving", THRESHOLDS, bits, np.array([0, 1]))
    assert packed._cells.shape == (100, 3)


@pytest.mark.parametrize("rule", ["canonical", "halving"])
def test_one_record_moves_one_vote_at_most(rule: str) -> None:
    """Replacing a row changes only the model of its own chunk."""
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 2, (60, 4), dtype=np.uint8)
    labels = generator.integers(0, 2, 60)
    other_bits, other_labels = bits.copy(), labels.copy()
    other_bits[17], other_labels[17] = 1 - bits[17], 1 - labels[17]
    one = _fit(rule, TREES, bits, labels, chunk_count=6)._cells
    two = _fit(rule, TREES, other_bits, other_labels, chunk_count=6)._cells
    changed = np.flatnonzero((one != two).any(axis=1)) // (len(one) // 6)
    assert set(changed.tolist()) <= {1}


def test_a_failing_fit_votes_class_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a rule raises inside a chunk is that chunk's constant vote."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(canonical_learner, "fit_tree", fail)
    bits = np.array([[0, 0, 0, 1], [1, 1, 1, 0]] * 2, dtype=np.uint8)
    packed = _fit("canonical", TREES, bits, np.array([0, 1, 1, 1]), chunk_count=2)
    assert packed.vote_counts(bits[:1]).tolist() == [[1, 1]]


def test_progress_counts_chunks() -> None:
    """Every chunk is told once, in order."""
    told: list[tuple[int, int]] = []
    bits = np.zeros((6, 4), dtype=np.uint8)
    fit_trees(
        "canonical",
        bits=bits,
        labels=np.zeros(6, dtype=np.int64),
        offsets=chunk_offsets(6, 3),
        hypothesis_class=TREES,
        secret=b"",
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_unknown_rule_is_refused() -> None:
    """The message names the key and the rules there are."""
    with pytest.raises(ConfigurationError, match=r"learner.rule: unknown rule 'greedy'"):
        _fit("greedy", TREES, np.zeros((2, 4), dtype=np.uint8), np.array([0, 1]))


def test_a_class_that_no_rule_can_search_is_refused() -> None:
    """A rule searches trees, thresholds and lists, and says so of anything else."""
    with pytest.raises(ConfigurationError, match=r"learner.rule: no rule searches"):
        check_learner(Learner(hypothesis_class=cast("HypothesisClass", object())))


def test_more_tests_than_a_stored_tree_can_name_are_refused_before_any_row() -> None:
    """Which tests the fitted trees use is private: it must not decide whether they are stored."""
    many = hypothesis_class(
        ClassAsked(kind="stumps", tests=unit_tests(1) * 65_537, depth=1, class_count=2)
    )
    line = "hypotheses: gives 65537 tests, and a learner's trees hold at most 65536: list fewer"
    with pytest.raises(ConfigurationError, match=line):
        check_learner(Learner(hypothesis_class=many))
    check_learner(Learner(hypothesis_class=many, estimator="sklearn.tree.DecisionTreeClassifier"))


def test_the_front_door_permutes_fits_and_reads_back() -> None:
    """Chunks are cut from the permuted rows, and bytes give the same votes."""
    generator = np.random.default_rng(8)
    values, labels = generator.random((90, 4)), generator.integers(0, 2, 90)
    permutation = generator.permutation(90)
    learner = Learner(hypothesis_class=TREES)
    check_learner(learner)
    ensemble = fit_ensemble(
        learner,
        values,
        labels,
        permutation=permutation,
        offsets=chunk_offsets(90, 9),
        secret=b"k",
    )
    direct = _fit(
        "canonical",
        TREES,
        (values[permutation] >= 0.5).astype(np.uint8),
        labels[permutation],
        chunk_count=9,
    )
    assert ensemble.to_bytes() == direct.to_bytes()
    again = read_ensemble_bytes(learner, ensemble.to_bytes())
    assert np.array_equal(again.vote_counts(values), ensemble.vote_counts(values))


def test_rows_outside_the_chunks_are_refused() -> None:
    """Offsets that do not end at the last row would drop a record."""
    with pytest.raises(InvariantError):
        fit_ensemble(
            Learner(hypothesis_class=TREES),
            np.zeros((4, 4)),
            np.zeros(4, dtype=np.int64),
            permutation=np.arange(4),
            offsets=chunk_offsets(3, 1),
            secret=b"",
        )
