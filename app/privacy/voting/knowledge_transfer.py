"""Answered queries as the training set of a student, a model that costs no budget.

**Algorithm.** A_priv (Bassily, Thakkar, Thakurta 2018, Algorithm 5).

**Claim.** No charge: the training set is a function of queries and of labels that were released, so
a student trained on it, by any learner and any number of times, is as private as the labels are.

**Proof.** Post-processing: ``app/privacy/voting/knowledge_transfer_proof.md``.

**Inputs and outputs.** In: m queries of d features, float64 (m, d), public; ``released_labels``:
for each query a class index that was released, or None. Out: the m' queries that have a released
label, float64 (m', d), and their labels, int64 (m',), in the order of the queries.

**Utility.** Suppose that at most T of m queries have no released label. A hypothesis that disagrees
with e of the released labels is then wrong on at most e + T of all m queries, if the released
labels are right.

**Deviations.** Queries without a label are left out, whereas Algorithm 5 gives them random labels.
A random label that was released may be passed in as a label.

**Raises.** ``InvariantError``: the numbers of labels and queries differ, or a label is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TABLE_DIMENSIONS = 2


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """The training set of a student model: queries with released labels; public.

    Attributes:
        values: the labelled queries, float64, shape ``(m', d)``.
        labels: their released labels, int64, shape ``(m',)``.

    """

    values: NDArray[np.float64]
    labels: NDArray[np.int64]


def training_set(
    query_values: NDArray[np.float64], released_labels: Sequence[int | None]
) -> TrainingSet:
    """Return the queries that have a released label, with these labels."""
    invariant(query_values.ndim == TABLE_DIMENSIONS, "queries are rows of a table")
    invariant(len(released_labels) == len(query_values), "each query has a label or none")
    labelled = [index for index, label in enumerate(released_labels) if label is not None]
    labels = np.array([released_labels[index] for index in labelled], dtype=np.int64)
    invariant(bool((labels >= 0).all()), "a label is a class index")
    return TrainingSet(query_values[labelled], labels)
