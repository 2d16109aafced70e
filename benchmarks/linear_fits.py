"""How much faster are 1000 logistic regressions of 100 rows of 14 numbers fitted at once?

Expected: 15 times as fast as scikit-learn's `fit` in a loop, from rows to an ensemble that
votes, and 99.97 of 100 votes on 1000 queries the same: scikit-learn stops at its tolerance,
and here each goes to its minimum.  Half a minute.

    python -m benchmarks.linear_fits
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from app.learning.estimators.packed_ensemble import LinearForm, PackedEnsemble
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.learners import (
    CHUNK_ROWS,
    COLUMNS,
    FEATURES,
    LEARNERS,
    LOGISTIC,
    Chunks,
    by_turns,
    fit,
    fit_one_by_one,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble

AT_LEAST: Final = 10.0
EQUAL_AT_LEAST: Final = 0.999


def main() -> None:
    """Print how much faster, and how many votes are equal."""
    print(circumstances())
    chunks = Chunks.draw()
    with threadpool_limits(1):
        ensemble, models = fit(chunks, LOGISTIC, {}), fit_one_by_one(chunks, _regression)
    pairs = by_turns(lambda: fit_one_by_one(chunks, _regression), lambda: fit(chunks, LOGISTIC, {}))
    peer, ours = (median(side) for side in zip(*pairs, strict=True))
    tell(
        Finding(
            question=f"{LEARNERS} linear learners fitted on {CHUNK_ROWS} x {FEATURES}",
            ours=f"{ours:.3f} s",
            peer=f"scikit-learn's LogisticRegression in a loop {peer:.2f} s",
            ratio=median_ratio(pairs),
            at_least=AT_LEAST,
        )
    )
    rows = chunks.encoded_queries
    theirs = np.stack([model.predict(rows) for model in models])
    votes = _votes(ensemble, chunks)
    tell(
        Finding(
            question=f"the same: equal votes on {len(rows)} queries",
            ours=f"{np.mean(votes == theirs):.5f} of {votes.size:,} votes",
            peer="scikit-learn's LogisticRegression",
            ratio=float(np.mean(votes == theirs)),
            at_least=EQUAL_AT_LEAST,
        )
    )


def _votes(ensemble: Ensemble, chunks: Chunks) -> NDArray[np.int64]:
    """Return every model's vote on every query, shape ``(k, B)``, each model voting alone."""
    if not (isinstance(ensemble, PackedEnsemble) and isinstance(ensemble.form, LinearForm)):
        raise TypeError("these were to be fitted together")
    form = ensemble.form
    alone = [
        PackedEnsemble(COLUMNS, LinearForm(weights[None], intercepts[None]), class_count=2)
        for weights, intercepts in zip(form.weights, form.intercepts, strict=True)
    ]
    return np.stack([each.vote_counts(chunks.queries)[:, 1] for each in alone])


def _regression(index: int) -> LogisticRegression:
    del index
    return LogisticRegression()


if __name__ == "__main__":
    main()
