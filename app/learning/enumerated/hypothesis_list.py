"""Finite public lists of hypotheses, and counts of their errors.

A list is public: it is fixed by the public schema, a public grid or public points. The list encodes
rows (for example as outcomes of feature tests) before it predicts their labels; the encoded form
and the predicted labels of a row depend on this row only.
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
        """The number of labels."""
        ...

    @property
    def public_frequencies(self) -> NDArray[np.float64]:
        """A public estimate of the share of rows that each hypothesis gives label 1.

        The estimate is one half if nothing is known.
        """
        ...

    def __len__(self) -> int:
        """Return the number of hypotheses."""
        ...

    def encode(self, values: NDArray[np.float64]) -> Encoded:
        """Return rows in the encoding that :meth:`predict` needs.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        Returns:
            The encoded rows; the first axis counts the rows.

        """
        ...

    def predict(self, encoded: Encoded) -> NDArray[np.unsignedinteger]:
        """Return the labels that all hypotheses give to rows, shape ``(hypotheses, rows)``.

        A caller that lacks memory for the whole result passes fewer rows, or selects fewer
        hypotheses by :meth:`take`.

        Args:
            encoded: the rows, encoded by :meth:`encode`.

        """
        ...

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each hypothesis's exact number of errors on the rows; secret.

        Args:
            encoded: the rows, encoded by :meth:`encode`.
            labels: class indices, shape ``(rows,)``.

        Returns:
            Numbers of errors, shape ``(hypotheses,)``.

        """
        ...

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the hypotheses at ``indices`` in that order; repeats are allowed."""
        ...

    def describe(self, index: int) -> Description:
        """Return one hypothesis as plain lists and numbers, from which it can be made again."""
        ...


def count_errors(
    hypotheses: HypothesisList, encoded: Encoded, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the number of errors of every hypothesis, computed block by block.

    Args:
        hypotheses: any list.
        encoded: rows in the encoding of the list; the first axis counts the rows.
        labels: class indices, shape ``(rows,)``.

    Returns:
        Numbers of errors, shape ``(hypotheses,)``.

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

    Hypotheses are grouped by their labels on a few points; then each group is divided by the next
    few points, until all points are used. The result is exact, and the memory does not grow with
    the number of points. Without points, only the first hypothesis is kept.

    Args:
        hypotheses: the list.
        encoded: the points, in the encoding of the list.

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
