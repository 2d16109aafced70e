"""Small query releases whose noise is prescribed, or drawn at small scales."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.noise.discrete_laplace import DiscreteLaplace
from app.privacy.multiplicative_weights.mechanism import Parameters
from app.privacy.sparse_vector import mechanism as sparse_vector
from tests.builders.mechanisms.prescribed import PrescribedLaplace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

ROW_COUNT = 40
# Three cuts of four cells, and the cells at either end.
LABELS = ((0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1), (1, 0, 0, 1))
CELL_COUNT = (25, 9, 6, 0)


def table_of(labels: Sequence[Sequence[int]] = LABELS) -> NDArray[np.uint8]:
    """Return labels of queries on cells as a draw takes them."""
    return np.array(labels, dtype=np.uint8)


def counts_of(cells: Sequence[int] = CELL_COUNT) -> NDArray[np.int64]:
    """Return the rows in every cell, frozen."""
    counts = np.array(cells, dtype=np.int64)
    counts.flags.writeable = False
    return counts


def prescribed(
    *,
    labels: Sequence[Sequence[int]] = LABELS,
    row_count: int = ROW_COUNT,
    thresholds: Sequence[int] = (5,),
    updates: int = 3,
    threshold_noise: Iterable[int] = (0,),
    query_noise: Iterable[int] = (),
    answer_noise: Iterable[int] = (),
    test_deviation: int = 0,
    answer_deviation: int = 0,
    refreshed: bool = False,
) -> Parameters:
    """Return parameters whose noise is prescribed."""
    return Parameters(
        labels=table_of(labels),
        row_count=row_count,
        thresholds=tuple(thresholds),
        test=sparse_vector.Parameters(
            threshold=0,
            threshold_noise=PrescribedLaplace(threshold_noise),
            query_noise=PrescribedLaplace(query_noise),
            cutoff=updates,
            refreshed=refreshed,
        ),
        answer_noise=PrescribedLaplace(answer_noise),
        test_deviation=test_deviation,
        answer_deviation=answer_deviation,
    )


def drawn(*, row_count: int = ROW_COUNT, refreshed: bool = False) -> Parameters:
    """Return parameters whose noise is drawn, at scale 2."""
    laplace = DiscreteLaplace(Fraction(2))
    return Parameters(
        labels=table_of(),
        row_count=row_count,
        thresholds=(10, 5),
        test=sparse_vector.Parameters(
            threshold=0,
            threshold_noise=laplace,
            query_noise=laplace,
            cutoff=2,
            refreshed=refreshed,
        ),
        answer_noise=laplace,
        test_deviation=2,
        answer_deviation=2,
    )
