"""Which rows the ensemble is made of, and in which order.

The sample is the first entries of the uniform permutation of all positions, in that
order: a uniformly random subset in uniformly random order, which is what sampling's
amplification is proved for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.data.rows import PrivateRows
from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource


def sampled_rows(rows: PrivateRows, permutation: NDArray[np.int64], *, count: int) -> PrivateRows:
    """Return the first ``count`` rows of the permutation, in its order.

    Args:
        rows: the private rows.
        permutation: uniform, of all their positions; secret.
        count: n', a public number up to n.

    """
    invariant(len(permutation) == rows.count, "the permutation is of all the rows")
    invariant(1 <= count <= rows.count, "a sample has a row, and no more than there are")
    sample = permutation[:count]
    return PrivateRows(values=rows.values[sample], labels=rows.labels[sample])


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
