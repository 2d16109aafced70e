"""Faults planted in persons of a release that grows, and the check that sees each.

The numbers are those of the table in docs/audit.md: 17 and 18 place persons by their identifiers,
19 weighs their rows otherwise, 21 counts rows, and 22 gives a person a second slot.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.data.persons import IDENTITY_BYTES, WEIGHT_UNITS, Persons
from app.errors import InvariantError
from app.learning.chunks import chunk_offsets
from app.ledger.entries.generations import generations_of
from app.noise.scripted import ScriptedNoise
from app.release.generations import appending, generations_opening
from app.release.generations.person_batches import Batch
from app.release.generations.slots import Slots, drawn_slots
from tests.builders.release.growing_persons import FIRST, PersonsRelease, keyed_rows
from tests.builders.release.named_rows import slots_of
from tests.builders.release.small_release import seeded_noise
from tests.unit.answering.erasures.test_erasures import pass_tick
from tests.unit.answering.erasures.test_persons import FEW, life

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.data.rows import PrivateRows
    from app.noise.source import NoiseSource

KEY = b"k" * 32
CHUNKS = 4
REPLACED = "a17"
BY = "h5000"
ROWS_BY = 50
LATER = 9


class Prescribed:
    """Noise whose permutation is given; a secret is always the same."""

    def __init__(self, order: list[int]) -> None:
        """Give this order."""
        self._order = order

    def permutation(self, count: int) -> list[int]:
        """Return the order, which is of so many."""
        assert len(self._order) == count
        return self._order

    def secret(self, count: int) -> bytes:
        """Return zeros."""
        return bytes(count)


def placed(rows: PrivateRows, order: Any) -> Slots:
    """Return persons, by their numbers, in the slots of an order."""
    noise: Any = Prescribed([int(number) for number in order])
    return drawn_slots(rows, noise)


def coupled(rows: PrivateRows, noise: NoiseSource) -> Slots:
    """Return persons in slots by a coupling of Lemma 5: by where the source names them first.

    The permutation is uniform for whatever numbering, so that two lives may be compared in which
    persons in common have the same slots.
    """
    del noise
    assert rows.persons is not None
    _, first = np.unique(rows.persons.numbers, return_index=True)
    arrival = np.argsort(first)
    return placed(rows, arrival[seeded_noise(5).permutation(len(arrival))])


def by_hash(rows: PrivateRows, noise: NoiseSource) -> Slots:
    """Return persons in chunks by a hash of their identifiers."""
    del noise
    assert rows.persons is not None
    return placed(rows, np.argsort(rows.persons.identities[:, -1] % CHUNKS, kind="stable"))


def in_sorted_order(rows: PrivateRows, noise: NoiseSource) -> Slots:
    """Return persons in the order of their identifiers, without a permutation over it."""
    del noise
    return placed(rows, range(rows.count))


def chunks_of(kept: Slots) -> list[Counter[bytes]]:
    """Return the rows of each chunk, whatever their order."""
    bounds = kept.before(chunk_offsets(kept.count, CHUNKS)).tolist()
    held = kept.held.tolist()
    return [
        Counter(kept.values[place].tobytes() for place in held[one:two])
        for one, two in pairwise(bounds)
    ]


def differing(one: list[Counter[bytes]], two: list[Counter[bytes]]) -> int:
    """Return how many chunks hold other rows."""
    return sum(mine != theirs for mine, theirs in zip(one, two, strict=True))


def first_rows(name: str) -> dict[str, int]:
    """Return the persons of generation 1, with one in the place of another."""
    return {
        (name if each == REPLACED else each): (ROWS_BY if each == REPLACED == name else count)
        for each, count in FIRST.items()
    }


def most_moved(place: Callable[[PrivateRows, Any], Slots]) -> int:
    """Return the most chunks that one person moves, of twenty by whom it is replaced."""
    before = chunks_of(place(keyed_rows(KEY, first_rows(REPLACED)), None))
    others = [f"h{5000 + number}" for number in range(20)]
    return max(
        differing(before, chunks_of(place(keyed_rows(KEY, first_rows(each)), None)))
        for each in others
    )


def test_a_person_moves_one_chunk() -> None:
    """Replaced by anybody, with any number of rows."""
    assert most_moved(coupled) == 1


@pytest.mark.parametrize("planted", [by_hash, in_sorted_order])
def test_persons_that_are_placed_by_their_identifiers_move_more(
    planted: Callable[[PrivateRows, Any], Slots],
) -> None:
    """Faults 17 and 18: all between the two identifiers move, and both their chunks change."""
    assert most_moved(planted) > 1


def lived(folder: Path, name: str) -> list[Counter[bytes]]:
    """Return all chunks of two generations; a person has rows in the first, and comes back."""
    folder.mkdir()
    changes = {"answers__ensemble": str(CHUNKS)}
    growing = PersonsRelease(folder, changes, first=first_rows(name))
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    growing.append_persons(ledger, {**FEW, name: LATER})
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    kept = generations_of(ledger.read_state().generations).kept
    found = [chunk for each in kept for chunk in chunks_of(slots_of(ledger, each.number))]
    ledger.close()
    return found


def everybody_is_new(transaction: object, rows: PrivateRows) -> Batch:
    """Return a batch in which nobody is known."""
    del transaction
    return Batch(rows)


@pytest.mark.parametrize("is_planted", [False, True])
def test_a_person_who_comes_back_moves_one_chunk_of_all_generations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_planted: bool
) -> None:
    """Fault 22: with a slot in each of two generations, replaced in both, a person moves two."""
    monkeypatch.setattr(appending, "drawn_slots", coupled)
    if is_planted:
        monkeypatch.setattr(appending, "sorted_out", everybody_is_new)
    lives = [lived(tmp_path / name, name) for name in (REPLACED, BY)]
    assert differing(*lives) == (2 if is_planted else 1)


def one_person(count: int) -> Slots:
    """Return the slot of one person with so many rows."""
    return Slots(
        values=np.zeros((count, 1)),
        labels=np.zeros(count, np.int64),
        is_filled=np.ones(1, np.bool_),
        secret=bytes(32),
        identities=np.zeros((1, IDENTITY_BYTES), np.uint8),
        starts=np.array([0, count]),
    )


def weight_of(count: int) -> float:
    """Return what a person with so many rows counts for in a draw."""
    weights = one_person(count).weights
    assert weights is not None
    return float(weights.sum())


MANY = 2 * WEIGHT_UNITS // 3
"""Rows of a unit and a half each, which to the nearest are two."""


def to_the_nearest(persons: Persons) -> np.ndarray:
    """Return weights rounded to the nearest."""
    return np.asarray(np.floor(WEIGHT_UNITS / persons.row_counts + 0.5) / WEIGHT_UNITS)


def one_a_row(persons: Persons) -> np.ndarray:
    """Return the weights of rows that count for one each."""
    return np.ones(len(persons.numbers))


def test_a_person_counts_for_one_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fault 19: a draw at epsilon moves by what a person's rows weigh, times epsilon."""
    assert all(weight_of(count) <= 1 for count in (1, 3, 682, MANY, WEIGHT_UNITS + 1))
    monkeypatch.setattr(Persons, "weights", property(to_the_nearest))
    assert weight_of(MANY) > 1.3
    monkeypatch.setattr(Persons, "weights", property(one_a_row))
    assert weight_of(3) == 3


