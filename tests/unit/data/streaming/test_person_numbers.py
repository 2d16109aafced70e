"""Persons of parts: numbers and row counts are those of all rows, in any order of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.data.persons import WEIGHT_UNITS
from app.data.streaming.person_numbers import NamedRows, PersonRows, merged_persons

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 5000
PERSONS = 700
GENERATOR = np.random.default_rng(4)
KNOWN = GENERATOR.integers(0, 2**64, (PERSONS, 2), dtype=np.uint64)
WHOSE = GENERATOR.permutation(
    np.concatenate([np.arange(PERSONS), GENERATOR.integers(0, PERSONS, ROWS - PERSONS)])
)
ALIKE = np.stack([KNOWN[:, 0] >> np.uint64(56), KNOWN[:, 1]], axis=1)
"""Digests whose first words often agree."""


def in_parts(digests: NDArray[np.uint64], ends: list[int]) -> list[NamedRows]:
    """Return the persons of rows that are cut at these places."""
    return [NamedRows.of(part) for part in np.split(digests[WHOSE], ends)]


def numbered(parts: list[NamedRows], order: list[int]) -> list[PersonRows]:
    """Return the parts with numbers, merged in an order."""
    merged = merged_persons([parts[place].distinct for place in order])
    assert merged.count == PERSONS
    known = dict(zip(order, merged.of_parts(), strict=True))
    return [PersonRows(part.codes, *known[place]) for place, part in enumerate(parts)]


@pytest.mark.parametrize("digests", [KNOWN, ALIKE], ids=["first words", "both words"])
@pytest.mark.parametrize("ends", [[], [1, 2500], [900, 900, 4999]])
def test_numbers_and_counts_are_those_of_all_rows(
    digests: NDArray[np.uint64], ends: list[int]
) -> None:
    """Whatever the cuts and the order: ranks of digests, and rows in all parts."""
    ranks = np.empty(PERSONS, dtype=np.int64)
    ranks[np.lexsort((digests[:, 1], digests[:, 0]))] = np.arange(PERSONS)
    counts = np.bincount(WHOSE)
    parts = in_parts(digests, ends)
    places = list(range(len(parts)))
    for order in (places, places[::-1]):
        found = numbered(parts, order)
        of_rows = np.concatenate([each.numbers[each.codes] for each in found])
        np.testing.assert_array_equal(of_rows, ranks[WHOSE])
        row_counts = np.concatenate([each.row_counts(slice(None)) for each in found])
        np.testing.assert_array_equal(row_counts, counts[WHOSE])
        units = np.concatenate([each.weight_units[each.codes] for each in found])
        np.testing.assert_array_equal(units, WEIGHT_UNITS // counts[WHOSE])
    assert repr(parts[0]) == "NamedRows()"


def test_a_person_of_one_part_counted_alone_would_weigh_too_much() -> None:
    """The planted fault: weights by the rows of a part are more than one person's together."""
    parts = in_parts(KNOWN, [2500])
    alone = [WEIGHT_UNITS // part.distinct.row_counts[part.codes] for part in parts]
    total = np.bincount(WHOSE, np.concatenate(alone))
    assert total.max() > WEIGHT_UNITS
    whole = [each.weight_units[each.codes] for each in numbered(parts, [0, 1])]
    assert np.bincount(WHOSE, np.concatenate(whole)).max() <= WEIGHT_UNITS


def test_first_words_that_agree_are_there() -> None:
    """The digests that are compared by both words need it."""
    assert len(np.unique(ALIKE[:, 0])) < PERSONS == len(np.unique(ALIKE, axis=0))
