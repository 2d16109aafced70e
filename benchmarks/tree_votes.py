"""How long do the votes of 1000 trees of depth 4 take, a query, alone and in a batch of 1000?

Expected: 20 to 30 microseconds alone and 2 to 5 in a batch, encoding and counting
included, of scikit-learn's trees by their configuration and of the built-in rules' trees
alike; a loop over scikit-learn's `predict` takes 50 milliseconds for one query and 0.1 for
each of a batch.  Half a minute.

    python -m benchmarks.tree_votes
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from app.learning.encoding.binary_tests import BinaryTest
from app.learning.estimators.estimator_ensemble import EstimatorEnsemble
from app.learning.estimators.packing import packing_of
from app.learning.trees.packed_trees import PackedTrees, TreeEnsemble
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.learners import (
    COLUMNS,
    FEATURES,
    LEARNERS,
    TREE,
    Chunks,
    by_turns,
    fit_one_by_one,
)

if TYPE_CHECKING:
    from app.learning.estimators.estimator_choice import Classifier
    from app.learning.hypothesis import Ensemble

DEPTH: Final = 4
CUTS_A_FEATURE: Final = 15
# Microseconds a query, and calls of a measurement, by queries of a batch.
AT_MOST: Final = {1: 30.0, 1000: 15.0}
REPEATS: Final = {1: 500, 1000: 5}


def main() -> None:
    """Print both kinds of tree on both sizes of batch."""
    print(circumstances())
    chunks = Chunks.draw()
    models = fit_one_by_one(chunks, _tree)
    packing = packing_of(TREE, {"max_depth": DEPTH})
    estimators = EstimatorEnsemble(COLUMNS, models, class_count=2, packing=packing)
    for kind, ensemble in (("scikit-learn's", estimators), ("a built-in rule's", _rule_trees())):
        for batch in AT_MOST:
            _compare(kind, ensemble, models, chunks, batch)


def _compare(
    kind: str, ensemble: Ensemble, models: list[Classifier], chunks: Chunks, batch: int
) -> None:
    """Vote and predict by turns; rules' trees are compared with the same loop."""
    queries, rows = chunks.queries[:batch], chunks.encoded_queries[:batch]
    pairs = by_turns(
        partial(ensemble.vote_counts, queries),
        lambda: [model.predict(rows) for model in models],
        ours_repeats=REPEATS[batch],
    )
    ours, peer = (median(side) / batch * 1e6 for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"votes of {LEARNERS} trees of depth {DEPTH}, {kind}, batch {batch}, us each",
            ours=f"{ours:.1f} us a query, {1 / median_ratio(pairs):,.0f} times as fast",
            peer=f"scikit-learn's predict in a loop {peer:,.0f} us a query",
            ratio=ours,
            at_most=AT_MOST[batch],
        )
    )


def _tree(index: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=DEPTH, random_state=index)


def _rule_trees() -> TreeEnsemble:
    """Return trees of random tests and leaves: their votes take the same time as any."""
    generator = np.random.default_rng(5)
    tests = [
        BinaryTest(
            feature_index=feature,
            cut=(cut + 1) / (CUTS_A_FEATURE + 1),
            category_code=None,
            public_frequency=0.5,
        )
        for feature in range(FEATURES)
        for cut in range(CUTS_A_FEATURE)
    ]
    nodes = generator.integers(0, len(tests), (LEARNERS, (1 << DEPTH) - 1))
    leaves = generator.integers(0, 2, (LEARNERS, 1 << DEPTH))
    trees = PackedTrees(np.append(nodes, leaves, axis=1), depth=DEPTH, class_count=2)
    return TreeEnsemble(tests, trees)


if __name__ == "__main__":
    main()
