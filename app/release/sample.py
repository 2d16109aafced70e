"""Which rows the ensemble is made of, and in which order.

The sample is the first entries of the uniform permutation of all positions, in that
order: a uniformly random subset in uniformly random order, which is what sampling's
amplification is proved for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.learning.encoding.encoded_rows import RowsByPart

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.learning.lists.hypothesis_list import Encoded
    from app.noise.source import NoiseSource


@dataclass(frozen=True, eq=False, slots=True)
class SampledRows:
    """The rows of a sample, left where they are among all rows; secret.

    Attributes:
        rows: all private rows.
        positions: where the sample's are, in its order, shape ``(n',)``.

    """

    rows: PrivateRows = field(repr=False)
    positions: NDArray[np.int64] = field(repr=False)

    @property
    def count(self) -> int:
        """Return n', which is public."""
        return len(self.positions)

    @property
    def values(self) -> NDArray[np.float64]:
        """Return a copy of the sample's values, shape ``(n', d)``."""
        return self.rows.values[self.positions]

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return a copy of the sample's labels, shape ``(n',)``."""
        return self.rows.labels[self.positions]

    def encoded_by(self, encode: Callable[[NDArray[np.float64]], Encoded]) -> RowsByPart:
        """Return the sample as a class encodes it, part by part."""
        return RowsByPart(encode, self.rows.values, self.positions)

    def in_order_of_rows(self, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Put labels of the sample where their rows are; other rows get class 0, shape ``(n,)``."""
        placed = np.zeros(self.rows.count, dtype=np.int64)
        placed[self.positions] = labels
        return placed


def sampled_rows(rows: PrivateRows, permutation: NDArray[np.int64], *, count: int) -> SampledRows:
    """Return the first ``count`` rows of the permutation, in its order.

    Args:
        rows: the private rows.
        permutation: uniform, of all their positions; secret.
        count: n', a public number up to n.

    """
    invariant(len(permutation) == rows.count, "the permutation is of all the rows")
    invariant(1 <= count <= rows.count, "a sample has a row, and no more than there are")
    return SampledRows(rows, permutation[:count])


def chunk_places(count: int, *, with_replacement: bool, noise: NoiseSource) -> NDArray[np.int64]:
    """Return the places of the sample that are cut into chunks, in their order; secret.

    Without replacement the sample is in uniformly random order already.  With it (NB
    Algorithm 3, step 4), each place is drawn anew from all of them.
    """
    if not with_replacement:
        return np.arange(count, dtype=np.int64)
    return np.array([noise.below(count) for _ in range(count)], dtype=np.int64)


def positions_bytes(positions: NDArray[np.int64]) -> bytes:
    """Return positions as a release keeps them."""
    return positions.astype("<u4").tobytes()
