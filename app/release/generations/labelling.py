"""The labels of one batch of rows: drawn from it or from several batches, or by an earlier rule.

A generation is one batch of rows. A labelling is the rule, or the label of each public cell, by
which rows get the labels on which models are trained. The setting ``generations.labelling`` chooses
one of four ways to make a labelling:

* ``own``: the exponential mechanism on the generation's rows, with the generation's own charge.
* ``inherit``: the labelling of the first generation, at no further cost (Lemma 3 in
  ``app/privacy/generations/pooled_labels_proof.md``).
* ``pooled``: noisy label counts of the generation's rows in public cells, with its own charge. The
  label of a cell is the one with the largest sum of counts over all generations, and is computed
  again whenever a generation is added.
* ``cohort``: one draw from the rows of the first generations together, stored with the first
  generation; later generations use the same labelling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import msgspec

from app.data.persons import WEIGHT_UNITS
from app.errors import ConfigurationError, InvariantError
from app.learning.cells.cell_class import CellLabels
from app.learning.encoding.encoded_rows import RowsByPart, predicted
from app.learning.registry import row_of
from app.ledger.entries.entry_kinds import labelling_name
from app.ledger.entries.generations import RELABEL, generations_of
from app.privacy.budget.composition import Mechanism
from app.privacy.exponential import relabel
from app.privacy.generations import pooled_labels
from app.privacy.generations.pooled_labels import NoisyCounts
from app.release.generations.first_labelling import (
    cohort_size,
    draw_for_cohort,
    labelling_parameters,
)
from app.release.private_state import read_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from app.learning.hypothesis import Hypothesis, HypothesisClass
    from app.ledger.entries.generations import Generation
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.generations.slots import Slots
    from app.release.terms.configuration import Configuration

KEY: Final = "generations.labelling"
NOT_INHERITED: Final = (
    '"inherit" or "cohort" takes hypotheses.class = "trees", "stumps", "thresholds" or "cells", '
    "whose labellings are kept in a form that labels further rows"
)

SHARED: Final = {"inherit", "cohort"}
"""Modes in which the labels of all are by what is kept as the first generation's labelling."""

NOT_FURTHER: Final = (
    'must be "trees", "stumps", "thresholds" or "cells" where data.person names persons, or '
    "privacy.shares.relabel 0: later rows of a person get labels by the labelling that was drawn"
)


@dataclass(frozen=True, eq=False, slots=True)
class Labelled:
    """The labels drawn for a batch of rows; secret.

    Attributes:
        labels: the labels on which the models are trained, int64 (m,), one per row.
        labelled_by: the number of the generation whose labelling gives these labels.
        pieces: the private values that were drawn for the labelling, to be stored; empty if nothing
            was drawn.

    """

    labels: NDArray[np.int64] = field(repr=False)
    labelled_by: int
    pieces: Mapping[str, bytes] = field(repr=False, default_factory=dict)


def refuse_labelling(configuration: Configuration) -> None:
    """Raise an error for a class whose drawn hypothesis cannot be stored to label further rows.

    Raises:
        ConfigurationError: labels are inherited, or persons may have further rows, and hypotheses
            of this class cannot be stored.

    """
    takes = row_of(configuration.hypotheses).read_drawn is not None
    if _rule(configuration) in SHARED and not takes:
        raise ConfigurationError(KEY, NOT_INHERITED)
    if configuration.settings.data.unit == "person" and not can_label_again(configuration):
        raise ConfigurationError("hypotheses.class", NOT_FURTHER)


def draw_labels(
    configuration: Configuration,
    generation: Generation,
    slots: Slots,
    *,
    ledger: Ledger,
    noise: NoiseSource,
    pieces: Mapping[str, bytes],
) -> Labelled:
    """Return a batch's labels: drawn with its own budget, or given by an earlier drawn rule.

    Args:
        configuration: the release's public parameters.
        generation: an appended generation without labels.
        slots: the stored rows of the generation.
        ledger: the ledger, with the labellings of earlier generations.
        noise: the source of randomness.
        pieces: the private values drawn for the first generation's labels that are not in the
            ledger yet.

    Raises:
        LedgerCorruptError: a stored labelling is missing or altered.

    """
    rule, number = _rule(configuration), generation.number
    if rule in SHARED and number > 1:
        return _inherited(configuration, slots, ledger, pieces)
    if RELABEL not in generation.shares:
        return Labelled(slots.labels, number)
    if rule == "pooled":
        return _counted(configuration, generation, slots, ledger=ledger, noise=noise)
    if cohort_size(configuration):
        drawn_for_all = draw_for_cohort(configuration, ledger, noise)
        labels = labels_by(configuration, drawn_for_all, slots)
        return Labelled(labels, number, {labelling_name(number): _kept(drawn_for_all)})
    parameters = labelling_parameters(configuration, slots.count)
    encoded = RowsByPart(configuration.hypotheses.encode, slots.values)
    drawn = relabel.draw(parameters, (encoded, slots.labels), noise, slots.weights)
    body = _kept(drawn.private_hypothesis)
    return Labelled(drawn.private_labels, number, {labelling_name(number): body})


def not_kept(
    configuration: Configuration, labelled: Mapping[int, Labelled], number: int
) -> Mapping[str, bytes]:
    """Return the private values behind a batch's drawn labels that the ledger has not stored yet.

    Args:
        configuration: the release's public parameters.
        labelled: the labels of the batches that do not vote yet, by the batch's number.
        number: the number of the batch.

    """
    source = 1 if _rule(configuration) in SHARED else number
    return labelled[source].pieces if source in labelled else {}


