"""Small releases whose rows are of persons, of any number each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.data.persons import Persons
from app.data.rows import PrivateRows
from tests.builders.release.small_release import SmallRelease

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PERSON = {"data__person": "who"}
IDENTITY_BYTES = 16


def identities(numbers: Sequence[int]) -> NDArray[np.uint8]:
    """Return digests that ascend with these numbers."""
    digests = [number.to_bytes(IDENTITY_BYTES, "big") for number in numbers]
    return np.frombuffer(bytearray(b"".join(digests)), dtype=np.uint8).reshape(-1, IDENTITY_BYTES)


def rows_of(
    row_counts: Sequence[int], *, shuffled: int | None = None, names: Sequence[int] | None = None
) -> PrivateRows:
    """Return rows of persons with so many each; all rows of a person are alike.

    A person's margin and label follow from its number alone, so that data sets in which one
    person has more copies of a row differ in nothing else.

    Args:
        row_counts: of each person.
        shuffled: a seed of the order in which the rows lie; None for person by person.
        names: of the persons, ascending; by default 0, 1, ...

    """
    names = range(len(row_counts)) if names is None else names
    numbers = np.repeat(np.arange(len(row_counts)), row_counts)
    if shuffled is not None:
        numbers = np.random.default_rng(shuffled).permutation(numbers)
    margins = np.array([(37 * name) % 100 - 49.5 for name in names])[numbers]
    groups = np.array([name % 4 for name in names], dtype=np.float64)[numbers]
    return PrivateRows(
        values=np.stack([margins, groups], axis=1),
        labels=(margins >= 0).astype(np.int64),
        persons=Persons(numbers, identities(names)),
    )


def of_persons(folder: Path, **changes: str) -> SmallRelease:
    """Return a small release whose rows are of persons, yet to be opened."""
    return SmallRelease(folder, {**PERSON, **changes})


def cells_of_persons(folder: Path) -> SmallRelease:
    """Return one whose learners vote by two public cells, a person each."""
    return of_persons(
        folder,
        hypotheses__class="cells",
        hypotheses__cells='["margin >= 0", "", ""]',
        classifier__class="stumps",
        answers__ensemble="auto",
    )
