"""All trees of an ensemble over the same tests, as flat arrays.

Every inner node reads the outcome of its test on up to 64 queries at once, and
:mod:`app.learning.trees.leaves` does the rest.  Every tree does the same work on
every query, so neither votes nor models show in the time of a reply.

Packed trees together with the public tests that they ask.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.learning.encoding.binary_tests import PackedTests
from app.learning.trees.leaves import (
    BYTE_QUERIES,
    PLACES_MAX,
    WORD_QUERIES,
    LeafSelection,
    reached_leaves,
    selection_order,
    vote_means,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

_MAGIC = b"CPT1"
# Leaves with scores follow the cells.
_MAGIC_SCORED = b"CPT2"
_HEADER = struct.Struct("<4sBHHI")
_CELL = np.dtype("<u2")
_SCORE = np.dtype("<f8")
# Which tests a tree uses is private: more of them must be refused before it is fitted.
PACKED_TESTS_MAX = 1 << 16


class PackedTrees:
    """The trees of k votes, each vote the plurality of ``trees_per_vote`` trees.

    Args:
        trees: shape ``(k * trees_per_vote, 2**(depth + 1) - 1)``: test indices
            in heap order, then leaf labels; the trees of a vote are adjacent.
        depth: levels of tests.
        class_count: number of labels.
        trees_per_vote: trees whose plurality is one vote.
        private_leaf_scores: of every leaf of every tree, in [0, 1], shape
            ``(k * trees_per_vote, 2**depth)``; None where only votes are asked for.

    """

    def __init__(
        self,
        trees: NDArray[np.integer],
        *,
        depth: int,
        class_count: int,
        trees_per_vote: int = 1,
        private_leaf_scores: NDArray[np.float64] | None = None,
    ) -> None:
        """Store one array per node, and the leaf labels as bit masks."""
        node_count = (1 << depth) - 1
        invariant(trees.shape[1] == 2 * node_count + 1, "a packed tree has its nodes and leaves")
        scored = private_leaf_scores is None or private_leaf_scores.shape == (
            len(trees),
            node_count + 1,
        )
        invariant(scored, "every leaf has its score")
        self._leaf_scores = private_leaf_scores
        self.depth = depth
        self.class_count = class_count
        self.trees_per_vote = trees_per_vote
        self._cells = np.ascontiguousarray(trees, dtype=_CELL)
        invariant(bool(np.array_equal(self._cells, trees)), "packed numbers fit in 16 bits")
        self._selection = LeafSelection(
            self._cells[:, node_count:], class_count=class_count, trees_per_vote=trees_per_vote
        )
        nodes = self._cells[:, selection_order(depth)].T
        self._nodes = np.ascontiguousarray(nodes, dtype=np.intp)

    @property
    def size(self) -> int:
        """The number of votes on each query, k."""
        return len(self._cells) // self.trees_per_vote

    @property
    def test_index_bound(self) -> int:
        """One more than the largest index of a test in use; 0 without tests."""
        return int(self._nodes.max(initial=-1)) + 1

    def vote_counts(self, bits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the votes of every tree on every query of a batch.

        Args:
            bits: outcomes of the tests, shape ``(B, t)``.

        Returns:
            ``private_vote_count``, shape ``(B, L)``; every row sums to k.

        """
        words = [_query_words(bits[start : start + WORD_QUERIES]) for start in _blocks(bits)]

        def outcomes(queries: slice, trees: slice) -> NDArray[np.signedinteger]:
            block = words[queries.start // WORD_QUERIES]
            taken: NDArray[np.signedinteger] = block.take(self._nodes[:, trees])
            return taken

        return self._selection.vote_counts(len(bits), outcomes)

    @property
    def is_scored(self) -> bool:
        """Whether the leaves of the trees have scores."""
        return self._leaf_scores is not None

    def scores(self, bits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return each vote's score on each query, the mean over its trees.

        Args:
            bits: outcomes of the tests, shape ``(B, t)``.

        Returns:
            Shape ``(B, k)``, in [0, 1].

        """
        if self._leaf_scores is None:
            raise InvariantError("these trees were fitted for votes only")
        scores = np.empty((len(bits), self.size))
        step = max(1, PLACES_MAX // len(self._cells))
        nodes = self._cells[:, : (1 << self.depth) - 1]
        for start in range(0, len(bits), step):
            block = slice(start, start + step)
            leaves = reached_leaves(nodes, bits[block], depth=self.depth)
            trees = np.take_along_axis(self._leaf_scores, leaves, axis=1)
            scores[block] = vote_means(trees.reshape(self.size, self.trees_per_vote, -1))
        return scores

    @classmethod
    def joined(cls, fitted: Sequence[Self]) -> Self:
        """Return one ensemble with the votes of several, all of one depth and label count."""
        first = fitted[0]
        scores = [each._leaf_scores for each in fitted if each._leaf_scores is not None]  # noqa: SLF001 -- its own
        return cls(
            np.concatenate([each._cells for each in fitted]),  # noqa: SLF001 -- its own
            depth=first.depth,
            class_count=first.class_count,
            trees_per_vote=first.trees_per_vote,
            private_leaf_scores=np.concatenate(scores) if scores else None,
        )

    def repeated(self, times: int) -> Self:
        """Return an ensemble with every vote repeated, to measure times."""
        scores = self._leaf_scores
        return type(self)(
            np.tile(self._cells, (times, 1)),
            depth=self.depth,
            class_count=self.class_count,
            trees_per_vote=self.trees_per_vote,
            private_leaf_scores=None if scores is None else np.tile(scores, (times, 1)),
        )

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some of its votes replaced by another's.

        Args:
            chunks: indices of votes, shape ``(c,)``.
            others: as many votes, of as many trees of the same depth each.

        """
        invariant(not self.is_scored, "votes are exchanged without scores")
        trees = chunks[:, np.newaxis] * self.trees_per_vote + np.arange(self.trees_per_vote)
        cells = self._cells.copy()
        cells[trees] = others._cells[trees]
        return type(self)(
            cells,
            depth=self.depth,
            class_count=self.class_count,
            trees_per_vote=self.trees_per_vote,
        )

    def to_bytes(self) -> bytes:
        """Return a header, the nodes and any scores as little-endian bytes."""
        scores = b"" if self._leaf_scores is None else self._leaf_scores.astype(_SCORE).tobytes()
        magic = _MAGIC_SCORED if self.is_scored else _MAGIC
        header = _HEADER.pack(
            magic, self.depth, self.class_count, self.trees_per_vote, len(self._cells)
        )
        return header + self._cells.tobytes() + scores

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        """Return the trees that :meth:`to_bytes` wrote.

        Raises:
            LedgerCorruptError: the body is not what :meth:`to_bytes` returns.

        """
        if len(body) < _HEADER.size or not body.startswith((_MAGIC, _MAGIC_SCORED)):
            raise LedgerCorruptError("stored trees do not start as stored trees do")
        magic, depth, class_count, trees_per_vote, tree_count = _HEADER.unpack_from(body)
        shape, leaves = (tree_count, (2 << depth) - 1), (tree_count, 1 << depth)
        scores_at = _HEADER.size + shape[0] * shape[1] * _CELL.itemsize
        score_count = leaves[0] * leaves[1] if magic == _MAGIC_SCORED else 0
        if len(body) != scores_at + score_count * _SCORE.itemsize:
            raise LedgerCorruptError("stored trees have another length than they say")
        cells = np.frombuffer(body[_HEADER.size : scores_at], dtype=_CELL).reshape(shape)
        scores = np.frombuffer(body, dtype=_SCORE, offset=scores_at).astype(np.float64)
        return cls(
            cells,
            depth=depth,
            class_count=class_count,
            trees_per_vote=trees_per_vote,
            private_leaf_scores=scores.reshape(leaves) if score_count else None,
        )


def _query_words(bits: NDArray[np.uint8]) -> NDArray[np.signedinteger]:
    """Return each test's outcomes on at most 64 queries, shape ``(t,)``, as selection asks."""
    if len(bits) == 1:
        mask: NDArray[np.int8] = np.negative(bits[0].view(np.int8))
        return mask
    packed: NDArray[np.uint8] = np.packbits(bits.T, axis=1, bitorder="little")
    if len(bits) <= BYTE_QUERIES:
        octets: NDArray[np.int8] = packed[:, 0].view(np.int8)
        return octets
    padded = np.zeros((len(packed), WORD_QUERIES // BYTE_QUERIES), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    words: NDArray[np.int64] = padded.view(np.int64)[:, 0]
    return words


def _blocks(bits: NDArray[np.uint8]) -> range:
    """Return where blocks of queries start."""
    return range(0, len(bits), WORD_QUERIES)


class TreeEnsemble:
    """An ensemble of decision trees over public tests.

    Args:
        tests: the public tests, which are not stored with the trees.
        packed: the fitted trees.

    """

    def __init__(self, tests: Sequence[BinaryTest], packed: PackedTrees) -> None:
        """Store the tests for repeated evaluation."""
        self._asked = tests
        self._tests = PackedTests(tests)
        self._packed = packed

    @property
    def size(self) -> int:
        """The number of votes on each query, k."""
        return self._packed.size

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        return self._packed.class_count

    @property
    def is_scored(self) -> bool:
        """Whether every vote of the ensemble has a score."""
        return self._packed.is_scored

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the models' votes for each label, on encoded queries, ``(B, L)``; secret."""
        return self._packed.vote_counts(self._tests.evaluate(values))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each model's score for each encoded query, shape ``(B, k)``; secret."""
        return self._packed.scores(self._tests.evaluate(values))

    @classmethod
    def joined(cls, tests: Sequence[BinaryTest], fitted: Sequence[Self]) -> Self:
        """Return one ensemble with the votes of several over the same tests, in order."""
        return cls(tests, PackedTrees.joined([each._packed for each in fitted]))  # noqa: SLF001 -- its own

    def repeated(self, times: int) -> Self:
        """Return a larger ensemble in which every vote is repeated, to measure times."""
        return type(self)(self._asked, self._packed.repeated(times))

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with the trees of some chunks replaced by another's."""
        return type(self)(self._asked, self._packed.exchanged(chunks, others._packed))

    def to_bytes(self) -> bytes:
        """Return the trees as bytes, to be stored privately."""
        return self._packed.to_bytes()

    @classmethod
    def from_bytes(cls, tests: Sequence[BinaryTest], body: bytes) -> Self:
        """Return the ensemble that :meth:`to_bytes` wrote, given the same public tests.

        Raises:
            LedgerCorruptError: the body is no ensemble over these tests.

        """
        packed = PackedTrees.from_bytes(body)
        if packed.test_index_bound > len(tests):
            raise LedgerCorruptError("stored trees ask for tests that do not exist")
        return cls(tests, packed)
