"""Rows made up from the public schema, on which the work of learners is measured.

No private row has a part in them: numbers are uniform within their public bounds,
categories uniform among their codes, labels fair.  Labels that nothing explains make
learners grow as large as so many rows let them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.learning.encoding.public_columns import EXTRA_CODES
from app.learning.learner_seeds import generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.public_columns import PublicColumn

# Public: the same rows every time.
_SEED = b"conclave synthetic rows"


def synthetic_rows(
    columns: Sequence[PublicColumn], *, row_count: int, class_count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Make rows up.

    Args:
        columns: the public encoding, one a feature.
        row_count: how many, n.
        class_count: number of labels.

    Returns:
        Encoded values, shape ``(n, d)``, and class indices, shape ``(n,)``.

    """
    drawn = generator(_SEED)
    values = np.empty((row_count, len(columns)))
    for index, column in enumerate(columns):
        if column.bounds is None:
            codes = (column.category_count or 0) + EXTRA_CODES
            values[:, index] = drawn.integers(0, codes, row_count)
        else:
            lower, upper = column.bounds
            # Halves first: the distance of two bounds may be no double.
            shares = drawn.random(row_count)
            values[:, index] = lower * (1.0 - shares) + upper * shares
    return values, drawn.integers(0, class_count, row_count)
