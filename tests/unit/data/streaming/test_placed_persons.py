"""Packed rows of persons go into chunks by their persons' slots: a person is in one chunk."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.persons import WEIGHT_UNITS
from app.data.streaming import placed_rows
from app.data.streaming.part_counts import LabelCounts, distinct_persons, with_numbers
from app.data.streaming.part_summaries import PackedRows, Summary
from app.data.streaming.person_numbers import NamedRows, PersonRows, merged_persons
from app.data.streaming.placed_rows import PlacedRows, Placing
from app.errors import InvariantError
from app.learning.chunks import chunk_offsets
from app.learning.encoding.feature_codes import CellCodes
from app.privacy.voting.keyed_slots import Slots
from tests.builders.learners.coded_tests import random_rows, random_tests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROWS, PERSONS, SIZE, DEPTH = 900, 240, 12, 2
KEY = b"s" * 32
TESTS = random_tests(np.random.default_rng(5), features=4)
VALUES, LABELS = random_rows(np.random.default_rng(6), features=4, count=ROWS)
GENERATOR = np.random.default_rng(7)
DIGESTS = np.sort(GENERATOR.integers(0, 2**63, (PERSONS, 2), dtype=np.uint64), axis=0)
WHOSE = GENERATOR.permutation(
    np.concatenate([np.arange(PERSONS), GENERATOR.integers(0, PERSONS, ROWS - PERSONS)])
)
REPLACED = 17


def _coding() -> CellCodes:
    coding = CellCodes.of(TESTS)
    assert coding is not None
    return coding


CODING = _coding()


def _parts(
    digests: NDArray[np.uint64], ends: Sequence[int], rows: NDArray[np.int64] | None = None
) -> list[PackedRows]:
    """Return rows as parts that end at these positions, their persons numbered.

    Args:
        digests: of the persons.
        ends: where parts end.
        rows: which of all rows there are, with repeats; None for each once.

    """
    rows = np.arange(ROWS) if rows is None else rows
    parts = [
        PackedRows(
            number,
            list(CODING.codes(VALUES[some])),
            LABELS[some].astype(np.uint8),
            Summary({number: len(some)}, 0, ()),
            NamedRows.of(digests[WHOSE[some]]),
        )
        for number, some in enumerate(rows[slice(*pair)] for pair in pairwise([0, *ends, None]))
    ]
    known = merged_persons([distinct_persons(part) for part in parts])
    return [with_numbers(*pair) for pair in zip(parts, known.of_parts(), strict=True)]


def _placing(parts: list[PackedRows]) -> Placing:
    return Placing(
        firsts={part.number: 0 for part in parts},
        key=KEY,
        row_count=PERSONS,
        size=SIZE,
        coding=CODING,
        hypothesis=None,
    )


def _placed(parts: list[PackedRows]) -> PlacedRows:
    return _placing(parts).placed(list(parts))


def _rows_of(placed: PlacedRows, chunk: int) -> list[bytes]:
    """Return a chunk's rows with their labels, sorted."""
    codes, labels, _ = placed.of_chunks(slice(chunk, chunk + 1))
    return sorted(row.tobytes() for row in np.vstack([codes, labels]).T.astype(np.uint8))


@pytest.mark.parametrize("ends", [(), (1,), (300, 300, 899), (100, 500)])
def test_all_rows_of_a_person_are_in_the_chunk_of_its_slot(ends: tuple[int, ...]) -> None:
    """Wherever parts end, and in any order of them."""
    placed = _placed(_parts(DIGESTS, ends)[::-1])
    slots = Slots(KEY, PERSONS).of(np.arange(PERSONS))
    chunks = np.searchsorted(chunk_offsets(PERSONS, SIZE), slots, side="right")[WHOSE] - 1
    codes = CODING.codes(VALUES)
    for chunk in range(SIZE):
        rows = np.vstack([codes, LABELS])[:, chunks == chunk].T.astype(np.uint8)
        assert _rows_of(placed, chunk) == sorted(row.tobytes() for row in rows)


