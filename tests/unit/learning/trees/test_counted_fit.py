"""Trees from counts are those that a search of the rows finds, whatever the parts."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from app.errors import ConfigurationError, InvariantError
from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.encoded_rows import RowsByPart
from app.learning.ensemble import Learner, counted_ensemble, counted_learner
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.trees import counted_fit, tree_class
from app.learning.trees.cell_counts import CountedRows, cell_tables, merged_tables
from app.learning.trees.counted_fit import CountedTrees
from app.learning.trees.learners import fit_trees
from app.learning.trees.packed_trees import PackedTrees
from app.learning.trees.regions import MergedRows
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise, seeded_words
from tests.builders.learners.coded_tests import random_rows, random_tests
from tests.builders.learners.enumeration import unit_tests

SEEDS = range(12)
CHUNKS = 17


def _over(tests: tuple[BinaryTest, ...], depth: int) -> CountedTrees:
    counted = CountedTrees.over(tests, depth)
    assert counted is not None
    return counted


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_trees_are_those_of_the_search(
    depth: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every test and every leaf is the canonical learner's, ties and constants included."""
    monkeypatch.setattr(counted_fit, "CHUNKS_AT_ONCE", 5)
    generator = np.random.default_rng(seed)
    features = int(generator.integers(1, 5))
    tests = random_tests(generator, features=features)
    values, labels = random_rows(generator, features=features, count=int(generator.integers(250)))
    searched = TreeClass(tests=tests, depth=depth, class_count=2)
    offsets = chunk_offsets(len(labels), CHUNKS)
    wanted = fit_trees(
        "canonical",
        bits=searched.encode(values),
        labels=labels,
        offsets=offsets,
        hypothesis_class=searched,
        secret=b"",
    )
    told: list[tuple[int, int]] = []
    rows = RowsByPart(np.asarray, values)
    trees = _over(tests, depth).fit(
        rows, labels, offsets=offsets, progress=lambda done, total: told.append((done, total))
    )
    assert PackedTrees(trees, depth=depth, class_count=2).to_bytes() == wanted.to_bytes()
    assert told == [(5, CHUNKS), (10, CHUNKS), (15, CHUNKS), (CHUNKS, CHUNKS)]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_counts_of_parts_add_up_in_any_order(depth: int) -> None:
    """What is merged of parts, in any order and grouping, is what all rows give together."""
    generator = np.random.default_rng(depth)
    tests = random_tests(generator, features=4)
    values, labels = random_rows(generator, features=4, count=400)
    counted = _over(tests, depth)
    codes, chunks = counted.coding.codes(values), generator.integers(0, CHUNKS, len(labels))
    whole = counted.upper_counts(codes, labels, chunks, chunk_count=CHUNKS)
    upper = counted.upper_tests(whole, chunk_count=CHUNKS, rows_max=400)
    parts = np.array_split(generator.permutation(len(labels)), 5)
    uppers = [
        counted.upper_counts(codes[:, part], labels[part], chunks[part], chunk_count=CHUNKS)
        for part in parts
    ]
    lowers = [
        counted.lower_counts(upper, codes[:, part], labels[part], chunks[part]) for part in parts
    ]
    for tables in (uppers, uppers[::-1]):
        merged = reduce(merged_tables, tables)
        assert np.array_equal(counted.upper_tests(merged, chunk_count=CHUNKS, rows_max=400), upper)
    left = reduce(merged_tables, lowers)
    right = merged_tables(merged_tables(lowers[4], lowers[3]), reduce(merged_tables, lowers[:3]))
    assert np.array_equal(counted.trees(upper, left), counted.trees(upper, right))


def test_chunks_of_many_rows_are_counted_in_wider_numbers() -> None:
    """Sixteen bits are taken only where every difference fits."""
    tests = random_tests(np.random.default_rng(3), features=3)
    counted = _over(tests, 2)
    codes = np.tile(counted.coding.codes(np.array([[0.9, 1.0, 0.9]])), 40_000)
    labels = np.ones(codes.shape[1], dtype=np.int64)
    labels[:100] = 0
    chunks = np.zeros(len(labels), dtype=np.int64)
    tables = counted.upper_counts(codes, labels, chunks, chunk_count=1)
    upper = counted.upper_tests(tables, chunk_count=1, rows_max=len(labels))
    trees = counted.trees(upper, counted.lower_counts(upper, codes, labels, chunks))
    packed = PackedTrees(trees, depth=2, class_count=2)
    assert packed.vote_counts(counted.coding.bits(codes[:, :1])).tolist() == [[0, 1]]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_tree_is_drawn_alike_from_counts(depth: int) -> None:
    """The exponential mechanism asks counts, and does not see who counted."""
    generator = np.random.default_rng(depth)
    tests = random_tests(generator, features=3)
    values, labels = random_rows(generator, features=3, count=500)
    searched = TreeClass(tests=tests, depth=depth, class_count=2)
    coding = _over(tests, depth).coding
    tables = cell_tables(coding, coding.codes(values), labels, group_count=2, size=depth)
    counted = CountedRows.of(coding, tables, depth=depth)
    assert counted.row_count == len(labels)
    for seed in range(5):
        wanted = searched.draw(
            searched.encode(values), labels, 0.05, ScriptedNoise(seeded_words(seed))
        )
        drawn = searched.draw_counted(counted, 0.05, ScriptedNoise(seeded_words(seed)))
        assert drawn == wanted


