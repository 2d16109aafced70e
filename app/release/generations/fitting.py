"""Training of the models of a later batch of rows, once, on its drawn labels.

A fit may take as long as its rows make it, so nobody sees when it ends: what came of it enters
the ledger at a tick of the clock.  A crash before that left no trace outside, and the labels are
drawn again under the same charge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.learning.chunks import chunk_offsets
from app.learning.ensemble import fit_chunks_anew, fit_ensemble, read_ensemble_bytes
from app.release.drawing import FITTING
from app.release.generations.batch_contribution import Part, draw_part
from app.release.generations.labelling import Labelled, draw_labels
from app.release.generations.slots import Slots, read_slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration


@dataclass(frozen=True, eq=False, slots=True)
class Fitted:
    """The models trained on a batch of rows; secret until they join the vote.

    Attributes:
        slots: with the labels and learners.
        ensemble: the same learners, ready to vote.
        labelled: the labels, and what was drawn for them.
        part: in the published classifier, where it is charged one.

    """

    slots: Slots = field(repr=False)
    ensemble: Ensemble = field(repr=False)
    labelled: Labelled = field(repr=False)
    part: Part | None = field(repr=False, default=None)


def fit_generation(
    configuration: Configuration,
    generation: Generation,
    *,
    ledger: Ledger,
    noise: NoiseSource,
    progress: Progress,
    before: Part | None = None,
    pieces: Mapping[str, bytes] | None = None,
) -> Fitted:
    """Return the models trained on a batch of rows, after its labels were drawn.

    The generation's part in the published classifier is drawn too, where it is charged one.

    Args:
        configuration: the release's.
        generation: appended, and not labelled.
        ledger: with its slots.
        noise: where a labelling is drawn from.
        progress: shows how far the fit has come.
        before: the part of the generation before it in the classifier, where it waits too.
        pieces: what was drawn for the first generation, where that waits too.

    Raises:
        LedgerCorruptError: its slots, or a labelling, are missing or altered.
        MachineError: the machine failed.

    """
    budget = Fraction(generation.epsilon), Fraction(generation.delta)
    configuration = configuration.with_budget(*budget)  # what is drawn is what it was charged
    slots = read_slots(ledger, generation)
    labelled = draw_labels(
        configuration, generation, slots, ledger=ledger, noise=noise, pieces=pieces or {}
    )
    size = generation.chunks
    ensemble = fit_slots(configuration, slots, labelled.labels, size=size, progress=progress)
    kept = slots.fitted(labelled.labels, ensemble.to_bytes())
    part = draw_part(
        configuration, generation, slots.held_rows(), ledger=ledger, before=before, noise=noise
    )
    return Fitted(kept, ensemble, labelled, part)


def fit_slots(
    configuration: Configuration,
    slots: Slots,
    given_labels: NDArray[np.int64],
    *,
    size: int,
    progress: Progress,
) -> Ensemble:
    """Return one trained model for each chunk of a batch's stored rows.

    Chunks are runs of slots of public length, so that a slot that holds nothing moves no other.

    Args:
        configuration: the release's.
        slots: of the generation.
        given_labels: the labels that learners see, int64 (m,), one a row.
        size: k_g.
        progress: shows how far the fit has come.

    """
    return fit_ensemble(
        configuration.learner,
        slots.values,
        given_labels,
        permutation=slots.held,
        offsets=slots.before(chunk_offsets(slots.count, size)),
        secret=slots.secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )


def refit_chunks(
    configuration: Configuration,
    slots: Slots,
    given_labels: NDArray[np.int64],
    *,
    size: int,
    places: Iterable[int],
) -> Ensemble:
    """Return a batch's models, of which only those whose rows changed are trained again.

    The chunks of these are fitted anew, with the seeds that they had, and no others: what comes
    of it is, byte for byte, what :func:`fit_slots` makes of all chunks.

    Args:
        configuration: the release's.
        slots: of the generation, with the learners of before.
        given_labels: the labels that learners see, int64 (m,), one a row.
        size: k_g.
        places: of the slots that changed.

    """
    bounds = chunk_offsets(slots.count, size)
    changed = np.searchsorted(bounds, np.array(sorted(places)), side="right") - 1
    body = fit_chunks_anew(
        configuration.learner,
        slots.ensemble or b"",
        slots.values,
        given_labels,
        permutation=slots.held,
        offsets=slots.before(bounds),
        chunks=np.unique(changed),
        secret=slots.secret,
    )
    return read_ensemble_bytes(configuration.learner, body)


def read_fitted(configuration: Configuration, slots: Slots) -> Ensemble:
    """Return the models that are stored with a batch of rows.

    Raises:
        LedgerCorruptError: they are not those of such an ensemble.

    """
    return read_ensemble_bytes(configuration.learner, slots.ensemble or b"")
