"""Packed rows go into chunks by their slots: one record is in one chunk, whoever holds it."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.schema import NumericFeature, Schema
from app.data.sources.encoded_parts import list_files
from app.data.streaming.part_counts import LabelCounts, PlacedCodes
from app.data.streaming.part_summaries import PackedRows, Reading, Summary
from app.data.streaming.placed_rows import PlacedRows, Placing, put_together
from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.trees.counted_fit import CountedTrees
from app.learning.trees.tree import Tree
from app.privacy.voting.keyed_slots import Slots
from tests.builders.learners.coded_tests import random_rows, random_tests

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

ROWS, SIZE, DEPTH = 900, 12, 3
KEY = b"s" * 32
TESTS = random_tests(np.random.default_rng(5), features=4)
VALUES, LABELS = random_rows(np.random.default_rng(6), features=4, count=ROWS)


def _trees() -> CountedTrees:
    counted = CountedTrees.over(TESTS, DEPTH)
    assert counted is not None
    return counted


TREES = _trees()


def _parts(
    values: NDArray[np.float64], labels: NDArray[np.int64], ends: Sequence[int]
) -> list[PackedRows]:
    """Return the rows as parts that end at these positions."""
    bounds = [0, *ends, len(labels)]
    return [
        PackedRows(
            number,
            list(TREES.coding.codes(values[start:end])),
            labels[start:end].astype(np.uint8),
            Summary({number: end - start}, 0, ()),
        )
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


def _placing(parts: list[PackedRows], tree: Tree | None = None) -> Placing:
    total = parts[0].summary
    for part in parts[1:]:
        total = part.summary.merged(total)
    return Placing(
        firsts=total.firsts(),
        key=KEY,
        row_count=ROWS,
        size=SIZE,
        coding=TREES.coding,
        hypothesis=tree,
    )


def _rows_of(placed: PlacedRows, chunk: int) -> list[bytes]:
    """Return a chunk's rows with their labels, sorted."""
    codes, labels, _ = placed.of_chunks(slice(chunk, chunk + 1))
    return sorted(row.tobytes() for row in np.vstack([codes, labels]).T.astype(np.uint8))


def _fitted(held: list[PlacedRows]) -> NDArray[np.int64]:
    """Fit all chunks as an engine does: five a place, from what the places have of them."""
    trees = []
    for start in range(0, SIZE, 5):
        chunks = slice(start, min(start + 5, SIZE))
        place = put_together([each.cut(chunks) for each in held])
        assert place.first_chunk == start
        sizes = np.diff(place.offsets_of(chunks))
        trees.append(TREES.fitted(*place.of_chunks(chunks), sizes=sizes))
    return np.concatenate(trees)


@pytest.mark.parametrize("ends", [(), (1,), (300, 300, 899), (100, 500)])
def test_a_row_is_in_the_chunk_of_its_slot(ends: tuple[int, ...]) -> None:
    """Wherever parts end, chunks hold the rows that a permutation in memory puts there."""
    parts = _parts(VALUES, LABELS, ends)
    placing = _placing(parts)
    placed = placing.placed(parts[::-1])
    chunks = np.searchsorted(
        chunk_offsets(ROWS, SIZE), Slots(KEY, ROWS).of(np.arange(ROWS)), side="right"
    )
    codes = TREES.coding.codes(VALUES)
    for chunk in range(SIZE):
        rows = np.vstack([codes, LABELS])[:, chunks == chunk + 1].T.astype(np.uint8)
        assert _rows_of(placed, chunk) == sorted(row.tobytes() for row in rows)


def test_places_do_not_show_in_the_trees() -> None:
    """Parts joined in one place or in three give the same trees."""
    parts = _parts(VALUES, LABELS, (200, 650))
    placing = _placing(parts)
    together = _fitted([placing.placed(list(parts))])
    apart = [placing.placed([part]) for part in parts]
    assert np.array_equal(_fitted(apart), together)
    assert np.array_equal(_fitted(apart[::-1]), together)


def test_rows_are_encoded_as_they_are_asked_for() -> None:
    """A slice of a place's rows is what their class makes of their values."""
    (part,) = _parts(VALUES, LABELS, ())
    placed = _placing([part]).placed([part])
    slots = Slots(KEY, ROWS).of(np.arange(ROWS))
    some = PlacedCodes(placed, TREES.coding, 100, 500)
    assert len(some) == 500
    in_order = VALUES[np.argsort(slots)]
    bits = TREES.coding.bits(TREES.coding.codes(in_order))
    assert np.array_equal(some[3:700], bits[103:600])


