"""The fingerprint of a multiset of rows is a sum, and tells other rows apart."""

from __future__ import annotations

import numpy as np
import pytest

from app.data.persons import IDENTITY_BYTES, Persons
from app.data.rows import PrivateRows
from app.data.streaming.fingerprint_sums import MODULUS, fingerprint_of_sum, sum_of_rows
from app.data.streaming.streamed_rows import row_sum_fingerprint
from app.errors import InvariantError

KEY = b"k" * 32
GENERATOR = np.random.default_rng(1)
VALUES = GENERATOR.random((200, 3))
LABELS = GENERATOR.integers(0, 2, 200)
TOTAL = sum_of_rows(VALUES, LABELS, KEY)


def test_a_sum_is_of_the_multiset() -> None:
    """Any order and any division into parts give the same sum."""
    order = GENERATOR.permutation(200)
    parts = [sum_of_rows(VALUES[part], LABELS[part], KEY) for part in np.array_split(order, 7)]
    assert sum(parts) % MODULUS == TOTAL
    assert sum_of_rows(VALUES[:0], LABELS[:0], KEY) == 0


@pytest.mark.parametrize("place", [(0, 0), (7, 2), (199, 1)])
def test_another_value_is_another_sum(place: tuple[int, int]) -> None:
    """One bit of one value in one row shows."""
    changed = VALUES.copy()
    changed[place] = np.nextafter(changed[place], 2)
    assert sum_of_rows(changed, LABELS, KEY) != TOTAL


def test_columns_do_not_add_up() -> None:
    """Rows that exchange a value, or a label, are other rows, though their columns are alike."""
    changed = VALUES.copy()
    changed[[0, 1], 2] = changed[[1, 0], 2]
    assert sum_of_rows(changed, LABELS, KEY) != TOTAL
    labels = LABELS.copy()
    first = int(np.flatnonzero(labels != labels[0])[0])
    labels[[0, first]] = labels[[first, 0]]
    assert sum_of_rows(VALUES, labels, KEY) != TOTAL


def test_a_row_twice_is_not_a_row_once() -> None:
    """The sum counts: it is no exclusive or, in which two alike would vanish."""
    twice = np.concatenate([VALUES, VALUES[:1], VALUES[:1]])
    labels = np.concatenate([LABELS, LABELS[:1], LABELS[:1]])
    assert sum_of_rows(twice, labels, KEY) != TOTAL


def test_the_key_and_the_numbers_are_in_the_fingerprint() -> None:
    """Another key, number of rows or of columns is another fingerprint of the same sum."""
    known = fingerprint_of_sum(TOTAL, row_count=200, width=3, key=KEY)
    assert known == fingerprint_of_sum(TOTAL, row_count=200, width=3, key=KEY)
    others = {
        fingerprint_of_sum(TOTAL, row_count=200, width=3, key=b"l" * 32),
        fingerprint_of_sum(TOTAL, row_count=201, width=3, key=KEY),
        fingerprint_of_sum(TOTAL, row_count=200, width=4, key=KEY),
        fingerprint_of_sum((TOTAL + 1) % MODULUS, row_count=200, width=3, key=KEY),
    }
    assert len(others | {known}) == 5
    assert sum_of_rows(VALUES, LABELS, b"l" * 32) != TOTAL


def test_persons_are_hashed_with_their_rows() -> None:
    """Their digests count, as a key of their own does; rows of nobody known have no sum."""
    digests = np.random.default_rng(2).integers(0, 2**64, (len(LABELS), 2), dtype=np.uint64)
    named = sum_of_rows(VALUES, LABELS, KEY, digests)
    assert named != TOTAL
    assert named != sum_of_rows(VALUES, LABELS, KEY, digests[::-1].copy())
    assert sum_of_rows(VALUES, LABELS, KEY, np.zeros_like(digests)) != TOTAL
    halves = [
        sum_of_rows(VALUES[h], LABELS[h], KEY, digests[h])
        for h in np.split(GENERATOR.permutation(200), 2)
    ]
    assert sum(halves) % MODULUS == named
    numbers = np.arange(len(LABELS))
    identities = np.zeros((len(LABELS), IDENTITY_BYTES), dtype=np.uint8)
    persons = Persons(numbers, identities)
    with pytest.raises(InvariantError, match="digests of their identifiers"):
        row_sum_fingerprint(PrivateRows(VALUES.copy(), LABELS.copy(), persons), KEY)