def _replaced() -> tuple[list[PackedRows], list[PackedRows]]:
    """Return rows of persons, and the same but that one gives way to another with 50 rows."""
    others = DIGESTS.copy()
    others[REPLACED] = np.uint64(2**64 - 1)  # sorts last
    theirs = np.flatnonzero(WHOSE == REPLACED)
    rows = np.concatenate([np.flatnonzero(WHOSE != REPLACED), np.resize(theirs, 50)])
    return _parts(DIGESTS, (400,)), _parts(others, (400,), rows)


def _changed_chunks(placed: PlacedRows, other: PlacedRows) -> int:
    return sum(_rows_of(placed, chunk) != _rows_of(other, chunk) for chunk in range(SIZE))


class _Coupled(Slots):
    """The bijection of persons to slots that is the same but for the two that differ."""

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots of persons, of whom one now sorts last."""
        follows = np.array([*range(REPLACED), PERSONS - 1, *range(REPLACED, PERSONS - 1)])
        slots = np.empty(PERSONS, dtype=np.int64)
        slots[follows] = super().of(np.arange(PERSONS))
        return slots[positions]


class _InOrder(Slots):
    """The planted fault: a person's slot is its number."""

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return numbers as they are."""
        return positions


class _ByDigest(Slots):
    """The planted fault: a person's chunk is its digest modulo their number."""

    digests = DIGESTS[:, 1]

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first slot of each person's chunk."""
        return (self.digests[positions] % np.uint64(SIZE)).astype(np.int64) * PERSONS // SIZE


class _ByOtherDigest(_ByDigest):
    """The same, where one person has given way to another who sorts last."""

    digests = np.append(np.delete(DIGESTS[:, 1], REPLACED), DIGESTS[REPLACED, 1] + np.uint64(1))


def test_a_person_who_is_replaced_changes_one_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the coupling of the proof; slots by digests, or in their order, change more."""
    rows, others = _replaced()
    placed = _placed(rows)
    with monkeypatch.context() as patched:
        patched.setattr(placed_rows, "Slots", _Coupled)
        assert _changed_chunks(placed, _placed(others)) == 1
    with monkeypatch.context() as patched:
        patched.setattr(placed_rows, "Slots", _ByDigest)
        by_digest = _placed(rows)
        patched.setattr(placed_rows, "Slots", _ByOtherDigest)
        assert _changed_chunks(by_digest, _placed(others)) == 2
    monkeypatch.setattr(placed_rows, "Slots", _InOrder)
    assert _changed_chunks(_placed(rows), _placed(others)) > SIZE // 2


def test_counts_are_by_the_weights_of_persons() -> None:
    """Of parts in any order the same: those of rows that count for one over their number."""
    counting = LabelCounts(CODING, 2, DEPTH, WEIGHT_UNITS)
    weights = (WEIGHT_UNITS // np.bincount(WHOSE))[WHOSE] / WEIGHT_UNITS
    parts = _parts(DIGESTS, (250, 251))
    total = counting.of(parts[2])
    for part in (parts[0], parts[1]):
        total = counting.merged(total, counting.of(part))
    counted = counting.finished(total)
    expected = np.bincount(LABELS, weights, minlength=2)
    np.testing.assert_array_equal(counted.label_counts(), expected)
    bits = CODING.bits(CODING.codes(VALUES))
    for label in range(2):
        of_label = weights * (label == LABELS)
        np.testing.assert_array_equal(counted.single_counts()[label], of_label @ bits)
    assert counted.is_of(PERSONS)
    assert not counted.is_of(PERSONS // 2)
    assert counted.number == np.float64


def test_rows_without_weights_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault 19: rows of weight 1 are more than the public n persons count for."""
    counting = LabelCounts(CODING, 2, DEPTH, WEIGHT_UNITS)

    def one_a_row(persons: PersonRows) -> NDArray[np.int64]:
        return np.full(len(persons.counts), WEIGHT_UNITS)

    monkeypatch.setattr(PersonRows, "weight_units", property(one_a_row))
    (part,) = _parts(DIGESTS, ())
    assert not counting.finished(counting.of(part)).is_of(PERSONS)


def test_persons_are_numbered_once() -> None:
    """A part whose persons have numbers has no digests any more."""
    (part,) = _parts(DIGESTS, ())
    assert part.named is None
    with pytest.raises(InvariantError, match="names until they have numbers"):
        distinct_persons(part)
