"""Finite lists of public hypotheses as arrays, and counts of their errors.

A list is public: it is fixed by the schema, a grid or public points.  Rows go
in encoded, as the list reads them, and a row's code and labels depend on that
row only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

# Rows as a class reads them: bits of tests, numbers, or integer coordinates.
Encoded: TypeAlias = "NDArray[np.generic]"
# A plain public description of one hypothesis, enough to predict by.
Description: TypeAlias = "Mapping[str, object]"

# Predictions held at once, one or two bytes each.
PREDICTIONS_PER_BLOCK = 1 << 22
ROWS_PER_BLOCK = 1 << 12
# Bits of a signed integer that a group's number and its next labels share.
KEY_BITS = 62


class HypothesisList(Protocol):
    """The interface of a finite list of hypotheses (functions from rows to class indices)."""

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        ...

    @property
    def public_frequencies(self) -> NDArray[np.float64]:
        """A public estimate of how often each hypothesis gives label 1; one half if unknown."""
        ...

    def __len__(self) -> int:
        """Return the number of hypotheses, N."""
        ...

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the encoding that :meth:`predict` needs.

        Args:
            values: encoded by the public schema, shape ``(n, d)``.

        Returns:
            Rows along the first axis.

        """
        ...

    def predict(self, encoded: Encoded) -> NDArray[np.unsignedinteger]:
        """Return the labels of all hypotheses, shape ``(N, n)``.

        Callers ask for as much as they can hold, by :meth:`take` and by rows.
        """
        ...

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each hypothesis's exact number of errors on the rows, shape ``(N,)``. Secret."""
        ...

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the hypotheses at ``indices`` in that order; repeats are allowed."""
        ...

    def describe(self, index: int) -> Description:
        """Return one hypothesis as plain lists and numbers that suffice to predict."""
        ...


def count_errors(
    hypotheses: HypothesisList, encoded: Encoded, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of errors of every hypothesis, computed block by block.

    Args:
        hypotheses: any list.
        encoded: rows as the list reads them, shape ``(n, ...)``.
        labels: class indices, shape ``(n,)``.

    Returns:
        Shape ``(N,)``.

    """
    errors = np.zeros(len(hypotheses), dtype=np.int64)
    for indices in _index_blocks(len(hypotheses), len(labels)):
        part = hypotheses.take(indices)
        for start in range(0, len(labels), ROWS_PER_BLOCK):
            rows = slice(start, start + ROWS_PER_BLOCK)
            errors[indices] += np.count_nonzero(part.predict(encoded[rows]) != labels[rows], axis=1)
    return errors


def distinct_on(hypotheses: HypothesisList, encoded: Encoded) -> NDArray[np.int64]:
    """Return the index of the first hypothesis for each distinct labelling of some points.

    Hypotheses are grouped by their labels on a few points at a time, each
    group then by the next ones: exact, in memory that does not grow with the
    points.  One that is alone in its group is done with.  Without points all
    hypotheses agree, and the first one stands.
    """
    label_bits = max(1, (hypotheses.class_count - 1).bit_length())
    width = (KEY_BITS - len(hypotheses).bit_length()) // label_bits
    invariant(width >= 1, "a group and a label fit an integer")
    indices = np.arange(len(hypotheses), dtype=np.int64)
    groups = np.zeros(len(hypotheses), dtype=np.int64)
    alone: list[NDArray[np.int64]] = []
    for start in range(0, len(encoded), width):
        words = _words(hypotheses, indices, encoded[start : start + width], label_bits)
        keys = groups << (width * label_bits) | words
        _, groups, counts = np.unique(keys, return_inverse=True, return_counts=True)
        shared = counts[groups] > 1
        alone.append(indices[~shared])
        indices, groups = indices[shared], groups[shared]
    _, first = np.unique(groups, return_index=True)
    return np.sort(np.concatenate([*alone, indices[first]]))


def _words(
    hypotheses: HypothesisList, indices: NDArray[np.int64], points: Encoded, label_bits: int
) -> NDArray[np.int64]:
    """Return the labels of some hypotheses on a few points as one integer each."""
    words = np.zeros(len(indices), dtype=np.int64)
    for block in _index_blocks(len(indices), len(points)):
        labels = hypotheses.take(indices[block]).predict(points)
        for place in range(len(points)):
            words[block] |= labels[:, place].astype(np.int64) << (place * label_bits)
    return words


def _index_blocks(hypothesis_count: int, row_count: int) -> Iterator[NDArray[np.int64]]:
    """Yield indices of hypotheses whose predictions on a block of rows can be held at once."""
    step = max(1, PREDICTIONS_PER_BLOCK // max(1, min(row_count, ROWS_PER_BLOCK)))
    for start in range(0, hypothesis_count, step):
        yield np.arange(start, min(start + step, hypothesis_count), dtype=np.int64)
