"""The private rows, encoded by public rules only, and a keyed fingerprint of all rows."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from app.data.persons import IDENTITY_BYTES, Persons
from app.errors import DataError, InvariantError, invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """The private rows of a release; secret, and never shown by ``repr``.

    Attributes:
        values: encoded feature values, float64, shape ``(rows, features)``: a number clipped to its
            bounds, NaN if it is missing, or the code of a category.
        labels: the index of each row's label among the classes, int64, shape ``(rows,)``.
        persons: the person of each row; None if every row is a unit of privacy.
        identities: the keyed digest of each row's own identifier, uint8, shape ``(rows, 16)``; None
            if rows have no identifier.
        fingerprints: a mapping from secret key to fingerprint, of the fingerprints computed so far.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    persons: Persons | None = field(repr=False, default=None)
    identities: NDArray[np.uint8] | None = field(repr=False, default=None)
    fingerprints: dict[bytes, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every row has one label and one person, and make the arrays read-only."""
        invariant(self.values.shape[:1] == self.labels.shape, "every row has one label")
        same = self.persons is None or self.persons.numbers.shape == self.labels.shape
        invariant(same, "every row has one person")
        self.values.flags.writeable = False
        self.labels.flags.writeable = False

    def in_memory(self) -> Self:
        """Return the object itself, since its rows are in memory already."""
        return self

    @property
    def count(self) -> int:
        """Return the public number of rows, or of persons if a column names them."""
        return len(self.labels) if self.persons is None else self.persons.count

    @property
    def is_of_persons(self) -> bool:
        """Whether a private column names the person of each row."""
        return self.persons is not None

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Return each row's weight in sums over rows, shape ``(rows,)``; None for weight 1 each."""
        return None if self.persons is None else self.persons.weights

    @property
    def person_row_counts(self) -> NDArray[np.int64] | None:
        """Return the number of rows of each row's person, ``(rows,)``; None without persons."""
        return None if self.persons is None else self.persons.row_counts

    def positions(self, units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of all rows of some units; a unit is a row, or a person with all rows.

        Args:
            units: row indices, or the numbers of persons if a column names them, shape
                ``(units,)``.

        Returns:
            The row indices, unit by unit; and the position at which each unit's indices start,
            followed by the number of indices, shape ``(units + 1,)``.

        """
        if self.persons is None:
            return units, np.arange(len(units) + 1, dtype=np.int64)
        return self.persons.positions(units)

    def of_persons(self, numbers: NDArray[np.int64]) -> PrivateRows:
        """Return the rows of some persons only, in the order of the source.

        Args:
            numbers: the numbers of these persons, ascending, shape ``(persons,)``.

        """
        persons = self.persons
        if persons is None:
            raise InvariantError("the rows are of persons")
        renumbered = np.full(persons.count, -1, dtype=np.int64)
        renumbered[numbers] = np.arange(len(numbers))
        theirs = np.flatnonzero(renumbered[persons.numbers] >= 0)
        return PrivateRows(
            self.values[theirs],
            self.labels[theirs],
            Persons(
                renumbered[persons.numbers[theirs]],
                persons.identities[numbers],
                None if persons.digests is None else persons.digests[numbers],
            ),
        )


def named_rows(rows: PrivateRows, expected: int | None) -> PrivateRows:
    """Return rows, each with its own identifier, after checking that no identifier is repeated.

    Rows need identifiers of their own if single rows may be removed from the release later.

    Args:
        rows: the rows, with each row's own identifier in the place of its person's identifier.
        expected: the public number of rows, if it is known.

    Raises:
        DataError: two rows have the same identifier, or the number of rows is not the expected one.

    """
    persons = rows.persons
    if persons is None:
        return rows
    seen: set[int] = set()
    for index, number in enumerate(persons.numbers.tolist()):
        if number in seen:
            raise DataError("data.id", f"row {index + 1} has the identifier of an earlier row")
        seen.add(number)
    if expected not in (None, len(rows.labels)):
        problem = f"says {expected}, but the source has {len(rows.labels)} rows"
        raise DataError("data.rows", problem)
    return PrivateRows(rows.values, rows.labels, identities=persons.identities[persons.numbers])


DOMAIN = b"conclave rows v1"
PERSONS_DOMAIN = b"conclave rows of persons v1"
LENGTH_BYTES = 8
NUMBER_BYTES = 8


def fingerprint(rows: PrivateRows, key: bytes) -> str:
    """Return the HMAC-SHA-256 of all encoded rows in sorted order, each with its person.

    The rows are sorted, so the fingerprint does not depend on their order. The key is a secret that
    the ledger's database keeps: without a key, a digest of private rows would reveal information
    about them.

    Args:
        rows: the private rows, encoded.
        key: the secret key of the fingerprint.

    Returns:
        64 hexadecimal digits.

    """
    if key not in rows.fingerprints:
        rows.fingerprints[key] = _digest(rows, key)
    return rows.fingerprints[key]


def _digest(rows: PrivateRows, key: bytes) -> str:
    persons, width = rows.persons, rows.values.shape[1]
    words = 0 if persons is None else IDENTITY_BYTES // NUMBER_BYTES
    table = np.empty((len(rows.labels), width + 1 + words), dtype="<f8")
    table[:, :width] = rows.values
    table[:, width] = rows.labels
    if persons is not None:
        table.view(np.uint64)[:, width + 1 :] = persons.identities.view(np.uint64)[persons.numbers]
    digest = hmac.new(key, DOMAIN if persons is None else PERSONS_DOMAIN, hashlib.sha256)
    for length in table.shape:
        digest.update(length.to_bytes(LENGTH_BYTES, "big"))
    row_bytes = table.view(f"V{table.shape[1] * table.itemsize}")
    row_bytes.sort(axis=0)
    digest.update(table.data)
    return digest.hexdigest()
