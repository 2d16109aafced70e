"""The draws for opening a release whose rows are streamed: made from counts of rows.

What is drawn is what an opening in memory would draw from the same noise with the same slots;
engine, number of workers and order of parts show in no byte of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.data.plane.countings import LabelCounts, LowerLevels, UpperLevels
from app.data.plane.placed_rows import Placing
from app.errors import InvariantError
from app.learning.ensemble import counted_ensemble
from app.learning.trees.cell_counts import CountedRows
from app.learning.trees.tree import Tree
from app.privacy.exponential import mechanism as exponential
from app.privacy.voting.keyed_slots import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.data.plane.engine import Held
    from app.data.plane.streamed_rows import StreamedRows
    from app.data.plane.summaries import PackedRows
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import FittedEnsemble
    from app.learning.trees.counted_fit import CountedTrees
    from app.noise.source import NoiseSource
    from app.release.terms.draw_parameters import EnsembleParameters


def drawn_tree(
    parameters: EnsembleParameters,
    trees: CountedTrees,
    rows: StreamedRows,
    held: Held[PackedRows],
    noise: NoiseSource,
) -> Tree | None:
    """Return the drawn tree that relabels the rows; None if rows keep their labels. Secret."""
    if parameters.relabel is None:
        return None
    if not isinstance(parameters.relabel, exponential.Parameters):
        raise InvariantError("labellings of private rows are not drawn from counts")
    class_count = len(rows.reading.schema.classes)
    counting = LabelCounts(trees.coding, class_count, trees.depth)
    (tables,) = rows.engine.counted([counting], held, lambda _: None)
    counts = CountedRows.of(trees.coding, tables, depth=trees.depth)
    tree = exponential.draw_counted(parameters.relabel, counts, noise)
    if not isinstance(tree, Tree):
        raise InvariantError("what is drawn from counts is a tree")
    return tree


def fitted_from_counts(
    learner: Learner,
    trees: CountedTrees,
    rows: StreamedRows,
    held: Held[PackedRows],
    *,
    slots_key: bytes,
    size: int,
    tree: Tree | None,
    progress: Callable[[int, int], None],
) -> FittedEnsemble:
    """Return one learner per chunk, fitted from counts of the rows.

    Args:
        learner: the public choice.
        trees: what fits it from counts.
        rows: all private rows.
        held: their packed parts, which are let go.
        slots_key: of the permutation that puts rows in slots; secret.
        size: the number of chunks, k.
        tree: that relabels; None where rows keep their labels; secret.
        progress: told the chunks done and their number.

    """
    placing = Placing(
        firsts=rows.summary.firsts(),
        key=slots_key,
        row_count=rows.count,
        size=size,
        coding=trees.coding,
        hypothesis=tree,
    )
    placed = rows.engine.joined(placing.placed, held)
    step = trees.chunks_at_once(row_count=rows.count, chunk_count=size)
    chunks = [slice(start, min(start + step, size)) for start in range(0, size, step)]
    rows_max = -(-rows.count // size)
    uppers = rows.engine.counted(
        [UpperLevels(trees, some, rows_max) for some in chunks],
        placed,
        lambda done: progress(min(done * step, size) // 2, size),
    )
    found = rows.engine.counted(
        [LowerLevels(trees, some, upper) for some, upper in zip(chunks, uppers, strict=True)],
        placed,
        lambda done: progress((size + min(done * step, size)) // 2, size),
    )
    return counted_ensemble(learner, np.concatenate(found))


def slots_key(noise: NoiseSource) -> bytes:
    """Return a new random key of the permutation that orders the rows."""
    return noise.secret(KEY_BYTES)