def test_many_rows_are_counted_for_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a search region by region would take too long for are neither refused nor slow."""
    generator = np.random.default_rng(3)
    tests = random_tests(generator, features=2)
    values, labels = random_rows(generator, features=2, count=500)
    searched = TreeClass(tests=tests, depth=3, class_count=3)
    encoded = searched.encode(values)
    wanted = searched.draw(encoded, labels, 0.05, ScriptedNoise(seeded_words(5)))
    monkeypatch.setattr(tree_class, "WEIGHT_COUNT_MAX", 1.0)
    searched.refuse_rows(len(labels))
    with pytest.raises(ConfigurationError, match=r"hypotheses\.depth: counting 500 rows"):
        searched.refuse_rows(len(labels), is_weighed=True)
    monkeypatch.setattr(TreeClass, "weights", None)
    assert searched.draw(encoded, labels, 0.05, ScriptedNoise(seeded_words(5))) == wanted


@pytest.mark.parametrize(("depth", "labels"), [(1, 2), (3, 2), (3, 1 << 20), (4, 2)])
def test_rows_are_counted_where_counts_are_few(depth: int, labels: int) -> None:
    """Up to three levels, by not too many features, cells and labels."""
    tests = random_tests(np.random.default_rng(4), features=4)
    searched = TreeClass.__new__(TreeClass)  # the class itself refuses so many
    for name, value in (("tests", tests), ("depth", depth), ("class_count", labels)):
        object.__setattr__(searched, name, value)
    assert searched.is_counted == (depth <= 3 and labels == 2)
    assert not TreeClass(tests=unit_tests(20), depth=3, class_count=2).is_counted


def test_counted_rows_are_the_rows() -> None:
    """Each count of a region is that of the merged rows, restricted and turned alike."""
    generator = np.random.default_rng(7)
    tests = random_tests(generator, features=4)
    values, labels = random_rows(generator, features=4, count=300)
    searched = TreeClass(tests=tests, depth=3, class_count=2)
    coding = _over(tests, 3).coding
    tables = cell_tables(coding, coding.codes(values), labels, group_count=2, size=3)
    counted = CountedRows.of(coding, tables, depth=3)
    merged = MergedRows.of(searched.encode(values), labels, 2)
    turned = generator.integers(0, 2, len(tests), dtype=np.uint8)
    pairs = generator.random((2 * len(tests), 2 * len(tests))) < 0.5
    for ours, theirs in ((counted, merged), (counted.turned(turned), merged.turned(turned))):
        assert np.array_equal(ours.statistics(), theirs.statistics())
        assert np.array_equal(
            ours.restricted(1, 0).statistics(), theirs.restricted(1, 0).statistics()
        )
        inside = ours.restricted(1, 0).restricted(2, 1)
        within = theirs.restricted(1, 0).restricted(2, 1)
        assert np.array_equal(inside.single_counts(), within.single_counts())
        assert np.array_equal(
            inside.restricted(0, 0).label_counts(), within.restricted(0, 0).label_counts()
        )
        assert ours.satisfies_any(pairs) == theirs.satisfies_any(pairs)
    nobody = np.zeros_like(pairs)
    assert not counted.satisfies_any(nobody)
    with pytest.raises(InvariantError):
        counted.restricted(0, 0).restricted(0, 0).restricted(0, 0).restricted(0, 0)
    with pytest.raises(InvariantError):
        counted.restricted(0, 0).restricted(0, 0).statistics()


def test_who_is_counted_follows_from_public_choices() -> None:
    """Rows are counted where that is the quicker way, and the class and rule allow it."""
    tests = random_tests(np.random.default_rng(1), features=4)
    searched = TreeClass(tests=tests, depth=3, class_count=2)
    assert counted_learner(Learner(hypothesis_class=searched), row_count=10**5, size=100)
    assert counted_learner(Learner(hypothesis_class=searched), row_count=1000, size=10) is None
    for other in (
        Learner(hypothesis_class=searched, rule="halving"),
        Learner(hypothesis_class=searched, scored=True),
        Learner(hypothesis_class=searched, estimator="sklearn.tree.DecisionTreeClassifier"),
        Learner(hypothesis_class=TreeClass(tests=tests, depth=3, class_count=3)),
        Learner(hypothesis_class=TreeClass(tests=tests, depth=0, class_count=2)),
        Learner(hypothesis_class=TreeClass(tests=(tests[0], tests[0]), depth=1, class_count=2)),
    ):
        assert counted_learner(other, row_count=10**5, size=100) is None
    apart = tuple(
        BinaryTest(feature_index=index, cut=0.5, category_code=None, public_frequency=0.5)
        for index in range(12)
    )
    alone = Learner(hypothesis_class=TreeClass(tests=apart, depth=3, class_count=2))
    assert counted_learner(alone, row_count=10**6, size=10) is None
    wide = tuple(
        BinaryTest(feature_index=index, cut=cut / 200, category_code=None, public_frequency=0.5)
        for index in range(3)
        for cut in range(200)
    )
    assert CountedTrees.over(wide, 3) is None


def test_a_class_that_reads_rows_takes_no_counted_trees() -> None:
    """Learners of another class are not made of trees."""
    cuts = ThresholdClass(tests=random_tests(np.random.default_rng(1), features=1))
    learner = Learner(hypothesis_class=cuts)
    assert counted_learner(learner, row_count=10**5, size=100) is None
    with pytest.raises(InvariantError):
        counted_ensemble(learner, np.zeros((1, 3), np.int64))
