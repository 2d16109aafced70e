"""How long does exact least error over trees of depth 3 take, for 1000 chunks of 220 rows?

Expected: 2.5 processor seconds for 45 tests, by counting each pair of tests once for all
trees; trying every tree that a root and its sides allow takes seconds for a chunk, and
finds the same least error.  Half a minute.

    python -m benchmarks.exact_trees
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.chunks import chunk_offsets
from app.learning.encoding.binary_tests import BinaryTest
from app.learning.trees.learners import fit_tree, fit_trees
from app.learning.trees.tree_class import TreeClass
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, tell
from benchmarks.measuring.learners import LEARNERS, by_turns

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK_ROWS: Final = 220
TESTS: Final = 45
CUTS: Final = 9
DEPTH: Final = 3
SECONDS_MAX: Final = 3.0


def main() -> None:
    """Fit all chunks; check one against every tree."""
    print(circumstances())
    trees = _trees()
    generator = np.random.default_rng(6)
    values = generator.random((LEARNERS * CHUNK_ROWS, TESTS // CUTS))
    labels = ((values[:, 0] > 0.5) ^ (values[:, 1] > 0.3)).astype(np.int64)
    labels ^= generator.random(len(labels)) < 0.1
    bits, offsets = trees.encode(values), chunk_offsets(len(values), LEARNERS)
    one = slice(0, CHUNK_ROWS)
    pairs = by_turns(
        lambda: fit_trees(
            "canonical",
            bits=bits,
            labels=labels,
            offsets=offsets,
            hypothesis_class=trees,
            secret=b"benchmark",
        ),
        lambda: least_errors(bits[one], labels[one], DEPTH),
        pairs=3,
    )
    found = fit_tree(trees, bits[one], labels[one])
    errors = int((found.predict(bits[one]) != labels[one]).sum())
    least = least_errors(bits[one], labels[one], DEPTH)
    if errors != least:
        raise SystemExit(f"{errors} errors, and a tree of {least} exists")
    ours, peer = (sorted(side)[1] for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"exact ERM, {LEARNERS} x {CHUNK_ROWS} rows, {TESTS} tests, depth {DEPTH}: s",
            ours=f"{ours:.2f} s",
            peer=f"every tree {peer * LEARNERS:,.0f} s, of the same least errors",
            ratio=ours,
            at_most=SECONDS_MAX,
        )
    )


def _trees() -> TreeClass:
    """Return all trees over equally spaced cuts of five numbers."""
    tests = tuple(
        BinaryTest(
            feature_index=index // CUTS,
            cut=(index % CUTS + 1) / (CUTS + 1),
            category_code=None,
            public_frequency=0.5,
        )
        for index in range(TESTS)
    )
    return TreeClass(tests=tests, depth=DEPTH, class_count=2)


def least_errors(bits: NDArray[np.uint8], labels: NDArray[np.int64], depth: int) -> int:
    """Return the errors of the best tree, by trying every test at every node."""
    if depth == 0:
        ones = int(labels.sum())
        return min(ones, len(labels) - ones)
    if depth == 1:
        found: NDArray[np.int64] = labels @ bits.astype(np.int64)
        true = bits.sum(axis=0, dtype=np.int64)
        rest, all_ones = len(labels) - true, labels.sum()
        errors = np.minimum(found, true - found) + np.minimum(
            all_ones - found, rest - (all_ones - found)
        )
        return int(errors.min())
    return min(
        sum(
            least_errors(bits[bits[:, test] == side], labels[bits[:, test] == side], depth - 1)
            for side in (0, 1)
        )
        for test in range(bits.shape[1])
    )


if __name__ == "__main__":
    main()
