"""All trees of an ensemble as flat arrays, evaluated 64 queries at a time.

A query is one bit of a machine word: every inner node reads the word of its
test, every leaf is a constant word, and a test selects between its children
with three bitwise operations.  Every tree does the same work on every query,
so neither votes nor models show in the time of a reply.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Self

import numpy as np

from app.ensembles.leaf_scores import PLACES_MAX, reached_leaves, vote_means
from app.errors import InvariantError, LedgerCorruptError, invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = b"CPT1"
# Leaves with scores follow the cells.
_MAGIC_SCORED = b"CPT2"
_HEADER = struct.Struct("<4sBHHI")
_CELL = np.dtype("<u2")
_SCORE = np.dtype("<f8")
# Which tests a tree uses is private: more of them must be refused before it is fitted.
PACKED_TESTS_MAX = 1 << 16
BYTE_QUERIES = 8
WORD_QUERIES = 64
# Trees whose votes are unpacked at once: bounds the bytes held at 4 MB.
TREES_PER_BLOCK = 1 << 16


class PackedTrees:
    """k votes, each the plurality of ``trees_per_vote`` complete trees of one depth.

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
        """Lay the nodes out one array a node, and the leaves as masks of label bits."""
        node_count = (1 << depth) - 1
        invariant(trees.shape[1] == 2 * node_count + 1, "a packed tree has its nodes and leaves")
        invariant(len(trees) % trees_per_vote == 0, "every vote has its trees")
        invariant(trees_per_vote < 1 << 8, "the trees of a vote are counted in a byte")
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
        leaves = self._cells[:, node_count:].T
        invariant(bool(np.all(leaves < class_count)), "a leaf holds a class index")
        self._nodes = np.ascontiguousarray(self._cells[:, :node_count].T, dtype=np.intp)
        self._byte_leaves = _label_masks(leaves, class_count)
        self._word_leaves = np.ascontiguousarray(self._byte_leaves.view(np.int8).astype(np.int64))

    @property
    def size(self) -> int:
        """Number of votes, k."""
        return len(self._cells) // self.trees_per_vote

    @property
    def test_index_bound(self) -> int:
        """One more than the largest test index; 0 without tests."""
        return int(self._nodes.max(initial=-1)) + 1

    def vote_counts(self, bits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Evaluate every tree on every query.

        Args:
            bits: outcomes of the tests, shape ``(B, t)``.

        Returns:
            ``private_vote_count``, shape ``(B, L)``; every row sums to k.

        """
        counts = np.empty((len(bits), self.class_count), dtype=np.int64)
        for start in range(0, len(bits), WORD_QUERIES):
            block = slice(start, start + WORD_QUERIES)
            counts[block] = self._block_votes(bits[block])
        return counts

    @property
    def is_scored(self) -> bool:
        """Whether the leaves have scores."""
        return self._leaf_scores is not None

    def scores(self, bits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return each vote's score on each query: the mean over its trees.

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

    def to_bytes(self) -> bytes:
        """Return a header, the cells and the scores, if there are any; little-endian."""
        scores = b"" if self._leaf_scores is None else self._leaf_scores.astype(_SCORE).tobytes()
        magic = _MAGIC_SCORED if self.is_scored else _MAGIC
        header = _HEADER.pack(
            magic, self.depth, self.class_count, self.trees_per_vote, len(self._cells)
        )
        return header + self._cells.tobytes() + scores

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        """Rebuild the trees from :meth:`to_bytes`.

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

    def _block_votes(self, bits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Count the votes on at most 64 queries, shape ``(B, L)``."""
        words = _query_words(bits)
        leaves = self._byte_leaves if words.dtype == np.uint8 else self._word_leaves
        planes = [self._select(words, plane) for plane in leaves]
        counts = np.zeros((len(bits), self.class_count), dtype=np.int64)
        step = max(1, TREES_PER_BLOCK // self.trees_per_vote) * self.trees_per_vote
        for start in range(0, len(self._cells), step):
            block = [plane[start : start + step] for plane in planes]
            counts += self._count(block, len(bits))
        return counts

    def _select(
        self, words: NDArray[np.integer], leaves: NDArray[np.integer]
    ) -> NDArray[np.integer]:
        """Carry one label bit from the leaves up to the root of every tree, shape ``(M,)``."""
        values: NDArray[np.integer] = leaves
        for level in range(self.depth - 1, -1, -1):
            nodes = self._nodes[(1 << level) - 1 : (2 << level) - 1]
            true, false = values[1::2], values[0::2]
            values = false ^ (words[nodes] & (true ^ false))
        root: NDArray[np.integer] = values[0]
        return root

    def _count(self, planes: list[NDArray[np.integer]], query_count: int) -> NDArray[np.int64]:
        """Turn label bits of trees into votes, then count them, shape ``(B, L)``."""
        unpacked = [
            np.unpackbits(
                plane.view(np.uint8).reshape(len(plane), -1),
                axis=1,
                count=query_count,
                bitorder="little",
            )
            for plane in planes
        ]
        votes = self._pluralities(unpacked)
        return np.stack([(votes == label).sum(axis=0) for label in range(self.class_count)], axis=1)

    def _pluralities(self, unpacked: list[NDArray[np.uint8]]) -> NDArray[np.integer]:
        """Return each vote's label on each query, ties to the smallest, shape ``(k, B)``."""
        labels: NDArray[np.integer] = unpacked[0]
        for place, plane in enumerate(unpacked[1:], start=1):
            labels = labels | plane.astype(np.uint16) << place
        if self.trees_per_vote == 1:
            return labels
        grouped = labels.reshape(-1, self.trees_per_vote, labels.shape[1])
        counts = [
            (grouped == label).sum(axis=1, dtype=np.uint8) for label in range(self.class_count)
        ]
        most: NDArray[np.intp] = np.stack(counts).argmax(axis=0)
        return most


def _query_words(bits: NDArray[np.uint8]) -> NDArray[np.integer]:
    """Return each test's outcomes on at most 64 queries as one word, shape ``(t,)``.

    Up to eight queries fit a byte, which is what a single query costs.
    """
    packed = np.packbits(bits.T, axis=1, bitorder="little")
    if len(bits) <= BYTE_QUERIES:
        return packed[:, 0]
    padded = np.zeros((len(packed), WORD_QUERIES // BYTE_QUERIES), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.int64)[:, 0]


def _label_masks(leaves: NDArray[np.integer], class_count: int) -> NDArray[np.uint8]:
    """Return all-ones or all-zeros bytes for each bit of each leaf's label.

    Returns:
        Shape ``(planes, 2**depth, M)``, least significant plane first.

    """
    plane_count = max(1, (class_count - 1).bit_length())
    planes = [
        ((leaves >> place) & 1).astype(np.uint8) * np.uint8(0xFF) for place in range(plane_count)
    ]
    return np.ascontiguousarray(np.stack(planes))
