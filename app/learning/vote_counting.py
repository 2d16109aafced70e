"""Fast counting of votes: one addition of integers counts eight votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_VOTES = 8
# Each byte of a word counts up to here.
WORDS_A_SUM = 255


def padded_size(vote_count: int) -> int:
    """Return ``vote_count`` rounded up to a multiple of eight."""
    return -(-vote_count // WORD_VOTES) * WORD_VOTES


def count_votes(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of true values in each row of an array.

    Args:
        flags: a contiguous array, shape ``(rows, votes)``; the number of votes is a multiple of
            eight.

    Returns:
        The counts, shape ``(rows,)``.

    """
    if len(flags) == 1:
        return np.array([np.count_nonzero(flags)])
    words = flags.view(np.uint64)
    counts = np.zeros(len(flags), dtype=np.int64)
    for start in range(0, words.shape[1], WORDS_A_SUM):
        lanes = np.add.reduce(words[:, start : start + WORDS_A_SUM], axis=1)
        counts += lanes.view(np.uint8).reshape(-1, WORD_VOTES).sum(axis=1, dtype=np.int64)
    return counts


def count_by_column(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of true values in each column of an array.

    Args:
        flags: a contiguous array, shape ``(votes, columns)``; the number of columns is one or a
            multiple of eight.

    Returns:
        The counts, shape ``(columns,)``.

    """
    if flags.shape[1] == 1:
        return np.array([np.count_nonzero(flags)])
    words = flags.view(np.uint64)
    counts = np.zeros(flags.shape[1], dtype=np.int64)
    for start in range(0, len(words), WORDS_A_SUM):
        counts += np.add.reduce(words[start : start + WORDS_A_SUM], axis=0).view(np.uint8)
    return counts
