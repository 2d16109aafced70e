"""A keyed permutation gives each unit one slot, part by part, whatever the rows are."""

from __future__ import annotations

import numpy as np
import pytest

from app.errors import InvariantError
from app.learning.chunks import chunk_offsets
from app.privacy.voting.keyed_slots import KEY_BYTES, UNIT_COUNT_MAX, Slots, chunk_of_slots

KEY = bytes(range(KEY_BYTES))
COUNTS = (1, 2, 3, 7, 97, 1000, 65_536, 65_537)


@pytest.mark.parametrize("count", COUNTS)
def test_every_slot_is_taken_once(count: int) -> None:
    """It is a permutation for any n, squares and their neighbours included."""
    slots = Slots(KEY, count).of(np.arange(count))
    assert np.array_equal(np.sort(slots), np.arange(count))


def test_a_part_is_placed_alone() -> None:
    """A row's slot follows from its position, whoever places it beside which others."""
    together = Slots(KEY, 10_000).of(np.arange(10_000))
    some = np.random.default_rng(1).permutation(10_000)[:137]
    assert np.array_equal(Slots(KEY, 10_000).of(some), together[some])


def test_another_key_is_another_order() -> None:
    """Keys that differ in a bit agree on no more slots than chance has it."""
    first = Slots(KEY, 10_000).of(np.arange(10_000))
    second = Slots(KEY[:-1] + bytes([KEY[-1] ^ 1]), 10_000).of(np.arange(10_000))
    # A uniform permutation has one fixed point on average, and 12 with probability 1e-9.
    assert np.count_nonzero(first == second) < 12


def test_neighbours_in_the_source_part() -> None:
    """Of pairs of adjacent positions, as many share one of 100 chunks as uniform slots give."""
    count, size = 200_000, 100
    chunks = chunk_of_slots(Slots(KEY, count).of(np.arange(count)), count=count, size=size)
    shared = np.count_nonzero(chunks[1:] == chunks[:-1])
    # Binomial(200000, 1/100): mean 2000, standard deviation 44; six of those are 267.
    assert abs(shared - 2000) < 267
    halves = np.bincount(chunks[: count // 2], minlength=size)
    # Hypergeometric with mean 1000 and standard deviation 22.
    assert np.abs(halves - 1000).max() < 150


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("count", [1, 5, 97, 1000])
def test_chunks_of_slots_are_those_of_the_offsets(count: int, size: int) -> None:
    """Slots are cut where a permutation of rows in memory is cut."""
    offsets = chunk_offsets(count, size)
    cut = np.searchsorted(offsets, np.arange(count), side="right") - 1
    assert np.array_equal(chunk_of_slots(np.arange(count), count=count, size=size), cut)


@pytest.mark.parametrize(("key", "count"), [(KEY[:-1], 10), (KEY, 0), (KEY, UNIT_COUNT_MAX + 1)])
def test_what_is_no_key_or_number_is_refused(key: bytes, count: int) -> None:
    """A short key and an impossible number of units are mistakes of the caller."""
    with pytest.raises(InvariantError):
        Slots(key, count)