def are_pooled(configuration: Configuration) -> bool:
    """Return whether labels come from noisy counts that are summed over all batches of rows."""
    return _rule(configuration) == "pooled"


def pooled_by(
    configuration: Configuration, ledger: Ledger, further: Iterable[bytes] = ()
) -> CellLabels:
    """Return the label of each public cell, by noisy counts over all batches of rows.

    Args:
        configuration: the release's public parameters.
        ledger: the ledger, with the stored counts.
        further: counts that were drawn but are not stored yet.

    """
    known = generations_of(ledger.read_state().generations)
    kept = [read_piece(ledger, labelling_name(each.number)) for each in known.all if _has(each)]
    shape = _parameters(configuration, slot_count=1).shape
    counts = [NoisyCounts.from_bytes(body, shape=shape) for body in [*kept, *further]]
    return CellLabels(tuple(pooled_labels.running_sum(counts).labels().tolist()))


def labels_by(
    configuration: Configuration, labelling: Hypothesis, slots: Slots
) -> NDArray[np.int64]:
    """Return the labels that a drawn hypothesis gives to stored rows, one per row."""
    encoded = RowsByPart(configuration.hypotheses.encode, slots.values)
    return predicted(labelling.predict, encoded)


def can_label_again(configuration: Configuration) -> bool:
    """Return whether the stored values suffice to give a corrected record its label."""
    is_labelled = Mechanism.RELABEL in configuration.charges
    return not is_labelled or row_of(configuration.hypotheses).read_drawn is not None


def given_labels(
    configuration: Configuration,
    generation: Generation,
    slots: Slots,
    *,
    ledger: Ledger,
    pieces: Mapping[str, bytes],
) -> NDArray[np.int64]:
    """Return the drawn labels of a batch's stored rows, one per row.

    Nothing is drawn here: after a correction of a record, the labelling that was drawn with the
    earlier version of the record stays in force.

    Args:
        configuration: the release's public parameters, for which :func:`can_label_again` is true.
        generation: the generation, whose labelling is in the ledger or in ``pieces``.
        slots: the rows as stored now.
        ledger: the ledger, with the stored labellings.
        pieces: the private values drawn for the generation's labels that are not in the ledger yet.

    """
    if _rule(configuration) == "pooled":
        return labels_by(configuration, pooled_by(configuration, ledger, pieces.values()), slots)
    source = generation.labelled_by or generation.number
    if _rule(configuration) in SHARED:
        source = 1
    name = labelling_name(source)
    body = pieces.get(name)
    if body is None and RELABEL not in _of(ledger, source).shares:
        return slots.labels
    labelling = _read_labelling(configuration.hypotheses, body or read_piece(ledger, name))
    return labels_by(configuration, labelling, slots)


def _of(ledger: Ledger, number: int) -> Generation:
    return generations_of(ledger.read_state().generations).all[number - 1]


def _has(generation: Generation) -> bool:
    """Return whether a generation's counts are in the ledger."""
    return generation.labelled_by is not None


def _rule(configuration: Configuration) -> str:
    rules = configuration.settings.generations
    return "own" if rules is None else rules.labelling


def _kept(labelling: Hypothesis) -> bytes:
    """Return a labelling as it is kept for further rows."""
    return msgspec.json.encode(labelling.to_dict())


def _inherited(
    configuration: Configuration, slots: Slots, ledger: Ledger, pieces: Mapping[str, bytes]
) -> Labelled:
    first = generations_of(ledger.read_state().generations).all[0]
    if RELABEL not in first.shares:
        return Labelled(slots.labels, first.number)
    name = labelling_name(first.number)
    body = pieces.get(name) or read_piece(ledger, name)
    labelling = _read_labelling(configuration.hypotheses, body)
    return Labelled(labels_by(configuration, labelling, slots), first.number)


def _counted(
    configuration: Configuration,
    generation: Generation,
    slots: Slots,
    *,
    ledger: Ledger,
    noise: NoiseSource,
) -> Labelled:
    """Draw noisy counts of the rows that slots hold; labels are by the sums so far."""
    rows = slots.held_rows()
    cells = configuration.hypotheses.encode(rows.values)[:, 0].astype("int64")
    parameters = _parameters(configuration, slot_count=slots.count)
    drawn = pooled_labels.draw(parameters, (cells, rows.labels), noise, rows.weights)
    body = drawn.to_bytes()
    labelling = pooled_by(configuration, ledger, [body])
    labels = labels_by(configuration, labelling, slots)
    return Labelled(labels, generation.number, {labelling_name(generation.number): body})


def _parameters(configuration: Configuration, *, slot_count: int) -> pooled_labels.Parameters:
    searched = configuration.hypotheses
    splits = row_of(searched).splits
    if splits is None:
        raise InvariantError("labels are pooled over public cells")
    return pooled_labels.Parameters(
        cell_count=splits(searched).cell_count,
        class_count=searched.class_count,
        slot_count=slot_count,
        epsilon=Fraction(configuration.charges[Mechanism.RELABEL].epsilon),
        unit_count=1 if configuration.settings.data.unit == "row" else WEIGHT_UNITS,
    )


def _read_labelling(hypotheses: HypothesisClass, body: bytes) -> Hypothesis:
    """Return a labelling that was kept for further rows."""
    read_drawn = row_of(hypotheses).read_drawn
    if read_drawn is None:
        raise InvariantError("labellings are kept of classes that can read them")
    return read_drawn(msgspec.json.decode(body, type=dict[str, list[int]]))
