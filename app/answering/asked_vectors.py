"""The recorded vectors of queries, in a release that answers each region of vectors only once.

An answer is found again by its cell there, and the vectors themselves are what a classifier
takes for its points and a student for its examples.  So each is recorded once, in the
transaction of its first reply, until there are ``ASKED_MAX`` of them; the first vector of a
cell always is.  All of them are in memory, by their digests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ASKED_MAX: Final = 100_000
"""Vectors after which only the first of a cell is recorded: as many as a draw reads in seconds."""


class AskedVectors:
    """The recorded vectors of queries, looked up by their keyed hashes.

    Changed on the writer's thread after a commit, and read on any.
    """

    def __init__(self, *, are_kept: bool, asked_max: int = ASKED_MAX) -> None:
        """Start with no vectors.

        Args:
            are_kept: whether the release decides each cell once; an answer's own row has
                its vector otherwise, and nothing is recorded here.
            asked_max: of further vectors.

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
        """Return whether a vector has to be recorded although its region already has an answer.

        Args:
            posted_digest: of the vector.
            beside: how many a batch records before it.

        """
        has_room = self.are_kept and len(self._digests) + beside < self._asked_max
        return has_room and posted_digest not in self._digests


NOTHING_ASKED: Final = AskedVectors(are_kept=False)
