"""Counting of k models' votes: the winning label, and how many votes may change safely.

**Algorithm.** A_SubSamp (Bassily, Thakkar, Thakurta 2018, Algorithm 4; Nandi and Bassily 2020,
Algorithm 5), steps 7 and 8: the label with the most votes (plurality) and its distance to
instability (the number of votes that may change without changing the plurality), for two or more
labels.

**Claim.** If one vote is replaced the distance moves by at most 1, and if the plurality changes the
distance is 0 on both data sets (Lemma S). Plurality and distance are functions of the private votes
and may not leave the server except through a stability test, which releases the plurality at
random, more likely at a larger distance.

**Proof.** Order statistics are 1-Lipschitz in every count: ``app/privacy/voting/votes_proof.md``.

**Inputs and outputs.** ``private_vote_count``: int64 (B, L), the votes for L labels on B queries, k
in total for each query, secret. Out: the class indices of pluralities (B,) and distances (B,), both
secret, or a ``Tally`` for each query, or the ``Tallies`` of all queries.

**Utility.** If a fraction f of k votes agree, the distance is max(0, ceil((2 f - 1) k / 2) - 1) for
two labels.

**Deviations.** ``max(0, ceil(gap / 2) - 1)`` replaces the printed ``gap`` and ``gap - 1``, which
have sensitivity 2. The gap is the largest vote count minus the second largest.

**Raises.** ``InvariantError``: the input is not a table of non-negative counts with two or more
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE_DIMENSIONS = 2
CLASS_COUNT_MIN = 2


@dataclass(frozen=True, slots=True)
class Tally:
    """The counted votes on one query, its winning label, and its distance to instability; secret.

    Attributes:
        plurality: the class index with the most votes, the smallest index if several have the most.
        distance: the distance to instability, in votes.
        counts: the number of votes for each class.

    """

    plurality: int
    distance: int
    counts: tuple[int, ...]


class Tallies(Sequence[Tally]):
    """The counted votes on many queries, in columns; secret.

    Attributes:
        plurality: the class index with the most votes on each of B queries, shape ``(B,)``.
        distance: each query's distance to instability, in votes, shape ``(B,)``.

    """

    def __init__(self, private_vote_count: NDArray[np.int64]) -> None:
        """Store votes of shape ``(B, L)``; raises the errors of :func:`aggregate`."""
        self.plurality, self.distance = aggregate(private_vote_count)
        self._counts = private_vote_count

    def __len__(self) -> int:
        """Return the number B of queries."""
        return len(self.distance)

    @overload
    def __getitem__(self, index: int) -> Tally: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tally]: ...
    def __getitem__(self, index: int | slice) -> Tally | Sequence[Tally]:
        """Return the counted votes on one query, or on the queries of a slice."""
        if isinstance(index, slice):
            return Tallies(self._counts[index])
        counts = tuple(self._counts[index].tolist())
        return Tally(int(self.plurality[index]), int(self.distance[index]), counts)


def tally_alone(private_counts: Sequence[int]) -> Tally:
    """Return one query's counted votes, faster than for a batch.

    Args:
        private_counts: the number of votes for each class, for two classes or more; secret.

    Raises:
        InvariantError: there are fewer than two classes, or a count is negative.

    """
    invariant(len(private_counts) >= CLASS_COUNT_MIN, "votes are of two or more classes")
    ordered = sorted(private_counts)
    invariant(ordered[0] >= 0, "a vote count is not negative")
    distance = max(0, (ordered[-1] - ordered[-2] + 1) // 2 - 1)  # Lemma S
    return Tally(private_counts.index(ordered[-1]), distance, tuple(private_counts))


def tally(private_vote_count: NDArray[np.int64]) -> list[Tally]:
    """Return the counted votes of every query, with plain integers in place of arrays."""
    plurality, distance = aggregate(private_vote_count)
    counts = map(tuple, private_vote_count.tolist())
    return list(map(Tally, plurality.tolist(), distance.tolist(), counts))


def aggregate(
    private_vote_count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each query's winning label, and how many votes may change without changing it.

    Args:
        private_vote_count: the number of votes for each of L labels on each of B queries, shape
            ``(B, L)``; secret.

    Returns:
        Class indices, shape ``(B,)``, where ties go to the smallest index, and distances to
        instability in votes, shape ``(B,)``.

    """
    invariant(
        private_vote_count.ndim == TABLE_DIMENSIONS
        and private_vote_count.shape[1] >= CLASS_COUNT_MIN,
        "votes are a table with a column for each of two or more classes",
    )
    invariant(bool((private_vote_count >= 0).all()), "a vote count is not negative")
    if private_vote_count.shape[1] == CLASS_COUNT_MIN:
        lead = private_vote_count[:, 1] - private_vote_count[:, 0]
        plurality, gap = (lead > 0).astype(np.int64), np.abs(lead)  # a tie goes to the first
    else:
        plurality = private_vote_count.argmax(axis=1)  # argmax: the first of equals
        two_largest = np.partition(private_vote_count, -2, axis=1)[:, -2:]
        gap = two_largest[:, 1] - two_largest[:, 0]
    distance = np.maximum(0, (gap + 1) // 2 - 1)  # Lemma S
    return plurality.astype(np.int64, copy=False), distance.astype(np.int64, copy=False)
