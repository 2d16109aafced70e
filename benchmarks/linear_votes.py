"""How long do the votes of 1000 linear models on 1000 queries take, beside one BLAS product?

Expected: 1.6 to 1.9 times the product of 1000 queries by 14 numbers with 14 numbers by
1000 models, in double precision, into memory that is there already.  What is ours beyond
it: the public encoding of the queries, the intercept as a fifteenth number, comparing a
million scores with two bounds, looking for one that rounding could turn, and counting.
Ten seconds.

    python -m benchmarks.linear_votes
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.learners import (
    FEATURES,
    LEARNERS,
    LOGISTIC,
    QUERIES,
    Chunks,
    by_turns,
    fit,
)

REPEATS: Final = 50
PAIRS: Final = 15
AT_MOST: Final = 2.0


def main() -> None:
    """Print the ratio, the median of pairs."""
    print(circumstances())
    chunks = Chunks.draw()
    with threadpool_limits(1):
        ensemble = fit(chunks, LOGISTIC, {})
    weights = np.random.default_rng(1).normal(size=(FEATURES, LEARNERS))
    scores = np.empty((QUERIES, LEARNERS))
    pairs = by_turns(
        partial(ensemble.vote_counts, chunks.queries),
        partial(np.matmul, chunks.queries, weights, out=scores),
        ours_repeats=REPEATS,
        peer_repeats=REPEATS,
        pairs=PAIRS,
    )
    ours, peer = (median(side) * 1e3 for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"votes of {LEARNERS} linear models, batch {QUERIES}, counting included",
            ours=f"{ours:.2f} ms, {ours / QUERIES * 1e3:.2f} us a query",
            peer=f"one product of {QUERIES} x {FEATURES} by {FEATURES} x {LEARNERS} {peer:.2f} ms",
            ratio=median_ratio(pairs),
            at_most=AT_MOST,
        )
    )


if __name__ == "__main__":
    main()
