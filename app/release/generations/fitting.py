"""Training of the models of one batch of rows (generation), once, on its drawn labels.

The duration of training may depend on the private rows, so the time at which training ends must not
be visible: the result enters the ledger only at a tick (scheduled update). A crash before the tick
leaves no visible trace, and the labels are drawn again under the same charge.

A slot is the fixed place of one row, or of the rows of one person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.learning.chunks import chunk_offsets
from app.learning.ensemble import fit_chunks_anew, fit_ensemble, read_ensemble_bytes
from app.release.drawing import FITTING
from app.release.generations.classifier_contribution import Part, draw_part
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
        slots: the stored rows with their labels and models.
        ensemble: the same models, ready to vote.
        labelled: the labels, and the private values from which they were computed.
        part: the batch's contribution to the published classifier; None if the classifier has no
            share of the batch's epsilon.

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

    The generation's contribution to the published classifier is drawn too, if the classifier has a
    share of the generation's epsilon.

    Args:
        configuration: the release's public parameters.
        generation: an appended generation without labels.
        ledger: the ledger, with the generation's stored rows.
        noise: the source of randomness.
        progress: the display of the progress of training.
        before: the previous generation's contribution to the classifier, if it is not in the ledger
            yet; otherwise None.
        pieces: the private values drawn for the first generation's labels, if they are not in the
            ledger yet; otherwise None.

    Raises:
        LedgerCorruptError: the stored rows, or the rule that labels them, are missing or altered.
        MachineError: the machine refused memory, a file, a thread or a process.

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

    A chunk is a range of slots whose length is public, so an empty slot moves no other slot to
    another chunk.

    Args:
        configuration: the release's public parameters.
        slots: the stored rows of the generation.
        given_labels: the labels on which the models are trained, int64 (m,), one per row.
        size: k_g, the number of the generation's models.
        progress: the display of the progress of training.

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

    Changed chunks are trained again with the same seeds as before. The result is, byte for byte,
    the same as that of :func:`fit_slots` on all chunks.

    Args:
        configuration: the release's public parameters.
        slots: the stored rows of the generation, with the models from before the change.
        given_labels: the labels on which the models are trained, int64 (m,), one per row.
        size: k_g, the number of the generation's models.
        places: the indices of the slots whose rows changed.

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
        LedgerCorruptError: the stored bytes do not contain models of this kind.

    """
    return read_ensemble_bytes(configuration.learner, slots.ensemble or b"")
