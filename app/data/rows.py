"""Private rows, encoded by public rules only, and the keyed fingerprint of their multiset."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """The private rows of a release; secret, and never shown by ``repr``.

    Attributes:
        values: float64 (n, d); a number clipped to its bounds, NaN where it
            is missing; the code of a category.
        labels: int64 (n,); the index of the label among the classes.
        fingerprints: those computed so far, by their keys; the arrays are frozen.

    """

    values: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    fingerprints: dict[bytes, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze both arrays."""
        invariant(self.values.shape[:1] == self.labels.shape, "every row has one label")
        self.values.flags.writeable = False
        self.labels.flags.writeable = False

    @property
    def count(self) -> int:
        """Return n, which is public."""
        return len(self.labels)


DOMAIN = b"conclave rows v1"
LENGTH_BYTES = 8


def fingerprint(rows: PrivateRows, key: bytes) -> str:
    """Return HMAC-SHA-256 over the encoded rows in sorted order.

    Sorting makes it a function of the multiset; the key, a secret of the
    database, keeps it from saying anything: a bare hash of private rows would
    itself be a leak.  One copy of the rows is made, and sorted in place; the same
    rows under the same key are sorted once.

    Args:
        rows: the private rows, encoded.
        key: the secret of the database.

    Returns:
        64 hexadecimal digits.

    """
    if key not in rows.fingerprints:
        rows.fingerprints[key] = _digest(rows, key)
    return rows.fingerprints[key]


def _digest(rows: PrivateRows, key: bytes) -> str:
    table = np.empty((rows.count, rows.values.shape[1] + 1), dtype="<f8")
    table[:, :-1] = rows.values
    table[:, -1] = rows.labels
    digest = hmac.new(key, DOMAIN, hashlib.sha256)
    for length in table.shape:
        digest.update(length.to_bytes(LENGTH_BYTES, "big"))
    row_bytes = table.view(f"V{table.shape[1] * table.itemsize}")
    row_bytes.sort(axis=0)
    digest.update(table.data)
    return digest.hexdigest()
