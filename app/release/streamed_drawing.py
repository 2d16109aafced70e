"""The random draws that open a release whose rows are streamed in parts, not held in memory.

The results are the same as those of an opening in memory with the same noise and the same order of
rows. They do not depend on the computing engine, the number of workers or the order of parts.

Streamed rows are never in memory all at once. A part of the rows is a file of the source, or a
section of a file, which one worker reads. A packed row has one byte for each feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.data.streaming.chunk_samples import SampleFit, Sampling
from app.data.streaming.part_counts import ChunkFit, LabelCounts, draw_counting
from app.data.streaming.placed_rows import PlacedRows, Placing, put_together
from app.errors import InvariantError
from app.learning.encoding.row_codes import NumberCodes
from app.learning.ensemble import counted_ensemble, joined_bodies, joined_ensemble
from app.learning.predictors.class_registration import OWN_PREDICTORS
from app.learning.registry import row_of
from app.privacy.exponential import mechanism as exponential
from app.privacy.mechanism_registration import own
from app.privacy.voting.keyed_slots import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.data.streaming.engine import Held
    from app.data.streaming.part_counts import Tallying
    from app.data.streaming.part_summaries import PackedRows
    from app.data.streaming.streamed_rows import StreamedRows
    from app.learning.encoding.encoded_rows import Tally
    from app.learning.encoding.row_codes import RowCodes
    from app.learning.ensemble import Learner
    from app.learning.hypothesis import FittedEnsemble, Hypothesis
    from app.learning.trees.cell_counts import CountedRows
    from app.learning.trees.counted_fit import CountedTrees
    from app.noise.source import NoiseSource
    from app.release.terms.draw_parameters import EnsembleParameters

CHUNKS_AT_ONCE = 64
"""Chunks that are fitted at once where rows are read, ..."""
BLOCKS_MAX = 128
"""... or more, lest there be more blocks than this."""


@dataclass(frozen=True, slots=True)
class StreamedLearner:
    """A learner that can be trained on rows packed into bytes.

    Attributes:
        learner: the learner as configured.
        coding: the encoding of a row in bytes.
        trees: the method that trains trees from counts of rows; None if the learner needs the rows
            themselves.

    """

    learner: Learner
    coding: RowCodes
    trees: CountedTrees | None

    def fit(self, chunks: slice, secret: bytes) -> ChunkFit:
        """Return the computation that trains the models of some chunks of rows."""
        return ChunkFit(
            learner=self.learner,
            coding=self.coding,
            trees=self.trees,
            chunks=chunks,
            secret=secret,
        )

    def chunks_at_once(self, *, row_count: int, chunk_count: int) -> int:
        """Return the number of chunks whose models one task trains, from public values alone."""
        if self.trees is not None:
            return self.trees.chunks_at_once(row_count=row_count, chunk_count=chunk_count)
        return max(CHUNKS_AT_ONCE, -(-chunk_count // BLOCKS_MAX))


def streamed_learner(learner: Learner) -> StreamedLearner | None:
    """Return the learner in a form for rows packed into bytes; None if it has no such form."""
    if learner.estimator is not None:
        return None
    searched = learner.hypothesis_class
    row = row_of(searched)
    trees, coding = row.counted(learner.rule, searched, learner.scored), row.codes(searched)
    return None if coding is None else StreamedLearner(learner, coding, trees)


def relabelling_codes(learner: Learner) -> RowCodes | None:
    """Return how rows are packed into bytes to draw a rule that relabels them; None if impossible.

    For a class of user-written predictors every number is stored in full, since a predictor may use
    all of its digits.
    """
    searched = learner.hypothesis_class
    row = row_of(searched)
    return NumberCodes(len(learner.columns)) if row is OWN_PREDICTORS else row.codes(searched)


def drawn_hypothesis(
    parameters: EnsembleParameters,
    coding: RowCodes | None,
    rows: StreamedRows,
    held: Held[PackedRows] | None,
    noise: NoiseSource,
) -> Hypothesis | None:
    """Return the drawn hypothesis that relabels the rows, secret; None if labels are kept.

    Relabelling gives each private row the label that a privately drawn rule predicts, before the
    models are trained.

    Args:
        parameters: the public parameters of the ensemble.
        coding: the meaning of the bytes of a packed row; None if the rows have no packed form from
            which a rule can be drawn.
        rows: all private rows.
        held: the packed rows, in parts; None if the rows are read again and not kept.
        noise: the source of randomness.

    """
    if parameters.relabel is None:
        return None
    relabel = own(parameters.relabel, exponential.Parameters)
    if coding is None:
        raise InvariantError("rows that are relabelled have bytes to draw from")
    counting = draw_counting(relabel.hypotheses, coding, rows.unit_count)
    if counting is None:
        raise InvariantError("what relabels rows that stream is drawn from counts")
    counts: CountedRows | Tally
    if held is None:
        counts = _counted_again(rows, counting, coding)
    elif isinstance(counting, LabelCounts):  # each of its own type, by one call
        (counts,) = rows.engine.counted([counting], held, lambda _: None)
    else:
        (counts,) = rows.engine.counted([counting], held, lambda _: None)
    return exponential.draw_counted(relabel, counts, noise)


def _counted_again(
    rows: StreamedRows, counting: LabelCounts | Tallying, coding: RowCodes
) -> CountedRows | Tally:
    """Return the counts of all rows, which are read again and not kept."""
    if isinstance(counting, LabelCounts):
        return rows.counted(counting, coding)
    return rows.counted(counting, coding)


def fitted_on_samples(
    learner: Learner,
    rows: StreamedRows,
    *,
    slots_key: bytes,
    size: int,
    hypothesis: Hypothesis | None,
    secret: bytes,
    progress: Callable[[int, int], None],
) -> bytes:
    """Return one trained model per chunk as bytes; each is trained on a sample of its chunk.

    The rows are read again for this. The bytes are the same as those of models trained in memory on
    the same rows. Each worker stores the models that it trains, since loading an estimator and
    storing it again may give other bytes.

    Args:
        learner: the learner, which says on how many rows of a chunk at most it is trained.
        rows: all private rows.
        slots_key: the secret key of the permutation that determines the order of the rows.
        size: the number k of chunks.
        hypothesis: the secret hypothesis that relabels the rows; None if rows keep their labels.
        secret: the secret of the release, from which the models' random seeds are derived.
        progress: a function that is given the number of finished chunks and of all chunks.

    """
    if learner.rows_max is None:
        raise InvariantError("a sample of a chunk has a largest number of rows")
    sampling = Sampling(
        firsts=rows.summary.firsts(),
        key=slots_key,
        row_count=rows.count,
        size=size,
        rows_max=learner.rows_max,
    )
    try:
        sampled, ranges = rows.sampled(sampling)
        step = max(CHUNKS_AT_ONCE, -(-size // BLOCKS_MAX))
        fits = [
            (
                place,
                SampleFit(
                    learner=learner,
                    sampling=sampling,
                    hypothesis=hypothesis,
                    chunks=some,
                    secret=secret,
                ),
            )
            for place, chunks in enumerate(ranges)
            for some in _blocks(chunks, step)
        ]
        done = 0

        def fitted(place: int) -> None:
            nonlocal done
            chunks = fits[place][1].chunks
            done += chunks.stop - chunks.start
            progress(done, size)

        bodies = rows.engine.mapped([(place, fit.of) for place, fit in fits], sampled, fitted)
    finally:
        rows.close()
    return joined_bodies(learner, bodies)


def fitted_from_parts(
    streamed: StreamedLearner,
    rows: StreamedRows,
    held: Held[PackedRows],
    *,
    slots_key: bytes,
    size: int,
    hypothesis: Hypothesis | None,
    secret: bytes,
    progress: Callable[[int, int], None],
) -> FittedEnsemble:
    """Return one model per chunk, trained from parts of the rows.

    Args:
        streamed: the learner, in a form for packed rows.
        rows: all private rows.
        held: the rows packed in parts, which are dropped when they are no longer needed.
        slots_key: the secret key of the permutation that determines the order of the rows.
        size: the number k of chunks.
        hypothesis: the secret hypothesis that relabels the rows; None if rows keep their labels.
        secret: the secret of the release, from which the models' random seeds are derived.
        progress: a function that is given the number of finished chunks and of all chunks.

    """
    placing = Placing(
        firsts=rows.summary.firsts(),
        key=slots_key,
        row_count=rows.count,
        size=size,
        coding=streamed.coding,
        hypothesis=hypothesis,
    )
    placed = rows.engine.joined(placing.placed, held)
    placed, ranges = rows.engine.divided(PlacedRows.cut, put_together, placed, size)
    step = streamed.chunks_at_once(row_count=rows.count, chunk_count=size)
    fits = [
        (place, streamed.fit(some, secret))
        for place, chunks in enumerate(ranges)
        for some in _blocks(chunks, step)
    ]
    done = 0

    def fitted(place: int) -> None:
        nonlocal done
        chunks = fits[place][1].chunks
        done += chunks.stop - chunks.start
        progress(done, size)

    found = rows.engine.mapped([(place, fit.of) for place, fit in fits], placed, fitted)
    trees = [each for each in found if isinstance(each, np.ndarray)]
    if trees:
        return counted_ensemble(streamed.learner, np.concatenate(trees))
    return joined_ensemble(streamed.learner, [e for e in found if not isinstance(e, np.ndarray)])


def _blocks(chunks: slice, step: int) -> list[slice]:
    """Return chunks as slices of so many."""
    starts = range(chunks.start, chunks.stop, step)
    return [slice(start, min(start + step, chunks.stop)) for start in starts]


def slots_key(noise: NoiseSource) -> bytes:
    """Return a new random key, which determines the secret order of the rows.

    The rows are divided into chunks in this order.
    """
    return noise.secret(KEY_BYTES)
