"""Ways to fit an ensemble in which one record reaches two learners or more."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.learning.chunks import chunk_offsets
from app.learning.ensemble import fit_ensemble as genuine_fit
from app.learning.trees import learners as tree_learners
from tests.property.chunk_estimators import CarriesOn

if TYPE_CHECKING:
    from app.learning.hypothesis import Ensemble


def scaled_on_all_rows(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: every column is scaled by the least and the largest of all rows."""
    columns = np.nan_to_num(values)
    low, high = columns.min(axis=0), columns.max(axis=0)
    return genuine_fit(learner, (columns - low) / np.maximum(high - low, 1e-9), labels, **chosen)


def without_duplicates(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: rows that occur twice are kept once."""
    rows = np.column_stack([np.nan_to_num(values, nan=-1.0), labels])
    kept = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    count = len(kept)
    public = {
        "permutation": np.arange(count),
        "offsets": chunk_offsets(count, len(chosen["offsets"]) - 1),
    }
    return genuine_fit(learner, values[kept], labels[kept], **{**chosen, **public})


def stratified(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: rows are dealt to chunks label by label."""
    size, permutation = len(chosen["offsets"]) - 1, chosen["permutation"]
    order = permutation[np.argsort(labels[permutation], kind="stable")]
    dealt = np.concatenate([order[index::size] for index in range(size)])
    offsets = np.cumsum([0, *(len(order[index::size]) for index in range(size))])
    chosen |= {"permutation": dealt, "offsets": offsets}
    return genuine_fit(learner, values, labels, **chosen)


def sampled_by_content(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: the rows with the least digests of their content are the sample of all."""
    size, permutation = len(chosen["offsets"]) - 1, chosen["permutation"]
    kept = max(1, len(permutation) // 2)
    rows = [values[row].tobytes() + labels[row].tobytes() for row in permutation]
    digests = [blake2b(row).digest() for row in rows]
    taken = np.sort(sorted(range(len(rows)), key=digests.__getitem__)[:kept])
    public = {"permutation": permutation[taken], "offsets": chunk_offsets(kept, size)}
    return genuine_fit(learner, values, labels, **{**chosen, **public})


def in_two_chunks(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: the first row of the first chunk is the last of the last one too."""
    permutation = chosen["permutation"].copy()
    permutation[-1] = permutation[0]
    return genuine_fit(learner, values, labels, **{**chosen, "permutation": permutation})


def with_one_generator(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: all chunks draw from one generator."""
    shared = np.random.default_rng(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_learners, "generator", lambda _: shared)
        return genuine_fit(learner, values, labels, **chosen)


def with_one_class_state(learner: Any, values: Any, labels: Any, **chosen: Any) -> Ensemble:
    """Fit, at fault: what one learner leaves on its class, the next one finds."""
    CarriesOn.seen.clear()
    return genuine_fit(learner, values, labels, **chosen)