def test_rows_take_the_labels_of_the_hypothesis() -> None:
    """A row is relabelled by its own codes."""
    tree = Tree(test_indices=(0, 1, 2), leaf_labels=(0, 1, 1, 0))
    parts = _parts(VALUES, LABELS, (400,))
    relabelled = _parts(VALUES, tree.predict(TREES.coding.bits(TREES.coding.codes(VALUES))), (400,))
    ours, theirs = _placing(parts, tree).placed(parts), _placing(relabelled).placed(relabelled)
    assert all(_rows_of(ours, chunk) == _rows_of(theirs, chunk) for chunk in range(SIZE))


def _changed_chunks(placed: PlacedRows, other: PlacedRows) -> int:
    return sum(_rows_of(placed, chunk) != _rows_of(other, chunk) for chunk in range(SIZE))


def test_one_record_changes_one_chunk() -> None:
    """Whichever record is replaced, wherever it lies in its part."""
    parts = _parts(VALUES, LABELS, (400,))
    placed = _placing(parts).placed(list(parts))
    for row in range(0, ROWS, 41):
        values, labels = VALUES.copy(), LABELS.copy()
        values[row], labels[row] = [0.0, 7.0, 0.95, 7.0], 1 - labels[row]
        others = _parts(values, labels, (400,))
        assert _changed_chunks(placed, _placing(others).placed(others)) == 1


def test_slots_by_a_bare_hash_of_the_row_are_caught() -> None:
    """A planted fault: a record that chooses its own chunk changes two of them, and two votes."""
    parts = _parts(VALUES, LABELS, ())
    changed = _parts(VALUES[::-1].copy(), LABELS[::-1].copy(), ())

    def by_hash(part: PackedRows) -> PlacedRows:
        rows = np.vstack([*part.columns, part.labels]).T
        chunks = np.array(
            [blake2b(row.tobytes(), digest_size=2).digest()[0] % SIZE for row in rows]
        )
        order = np.argsort(chunks, kind="stable")
        ends = np.cumsum(np.bincount(chunks, minlength=SIZE))
        offsets = np.concatenate([np.zeros(1, np.int64), ends])
        columns = [column[order] for column in part.columns]
        return PlacedRows(columns, part.labels[order], offsets)

    assert _changed_chunks(by_hash(parts[0]), by_hash(changed[0])) == 0
    moved = []
    for row in range(0, ROWS, 41):
        values, labels = VALUES.copy(), LABELS.copy()
        values[row], labels[row] = [0.0, 7.0, 0.95, 7.0], 1 - labels[row]
        other = by_hash(_parts(values, labels, ())[0])
        moved.append(_changed_chunks(by_hash(parts[0]), other))
    assert max(moved) == 2


def test_counts_by_label_are_of_all_parts() -> None:
    """What the exponential mechanism is given is the same sum in any order."""
    counting = LabelCounts(TREES.coding, 2, DEPTH)
    (whole,) = (counting.of(part) for part in _parts(VALUES, LABELS, ()))
    first, second, third = (counting.of(part) for part in _parts(VALUES, LABELS, (250, 251)))
    left = counting.merged(counting.merged(first, second), third)
    right = counting.merged(third, counting.merged(second, first))
    assert np.array_equal(counting.finished(left).satisfied, counting.finished(whole).satisfied)
    for features, table in whole.items():
        assert np.array_equal(left[features], table)
        assert np.array_equal(right[features], table)


def test_a_label_beyond_a_byte_is_kept(tmp_path: Path) -> None:
    """Of three hundred classes the last is read, placed and relabelled as itself."""
    count, last = 300, 299
    source = tmp_path / "rows.csv"
    source.write_text("x,y\n" + "".join(f"0.5,c{place}\n" for place in range(count)))
    schema = Schema(
        label="y",
        classes=tuple(f"c{place}" for place in range(count)),
        features=(NumericFeature(name="x", lower=0, upper=1),),
    )
    tree = Tree(test_indices=(0,), leaf_labels=(last, last))
    half = BinaryTest(feature_index=0, cut=0.5, category_code=None, public_frequency=0.5)
    trees = CountedTrees.over((half,), 1)
    assert trees is not None
    reading = Reading(source=str(source), schema=schema, coding=trees.coding, key=KEY)
    (file,) = list_files(str(source))
    for hypothesis, labels in ((None, list(range(count))), (tree, [last] * count)):
        part = reading.packed((0, file))
        placing = Placing(
            firsts={0: 0},
            key=KEY,
            row_count=count,
            size=2,
            coding=trees.coding,
            hypothesis=hypothesis,
        )
        placed = put_together([placing.placed([part])])
        assert sorted(placed.of_chunks(slice(0, 2))[1].tolist()) == labels
