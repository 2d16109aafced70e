"""Votes and scores of an ensemble of trees, which are stored as arrays over the same feature tests.

All trees of an ensemble are complete and have the same depth. Up to 64 queries are evaluated at
once: the outcomes of a test on these queries are the bits of one machine word. From the leaves to
the root, every node combines the results of its two sides by three bitwise operations. The same
operations are done for every tree and every query, so the time of a reply does not depend on them.

The score of a leaf is the share of the second class among the rows of the tree's own chunk that
reach the leaf.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from app.errors import InvariantError, LedgerCorruptError, invariant
from app.learning.encoding.binary_tests import PackedTests
from app.learning.vote_counting import count_by_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from app.learning.encoding.binary_tests import BinaryTest

BINARY = 2
BYTE_QUERIES = 8
WORD_QUERIES = 64
# Trees whose outcomes are held at once: some hundred kilobytes at depth three.
TREES_PER_BLOCK = 1 << 13
_MAGIC = b"CPT1"
# Leaves with scores follow the cells.
_MAGIC_SCORED = b"CPT2"
_HEADER = struct.Struct("<4sBHHI")
_CELL = np.dtype("<u2")
_SCORE = np.dtype("<f8")
# Which tests a tree uses is private: more of them must be refused before it is fitted.
PACKED_TESTS_MAX = 1 << 16


class LeafSelection:
    """The leaf labels of an ensemble's trees, stored for votes on many queries at once.

    Args:
        leaves: the labels of each tree's leaves from left to right, shape ``(trees, 2**depth)``;
            the trees of one model are consecutive.
        class_count: the number of labels.
        trees_per_vote: the number of trees in one model. The model's vote is the most frequent
            label of its trees, of equally frequent ones the smallest.

    """

    def __init__(
        self, leaves: NDArray[np.integer], *, class_count: int, trees_per_vote: int = 1
    ) -> None:
        """Store each bit of the leaf labels as bit masks."""
        self.tree_count, leaf_count = leaves.shape
        invariant(self.tree_count % trees_per_vote == 0, "every vote has its trees")
        invariant(trees_per_vote < 1 << BYTE_QUERIES, "the trees of a vote are counted in a byte")
        invariant(bool(np.all(leaves < class_count)), "a leaf holds a class index")
        self.class_count = class_count
        self.trees_per_vote = trees_per_vote
        self._depth = leaf_count.bit_length() - 1
        self._masks = {
            np.dtype(kind): _sides(_label_masks(leaves.T, class_count).astype(kind))
            for kind in (np.int8, np.int64)
        }

    def vote_counts(
        self,
        query_count: int,
        outcomes: Callable[[slice, slice], NDArray[np.signedinteger]],
    ) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query.

        The counts are computed for at most 64 queries and some trees at a time.

        Args:
            query_count: the number of queries.
            outcomes: a function that returns the outcomes of the feature tests at the nodes of some
                trees on some queries, shape ``(2**depth - 1, trees)``, given a slice of the queries
                and a slice of the trees. The nodes are in the order of :func:`selection_order`. Bit
                i of each integer is the outcome on query i of the slice; other bits are ignored.

        Returns:
            Private vote counts, shape ``(queries, labels)``; the counts of one query add up to the
            number of models.

        """
        counts = np.zeros((query_count, self.class_count), dtype=np.int64)
        step = max(1, TREES_PER_BLOCK // self.trees_per_vote) * self.trees_per_vote
        for start in range(0, query_count, WORD_QUERIES):
            queries = slice(start, min(start + WORD_QUERIES, query_count))
            for first in range(0, self.tree_count, step):
                trees = slice(first, min(first + step, self.tree_count))
                counts[queries] += self._count(
                    self._select(outcomes(queries, trees), trees), queries.stop - start
                )
        return counts

    def _select(
        self, outcomes: NDArray[np.signedinteger], trees: slice
    ) -> list[NDArray[np.signedinteger]]:
        """Carry each label bit from the leaves up to the root of every tree."""
        falses, changes = self._masks[outcomes.dtype]
        planes = zip(falses, changes, strict=True)
        return [self._root(outcomes, false[:, trees], change[:, trees]) for false, change in planes]

    def _root(
        self,
        outcomes: NDArray[np.signedinteger],
        false: NDArray[np.signedinteger],
        change: NDArray[np.signedinteger],
    ) -> NDArray[np.signedinteger]:
        if self._depth == 0:
            constant: NDArray[np.signedinteger] = false[0]
            return constant
        last = len(outcomes) // 2
        values = false ^ (outcomes[last:] & change)
        while last:
            above = last // 2
            left, right = values[: last - above], values[last - above :]
            values = left ^ (outcomes[above:last] & (left ^ right))
            last = above
        root: NDArray[np.signedinteger] = values[0]
        return root

    def _count(
        self, planes: list[NDArray[np.signedinteger]], query_count: int
    ) -> NDArray[np.int64]:
        """Turn label bits of trees into votes, then count them, shape ``(B, L)``."""
        if query_count == 1 and self.class_count == BINARY and self.trees_per_vote == 1:
            second = np.count_nonzero(planes[0] & 1)
            return np.array([[len(planes[0]) - second, second]])
        votes = self._pluralities([_by_query(plane, query_count) for plane in planes])
        counts = np.empty((self.class_count, votes.shape[1]), dtype=np.int64)
        for label in range(1, self.class_count):
            counts[label] = count_by_column(votes == label)
        counts[0] = len(votes) - counts[1:].sum(axis=0)
        return counts.T[:query_count]

    def _pluralities(self, planes: list[NDArray[np.uint8]]) -> NDArray[np.integer]:
        """Return each vote's label on each query, ties to the smallest, shape ``(k, w)``."""
        labels: NDArray[np.integer] = planes[0]
        for place, plane in enumerate(planes[1:], start=1):
            labels = labels | plane.astype(np.uint16) << place
        if self.trees_per_vote == 1:
            return labels
        grouped = labels.reshape(-1, self.trees_per_vote, labels.shape[1])
        if self.class_count == BINARY:
            seconds: NDArray[np.uint8] = grouped.sum(axis=1, dtype=np.uint8)
            return (seconds > self.trees_per_vote // BINARY).astype(np.uint8)
        counts = [
            (grouped == label).sum(axis=1, dtype=np.uint8) for label in range(self.class_count)
        ]
        most: NDArray[np.intp] = np.stack(counts).argmax(axis=0)
        return most


def selection_order(depth: int) -> NDArray[np.intp]:
    """Return the heap indices of a tree's nodes in the order in which a query's leaf is looked up.

    The order goes level by level. Within a level, all nodes on the false side of their parent come
    first, in the order of the parents, and then the nodes on the true side, in the same order.
    """
    levels = [(1 << level) - 1 + _sides_first(level) for level in range(depth)]
    return np.concatenate([np.zeros(0, dtype=np.intp), *levels])


def _sides_first(level: int) -> NDArray[np.intp]:
    """Return places of a level, left to right, by their last turn, then the one before it."""
    order = np.zeros(1, dtype=np.intp)
    for _ in range(level):
        order = np.concatenate([2 * order, 2 * order + 1])
    return order


def _sides(masks: NDArray[np.signedinteger]) -> tuple[NDArray[np.signedinteger], ...]:
    """Return the bits of each last test's false leaf, and their difference to the true leaf's."""
    order = _sides_first(masks.shape[1].bit_length() - 1)
    half = max(1, len(order) // 2)
    false, true = masks[:, order[:half]], masks[:, order[half:]]
    return np.ascontiguousarray(false), np.ascontiguousarray(true ^ false[:, : true.shape[1]])


def _by_query(plane: NDArray[np.signedinteger], query_count: int) -> NDArray[np.uint8]:
    """Return one label bit of every tree on every query, shape ``(M, w)``, w at least B."""
    if query_count == 1 and plane.dtype == np.int8:
        return (plane & 1).view(np.uint8)[:, np.newaxis]
    octets = plane.view(np.uint8).reshape(len(plane), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _label_masks(leaves: NDArray[np.integer], class_count: int) -> NDArray[np.int8]:
    """Return all-ones or all-zeros bytes for each bit of each leaf's label.

    Returns:
        Shape ``(planes, 2**depth, M)``, least significant plane first.

    """
    plane_count = max(1, (class_count - 1).bit_length())
    return np.stack([-((leaves >> place) & 1).astype(np.int8) for place in range(plane_count)])


# Places held at once while many queries walk down many trees.
PLACES_MAX: Final = 1 << 22


def leaf_scores(
    trees: NDArray[np.integer],
    bits: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    depth: int,
) -> NDArray[np.float64]:
    """Return the share of class 1 among a chunk's rows in each leaf of its trees.

    Args:
        trees: the trees, shape ``(trees, 2**(depth + 1) - 1)``: the indices of the feature tests in
            heap order (level by level from the root), then the labels of the leaves.
        bits: outcomes of the tests on the chunk's rows, shape ``(rows, tests)``.
        labels: class indices 0 or 1 of the rows, shape ``(rows,)``.
        depth: the depth of the trees.

    Returns:
        Shares in [0, 1], shape ``(trees, 2**depth)``. The share of a leaf without rows is the
        leaf's label, 0 or 1.

    """
    node_count, leaf_count = (1 << depth) - 1, 1 << depth
    reached = reached_leaves(trees[:, :node_count], bits, depth=depth)
    places = (reached + leaf_count * np.arange(len(trees))[:, np.newaxis]).ravel()
    size = len(trees) * leaf_count
    rows = np.bincount(places, minlength=size)
    ones = np.bincount(places, weights=np.tile(labels == 1, len(trees)), minlength=size)
    shares = (ones / np.maximum(rows, 1)).reshape(len(trees), leaf_count)
    is_empty = (rows == 0).reshape(shares.shape)
    return np.where(is_empty, trees[:, node_count:], shares).astype(np.float64)


def reached_leaves(
    nodes: NDArray[np.integer], bits: NDArray[np.uint8], *, depth: int
) -> NDArray[np.int64]:
    """Return the index, from the left, of the leaf that each row reaches in each tree.

    Args:
        nodes: the indices of the feature tests in heap order (level by level from the root), shape
            ``(trees, 2**depth - 1)``.
        bits: outcomes of the tests, shape ``(rows, tests)``.
        depth: the depth of the trees.

    Returns:
        Indices of leaves, shape ``(trees, rows)``.

    """
    places = np.zeros((len(nodes), len(bits)), dtype=np.int64)
    rows = np.arange(len(bits))
    for level in range(depth):
        tests = np.take_along_axis(nodes, places + (1 << level) - 1, axis=1)
        places = 2 * places + bits[rows, tests]
    return places


def vote_means(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score of each model on each query: the mean of its trees' scores.

    The scores are added one after another. A sum over an axis of the array could be rounded
    differently for another number of queries.

    Args:
        scores: scores of the trees, shape ``(models, trees per model, queries)``.

    Returns:
        Means, shape ``(queries, models)``.

    """
    total = np.zeros((scores.shape[0], scores.shape[2]))
    for member in range(scores.shape[1]):
        total += scores[:, member]
    means: NDArray[np.float64] = (total / scores.shape[1]).T
    return means


class PackedTrees:
    """The trees of all models; a model's vote is the most frequent label of its trees.

    Args:
        trees: the trees, shape ``(models * trees_per_vote, 2**(depth + 1) - 1)``: the indices of
            the feature tests in heap order (level by level from the root), then the labels of the
            leaves. The trees of one model are consecutive.
        depth: the depth of the trees.
        class_count: the number of labels.
        trees_per_vote: the number of trees in one model.
        private_leaf_scores: the score in [0, 1] of every leaf of every tree, shape
            ``(models * trees_per_vote, 2**depth)``; None if the models give votes only.

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
        """The number of models, and so of votes on each query."""
        return len(self._cells) // self.trees_per_vote

    @property
    def test_index_bound(self) -> int:
        """One more than the largest index of a feature test in use; 0 without tests."""
        return int(self._nodes.max(initial=-1)) + 1

    def vote_counts(self, bits: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query of a batch.

        Args:
            bits: outcomes of the feature tests on the queries, shape ``(queries, tests)``.

        Returns:
            Private vote counts, shape ``(queries, labels)``; the counts of one query add up to the
            number of models.

        """
        words = [_query_words(bits[start : start + WORD_QUERIES]) for start in _blocks(bits)]

        def outcomes(queries: slice, trees: slice) -> NDArray[np.signedinteger]:
            block = words[queries.start // WORD_QUERIES]
            taken: NDArray[np.signedinteger] = block.take(self._nodes[:, trees])
            return taken

        return self._selection.vote_counts(len(bits), outcomes)

    @property
    def is_scored(self) -> bool:
        """Whether leaves have scores: shares of the second class among a chunk's rows."""
        return self._leaf_scores is not None

    def scores(self, bits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return every model's score for every query: the mean of its trees' leaf scores.

        Args:
            bits: outcomes of the feature tests on the queries, shape ``(queries, tests)``.

        Returns:
            Private scores in [0, 1], shape ``(queries, models)``.

        Raises:
            InvariantError: the models give votes only.

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
        """Return one ensemble from several ensembles with trees of the same depth and labels."""
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
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        scores = self._leaf_scores
        return type(self)(
            np.tile(self._cells, (times, 1)),
            depth=self.depth,
            class_count=self.class_count,
            trees_per_vote=self.trees_per_vote,
            private_leaf_scores=None if scores is None else np.tile(scores, (times, 1)),
        )

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by the models of another ensemble.

        Args:
            chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.
            others: an ensemble with as many chunks as this one, and trees of the same depth and
                number per model.

        Raises:
            InvariantError: the models give scores.

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
        """Return a header, the trees and any scores as little-endian bytes, for private storage."""
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
            LedgerCorruptError: the bytes do not encode trees.

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
    """An ensemble of decision trees over public tests of features.

    Args:
        tests: the public tests, which are not stored with the trees.
        packed: the trained trees.

    """

    def __init__(self, tests: Sequence[BinaryTest], packed: PackedTrees) -> None:
        """Store the tests for repeated evaluation."""
        self._asked = tests
        self._tests = PackedTests(tests)
        self._packed = packed

    @property
    def size(self) -> int:
        """The number of models, and so of votes on each query."""
        return self._packed.size

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return self._packed.class_count

    @property
    def is_scored(self) -> bool:
        """Whether every vote comes with a score: the model's probability of the second class."""
        return self._packed.is_scored

    def vote_counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of models that vote for each label, for every query; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Vote counts, shape ``(queries, labels)``.

        """
        return self._packed.vote_counts(self._tests.evaluate(values))

    def scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every model's score for every query: its probability of the second class; secret.

        Args:
            values: queries, encoded as numbers by the public schema, shape ``(queries, features)``.

        Returns:
            Scores, shape ``(queries, models)``.

        Raises:
            InvariantError: the models give votes only.

        """
        return self._packed.scores(self._tests.evaluate(values))

    @classmethod
    def joined(cls, tests: Sequence[BinaryTest], fitted: Sequence[Self]) -> Self:
        """Return one ensemble from several ensembles over the same feature tests, in order."""
        return cls(tests, PackedTrees.joined([each._packed for each in fitted]))  # noqa: SLF001 -- its own

    def repeated(self, times: int) -> Self:
        """Return an ensemble with ``times`` copies of each model, to time a larger ensemble."""
        return type(self)(self._asked, self._packed.repeated(times))

    def exchanged(self, chunks: NDArray[np.int64], others: Self) -> Self:
        """Return the ensemble with some chunks' models replaced by the models of another ensemble.

        Args:
            chunks: the indices of the chunks whose models are replaced, shape ``(chunks,)``.
            others: an ensemble over the same feature tests, with as many chunks as this one.

        Raises:
            InvariantError: the models give scores.

        """
        return type(self)(self._asked, self._packed.exchanged(chunks, others._packed))

    def to_bytes(self) -> bytes:
        """Return the trees as bytes, for private storage."""
        return self._packed.to_bytes()

    @classmethod
    def from_bytes(cls, tests: Sequence[BinaryTest], body: bytes) -> Self:
        """Return the ensemble that :meth:`to_bytes` wrote, given the same public feature tests.

        Raises:
            LedgerCorruptError: the bytes do not encode an ensemble over these tests.

        """
        packed = PackedTrees.from_bytes(body)
        if packed.test_index_bound > len(tests):
            raise LedgerCorruptError("stored trees ask for tests that do not exist")
        return cls(tests, packed)
