"""The recorded vectors of queries, in a release that answers each public cell only once.

In such a release an answer is found by the cell of its feature vector. The vectors themselves are
recorded too, because a published classifier or a student (a model trained on answers) is later
learned with their help.
Each vector is recorded once, in the transaction of its first reply, until ``ASKED_MAX`` vectors are
recorded; the first vector of a cell is always recorded. The keyed hashes of all recorded vectors
are in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ASKED_MAX: Final = 100_000
"""Vectors after which only the first of a cell is recorded: as many as a draw reads in seconds."""


class AskedVectors:
    """The recorded vectors of queries, looked up by their keyed hashes.

    The object is changed only on the writer's thread, after a commit; any thread may read it.
    """

    def __init__(self, *, are_kept: bool, asked_max: int = ASKED_MAX) -> None:
        """Start with no vectors.

        Args:
            are_kept: whether the release answers each cell only once; in other releases the row of
                an answer contains its vector, and nothing is recorded here.
            asked_max: the largest number of vectors to record in addition to the first one of each
                cell.

        """
        self.are_kept = are_kept
        self._digests: set[bytes] = set()
        self._asked_max = asked_max

    def add(self, posted_digests: Iterable[bytes]) -> None:
        """Add queried vectors that were committed to the ledger."""
        self._digests.update(posted_digests)

    def know(self, posted_digest: bytes) -> bool:
        """Return whether a queried vector is recorded."""
        return posted_digest in self._digests

    def want(self, posted_digest: bytes, *, beside: int = 0) -> bool:
        """Return whether a vector has to be recorded although its cell already has an answer.

        Args:
            posted_digest: the keyed hash of the vector.
            beside: the number of further vectors that the same batch already records.

        """
        has_room = self.are_kept and len(self._digests) + beside < self._asked_max
        return has_room and posted_digest not in self._digests


NOTHING_ASKED: Final = AskedVectors(are_kept=False)
