"""A generation's labels and learners: drawn and fitted once, under the charge of its append.

A fit may take as long as its rows make it, so nobody sees when it ends: what came of it enters
the ledger at a tick of the clock.  A crash before that left no trace outside, and the labels are
drawn again under the same charge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.errors import ConfigurationError
from app.learning.cells.cell_class import CellClass, CellLabels
from app.learning.chunks import chunk_offsets
from app.learning.encoding.encoded_rows import RowsByPart, predicted
from app.learning.ensemble import fit_ensemble, read_ensemble_bytes
from app.learning.trees.tree import Tree
from app.learning.trees.tree_class import TreeClass
from app.ledger.entries.entry_kinds import labelling_name
from app.ledger.entries.generations import RELABEL, generations_of
from app.privacy.exponential import mechanism as exponential
from app.privacy.exponential import relabel
from app.release.drawing import FITTING
from app.release.generations.slots import Slots, read_slots
from app.release.private_state import read_piece
from app.release.terms.answer_terms import release_budget
from app.release.terms.draw_parameters import relabel_draw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble, Hypothesis, HypothesisClass
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration

LABELLING: Final = "generations.labelling"
NOT_INHERITED: Final = (
    '"inherit" takes hypotheses.class = "trees", "stumps", "thresholds" or "cells", whose '
    "labellings are kept in a form that labels further rows"
)


@dataclass(frozen=True, eq=False, slots=True)
class Fitted:
    """What a fit came to; secret, and not known outside before a tick.

    Attributes:
        slots: with the labels and learners.
        ensemble: the same learners, ready to vote.
        labelled_by: the generation whose labelling its rows have.
        pieces: the drawn labelling, to be kept, where there is one.

    """

    slots: Slots = field(repr=False)
    ensemble: Ensemble = field(repr=False)
    labelled_by: int
    pieces: Mapping[str, bytes] = field(repr=False)


def refuse_labelling(configuration: Configuration) -> None:
    """Refuse labels of an earlier generation where no labelling can be kept for further rows.

    Raises:
        ConfigurationError: they are inherited, and the class has no such form.

    """
    rules = configuration.settings.generations
    takes = isinstance(configuration.hypotheses, TreeClass | CellClass)
    if rules is not None and rules.labelling == "inherit" and not takes:
        raise ConfigurationError(LABELLING, NOT_INHERITED)


def fit_generation(
    configuration: Configuration,
    generation: Generation,
    *,
    ledger: Ledger,
    noise: NoiseSource,
    progress: Progress,
) -> Fitted:
    """Draw the labels of a generation that waits, or take them over, and fit its learners.

    Args:
        configuration: the release's.
        generation: appended, and not labelled.
        ledger: with its slots.
        noise: where a labelling is drawn from.
        progress: shows how far the fit has come.

    Raises:
        LedgerCorruptError: its slots, or a labelling, are missing or altered.
        MachineError: the machine failed.

    """
    slots = read_slots(ledger, generation)
    given_labels, labelled_by, pieces = _labels(
        configuration, generation, slots, ledger=ledger, noise=noise
    )
    fitted = fit_slots(
        configuration, slots, given_labels, size=generation.chunks, progress=progress
    )
    kept = slots.fitted(given_labels, fitted.to_bytes())
    return Fitted(kept, fitted, labelled_by, pieces)


def fit_slots(
    configuration: Configuration,
    slots: Slots,
    given_labels: NDArray[np.int64],
    *,
    size: int,
    progress: Progress,
) -> Ensemble:
    """Return one learner a chunk, fitted on what its slots hold.

    Chunks are runs of slots of public length, so that a slot that holds nothing moves no other.

    Args:
        configuration: the release's.
        slots: of the generation.
        given_labels: the labels that learners see, int64 (n_g,).
        size: k_g.
        progress: shows how far the fit has come.

    """
    held = np.flatnonzero(slots.is_filled)
    offsets = np.searchsorted(held, chunk_offsets(slots.count, size)).astype(np.int64)
    return fit_ensemble(
        configuration.learner,
        slots.values,
        given_labels,
        permutation=held.astype(np.int64),
        offsets=offsets,
        secret=slots.secret,
        progress=lambda done, total: progress(FITTING, done, total),
    )


def read_fitted(configuration: Configuration, slots: Slots) -> Ensemble:
    """Return the learners that slots are kept with.

    Raises:
        LedgerCorruptError: they are not those of such an ensemble.

    """
    return read_ensemble_bytes(configuration.learner, slots.ensemble or b"")


def _labels(
    configuration: Configuration,
    generation: Generation,
    slots: Slots,
    *,
    ledger: Ledger,
    noise: NoiseSource,
) -> tuple[NDArray[np.int64], int, Mapping[str, bytes]]:
    """Return the labels for learners, whose labelling they are, and a new one to be kept."""
    rules, number = configuration.settings.generations, generation.number
    encoded = RowsByPart(configuration.hypotheses.encode, slots.values)
    if rules is not None and rules.labelling == "inherit" and number > 1:
        first = generations_of(ledger.read_state().generations).all[0]
        if RELABEL not in first.shares:
            return slots.labels, first.number, {}
        body = read_piece(ledger, labelling_name(first.number))
        inherited = _read_labelling(configuration.hypotheses, body)
        return predicted(inherited.predict, encoded), first.number, {}
    if RELABEL not in generation.shares:
        return slots.labels, number, {}
    budget = release_budget(configuration.settings)
    parameters = budget and relabel_draw(configuration, budget, sampled_row_count=slots.count)
    if not isinstance(parameters, exponential.Parameters):
        raise ConfigurationError("hypotheses.grid", 'must be "public"')
    drawn = relabel.draw(parameters, (encoded, slots.labels), noise)
    body = msgspec.json.encode(drawn.private_hypothesis.to_dict())
    return drawn.private_labels, number, {labelling_name(number): body}


def _read_labelling(hypotheses: HypothesisClass, body: bytes) -> Hypothesis:
    """Return a labelling that was kept for further rows."""
    plain = msgspec.json.decode(body, type=dict[str, list[int]])
    if isinstance(hypotheses, CellClass):
        return CellLabels(tuple(plain["cell_labels"]))
    return Tree.from_dict(plain)
