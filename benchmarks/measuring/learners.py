"""Chunks, estimators and stopwatches that the questions about learners share."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from threadpoolctl import threadpool_limits

from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.encoding.public_columns import PublicColumn, encode_columns
from app.learning.ensemble import Learner, fit_ensemble
from app.learning.hypothesis import ClassAsked
from app.learning.registry import hypothesis_class

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from app.learning.estimators.estimator_choice import Classifier
    from app.learning.hypothesis import Ensemble

LEARNERS: Final = 1000
FEATURES: Final = 14
CHUNK_ROWS: Final = 100
QUERIES: Final = 1000
PAIRS: Final = 7
LOGISTIC: Final = "sklearn.linear_model.LogisticRegression"
TREE: Final = "sklearn.tree.DecisionTreeClassifier"
COLUMNS: Final = (PublicColumn(bounds=(0.0, 1.0)),) * FEATURES
_WEIGHT: Final = 4.0


@dataclass(frozen=True, slots=True)
class Chunks:
    """Rows of numbers whose label a plane and noise decide.

    Attributes:
        values: shape ``(n, 14)``.
        labels: shape ``(n,)``.
        queries: shape ``(1000, 14)``, by the same law.
        query_labels: what the plane says of them, without noise.

    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]
    queries: NDArray[np.float64]
    query_labels: NDArray[np.int64]

    @classmethod
    def draw(cls) -> Chunks:
        """Draw as many rows as 1000 chunks of 100 have; the seed is fixed."""
        generator = np.random.default_rng(20)
        plane = _WEIGHT * generator.normal(size=FEATURES)
        values = generator.random((LEARNERS * CHUNK_ROWS, FEATURES))
        score = (values - 0.5) @ plane + generator.logistic(size=len(values))
        queries = generator.random((QUERIES, FEATURES))
        truth = (queries - 0.5) @ plane > 0
        return cls(values, (score > 0).astype(np.int64), queries, truth.astype(np.int64))

    @property
    def rows(self) -> NDArray[np.float64]:
        """The columns that estimators are given, chunk by chunk, shape ``(k, m, 28)``."""
        return encode_columns(COLUMNS, self.values).reshape(LEARNERS, CHUNK_ROWS, -1)

    @property
    def encoded_queries(self) -> NDArray[np.float64]:
        """The queries as estimators are asked, shape ``(1000, 28)``."""
        return encode_columns(COLUMNS, self.queries)

    @property
    def chunk_labels(self) -> NDArray[np.int64]:
        """Labels chunk by chunk, shape ``(k, m)``."""
        return self.labels.reshape(LEARNERS, CHUNK_ROWS)


def fit_one_by_one(chunks: Chunks, make: Callable[[int], Classifier]) -> list[Classifier]:
    """Fit scikit-learn's estimators in a loop, and nothing around it.

    Args:
        chunks: rows and labels.
        make: given a chunk's index, returns a fresh estimator.

    """
    models = []
    for index, (rows, labels) in enumerate(zip(chunks.rows, chunks.chunk_labels, strict=True)):
        model = make(index)
        model.fit(rows, labels)
        models.append(model)
    return models


def fit(chunks: Chunks, path: str, params: Mapping[str, object]) -> Ensemble:
    """Fit an ensemble as an opening does, from rows and chunks to models that vote."""
    cut = BinaryTest(feature_index=0, cut=0.5, category_code=None, public_frequency=0.5)
    learner = Learner(
        hypothesis_class=hypothesis_class(
            ClassAsked(kind="trees", tests=(cut,), depth=1, class_count=2)
        ),
        estimator=path,
        params=params,
        columns=COLUMNS,
    )
    return fit_ensemble(
        learner,
        chunks.values,
        chunks.labels,
        permutation=np.arange(len(chunks.values)),
        offsets=chunk_offsets(len(chunks.values), LEARNERS),
        secret=b"benchmark",
    )


def processor_seconds(call: Callable[[], object], *, repeats: int = 1) -> float:
    """Return what one call takes of the processor, the mean over repeats."""
    started = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - started) / repeats


def by_turns(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    ours_repeats: int = 1,
    peer_repeats: int = 1,
    pairs: int = PAIRS,
) -> list[tuple[float, float]]:
    """Measure both by turns, after one call of each; processor seconds a call."""
    # One thread, as a server has: the products of both.
    with threadpool_limits(1):
        ours()
        peer()
        return [
            (
                processor_seconds(ours, repeats=ours_repeats),
                processor_seconds(peer, repeats=peer_repeats),
            )
            for _ in range(pairs)
        ]
