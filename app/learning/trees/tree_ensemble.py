"""Packed trees together with the public tests that they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from app.errors import LedgerCorruptError
from app.learning.encoding.binary_tests import PackedTests
from app.learning.trees.packed import PackedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest


class TreeEnsemble:
    """An :class:`~app.learning.ensemble.Ensemble` of trees over public tests.

    Args:
        tests: the public tests, which are not stored with the trees.
        packed: the fitted trees.

    """

    def __init__(self, tests: Sequence[BinaryTest], packed: PackedTrees) -> None:
        """Lay out the tests for repeated evaluation."""
        self._asked = tests
        self._tests = PackedTests(tests)
        self._packed = packed

    @property
    def size(self) -> int:
        """Number of votes, k."""
        return self._packed.size

    @property
    def class_count(self) -> int:
        """Number of labels, L."""
        return self._packed.class_count

    @property
    def is_scored(self) -> bool:
        """Whether every vote has a score too."""
        return self._packed.is_scored

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return ``private_vote_count`` of encoded queries ``(B, d)``, shape ``(B, L)``."""
        return self._packed.vote_counts(self._tests.evaluate(values))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ``private_scores`` of encoded queries ``(B, d)``, shape ``(B, k)``."""
        return self._packed.scores(self._tests.evaluate(values))

    def repeated(self, times: int) -> Self:
        """Return an ensemble with every vote so many times."""
        return type(self)(self._asked, self._packed.repeated(times))

    def to_bytes(self) -> bytes:
        """Return the trees as private state."""
        return self._packed.to_bytes()

    @classmethod
    def from_bytes(cls, tests: Sequence[BinaryTest], body: bytes) -> Self:
        """Rebuild the ensemble from :meth:`to_bytes` and the same public tests.

        Raises:
            LedgerCorruptError: the body is no ensemble over these tests.

        """
        packed = PackedTrees.from_bytes(body)
        if packed.test_index_bound > len(tests):
            raise LedgerCorruptError("stored trees ask for tests that do not exist")
        return cls(tests, packed)
