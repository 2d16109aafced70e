"""Rows that are encoded part by part count as the same rows encoded whole."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.learning.encoding import encoded_rows
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.encoded_rows import RowsByPart, RowsInTurn, parts, predicted
from app.learning.encoding.public_columns import PublicColumn
from app.learning.enumerated.thresholds import ThresholdClass
from app.learning.hypothesis import ClassAsked
from app.learning.registry import dichotomy_class
from app.learning.trees.regions import MergedRows
from app.learning.trees.tree_class import TreeClass
from app.noise.scripted import ScriptedNoise, seeded_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import HypothesisClass

TESTS = tuple(
    BinaryTest(feature_index=feature, cut=cut, category_code=None, public_frequency=0.5)
    for feature in (0, 1)
    for cut in (0.2, 0.4, 0.6, 0.8)
)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few rows be many parts."""
    monkeypatch.setattr(encoded_rows, "ROWS_PER_PART", 7)


def rows(count: int = 100) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return values of two features, of few kinds, and labels."""
    generator = np.random.default_rng(count)
    return generator.integers(0, 5, (count, 2)) / 5, generator.integers(0, 2, count)


def identity(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Encode a row as itself."""
    return values


def test_slices_are_those_of_the_whole() -> None:
    """Positions choose and order the rows; a slice of them is encoded as it is asked for."""
    values, _ = rows()
    positions = np.random.default_rng(1).permutation(100)[:60]
    lazy = RowsByPart(identity, values, positions)
    assert len(lazy) == 60
    assert np.array_equal(lazy[11:29], values[positions][11:29])
    assert np.array_equal(RowsByPart(identity, values)[:], values)


def test_chunks_in_turn_are_those_of_the_whole() -> None:
    """Chunks shorter and longer than a part, empty ones too, come as they are."""
    values, _ = rows()
    offsets = [0, 3, 3, 6, 20, 21, 60, 100, 100]
    lazy = RowsInTurn(RowsByPart(identity, values))
    for start, end in pairwise(offsets):
        assert np.array_equal(lazy[start:end], values[start:end])
    assert np.array_equal(lazy[2:9], values[2:9])


def test_rows_in_turn_are_encoded_once_each() -> None:
    """Many chunks of one part ask for its rows once: k learners do not cost k encodings."""
    values, _ = rows(21)
    counts: list[int] = []

    def encode(part: NDArray[np.float64]) -> NDArray[np.float64]:
        counts.append(len(part))
        return part

    lazy = RowsInTurn(RowsByPart(encode, values))
    for start in range(21):
        assert len(lazy[start : start + 1]) == 1
    assert sum(counts) == 21
    assert max(counts) == 7


def test_parts_cover_every_row_once() -> None:
    """So do those of no row: one, empty."""
    assert [len(range(100)[part]) for part in parts(16)] == [7, 7, 2]
    assert list(parts(0)) == [slice(0, 0)]


@pytest.mark.parametrize("merged_again", [True, False])
def test_merging_by_part_changes_no_count(
    monkeypatch: pytest.MonkeyPatch, *, merged_again: bool
) -> None:
    """Counts of pairs of tests are the rows' own, whether parts are merged again or not."""
    values, labels = rows()
    bits = TreeClass(tests=TESTS, depth=2, class_count=2).encode(values)
    least = 1 if merged_again else len(bits)
    monkeypatch.setattr("app.learning.trees.regions.WORTHWHILE", least)
    merged = MergedRows.of(bits, labels, 2)
    assert (len(merged.packed) <= 25) is merged_again
    inside = bits[:, 2] == 0
    counts = merged.restricted(2, 0).single_counts()
    expected = [bits[inside & (labels == label)].sum(axis=0) for label in (0, 1)]
    assert np.array_equal(counts, expected)
    turned = np.arange(len(TESTS), dtype=np.uint8) % 2
    both = [(bits[labels == label] ^ turned).sum(axis=0) for label in (0, 1)]
    assert np.array_equal(merged.turned(turned).single_counts(), both)


def every_class(values: NDArray[np.float64]) -> dict[str, HypothesisClass]:
    """Return a class of every way to count rows."""
    columns = (PublicColumn(bounds=(0.0, 1.0)),) * 2
    return {
        "trees of depth 1": TreeClass(tests=TESTS, depth=1, class_count=2),
        "trees of depth 2": TreeClass(tests=TESTS, depth=2, class_count=2),
        "trees of depth 3": TreeClass(tests=TESTS, depth=3, class_count=2),
        "thresholds": ThresholdClass(tests=TESTS),
        "listed": dichotomy_class(
            ClassAsked(kind="intervals", columns=columns, depth=1, class_count=2), values
        ),
    }


@pytest.mark.parametrize("name", every_class(rows()[0]))
def test_a_draw_is_the_same_part_by_part(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With the same noise, rows in fifteen parts give the hypothesis that one part gives."""
    values, labels = rows()
    searched = every_class(values)[name]
    lazy = RowsByPart(searched.encode, values)
    by_part = searched.draw(lazy, labels, 0.3, ScriptedNoise(seeded_words(4)))
    labelled = predicted(by_part.predict, lazy)
    monkeypatch.setattr(encoded_rows, "ROWS_PER_PART", 1000)
    encoded = searched.encode(values)
    whole = searched.draw(encoded, labels, 0.3, ScriptedNoise(seeded_words(4)))
    assert by_part.to_dict() == whole.to_dict()
    assert np.array_equal(labelled, whole.predict(encoded))