@pytest.mark.parametrize("planted", [None, one_a_row])
def test_rows_that_count_for_one_each_come_to_no_draw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Any
) -> None:
    """Fault 19: what is drawn from has the public n, by which rows are found out."""
    if planted is None:
        monkeypatch.setattr(Slots, "weights", None)
    else:
        monkeypatch.setattr(Persons, "weights", property(planted))
    with pytest.raises(InvariantError, match=r"public n (rows|persons)"):
        PersonsRelease(tmp_path).open()


def test_a_descent_gets_the_number_of_rows_of_each_person() -> None:
    """Fault 20, which tests/unit/auditing plants: residuals are divided by it, toward zero."""
    three = replace(
        one_person(7),
        is_filled=np.array([True, False, True]),
        identities=np.zeros((3, IDENTITY_BYTES), np.uint8),
        starts=np.array([0, 2, 2, 7]),
    )
    rows = three.held_rows()
    counts = rows.person_row_counts
    assert counts is not None
    assert (rows.count, counts.tolist()) == (2, [2, 2, 5, 5, 5, 5, 5])


def test_a_size_by_the_number_of_rows_shows_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 21: k by n, where n counts rows, is another in a life with more copies of a row."""
    real, rows = vars(generations_opening)["ensemble_parameters"], [0]
    refuse = generations_opening.refuse_living

    def noting(configuration: Any, given: PrivateRows, *more: Any) -> Any:
        rows[0] = len(given.labels)
        return refuse(configuration, given, *more)

    def by_rows(configuration: Any, **given: Any) -> Any:
        found = real(configuration, **given)
        wanted = real(configuration, **{**given, "row_count": rows[0]})
        assert found is not None
        assert wanted is not None
        return replace(found, size=min(wanted.size, given["row_count"]))

    monkeypatch.setattr(generations_opening, "refuse_living", noting)
    monkeypatch.setattr(generations_opening, "ensemble_parameters", by_rows)
    plain = life(tmp_path / "plain")
    assert life(tmp_path / "copies", copies=900) != plain
