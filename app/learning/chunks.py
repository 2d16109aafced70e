"""Cutting n permuted rows into k chunks of public sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray


def chunk_offsets(row_count: int, chunk_count: int) -> NDArray[np.int64]:
    """Return where each chunk starts, and the end of the last.

    Sizes depend on n and k only and differ by at most one.

    Args:
        row_count: number of permuted rows, n.
        chunk_count: number of chunks, k, at least 1.

    Returns:
        Shape ``(k + 1,)``, from 0 to n; chunk i is rows ``[i], [i + 1]``.

    """
    invariant(row_count >= 0, "the number of rows is not negative")
    invariant(chunk_count >= 1, "there is at least one chunk")
    return np.arange(chunk_count + 1, dtype=np.int64) * row_count // chunk_count
