"""Erasures and corrections of stored rows, prepared before a scheduled update (tick).

The chunk of a changed row is trained again on the remaining rows, with the seed that it had.
Nothing else is trained or drawn, and no row moves to another chunk. The generation's other models
are functions of their own chunks and seeds, so they stay the same. The training is done before the
tick, while the server answers queries, and the tick itself does the same work whether anything
changed or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from app.ledger.erasure_state import REQUEST
from app.release.generations.fitting import refit_chunks
from app.release.generations.labelling import given_labels, not_kept
from app.release.generations.slots import Contents, Slots, read_slots
from app.release.generations.waiting_requests import Change, read_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble
    from app.ledger.entries.generations import Generation, Generations
    from app.ledger.ledger import Ledger
    from app.release.generations.fitting import Fitted
    from app.release.terms.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Changed:
    """The prepared changes of rows for the next scheduled update; secret.

    Attributes:
        tick: the number of the newest tick when the changes were prepared; after another tick they
            are discarded.
        requests: the names of the requests that the changes fulfil.
        erased: the keyed digests of the identifiers of erased records.
        slots: the changed rows of each generation that changes, by its number.
        ensembles: the models of generations with retrained models, by the generation's number.
        fitted: for generations that do not vote yet, their trained models after the changes.

    """

    tick: int
    requests: tuple[str, ...] = ()
    erased: tuple[bytes, ...] = field(repr=False, default=())
    slots: Mapping[int, Slots] = field(repr=False, default_factory=dict)
    ensembles: Mapping[int, Ensemble] = field(repr=False, default_factory=dict)
    fitted: Mapping[int, Fitted] = field(repr=False, default_factory=dict)


def prepare_changes(
    configuration: Configuration,
    ledger: Ledger,
    known: Generations,
    fitted: Mapping[int, Fitted],
) -> Changed:
    """Apply every pending request to the stored rows, and retrain the affected models.

    Args:
        configuration: the release's public parameters.
        ledger: the ledger, with stored rows and requests.
        known: the generations of the release.
        fitted: the trained models of generations that are not in the ledger yet.

    Raises:
        LedgerCorruptError: stored rows, the rule that labels them, or a request are altered.
        MachineError: the machine refused memory, a file, a thread or a process.

    """
    bodies = ledger.beside(REQUEST)
    changes: dict[bytes, list[Change]] = {}
    for each in (change for body in bodies.values() for change in read_changes(body)):
        changes.setdefault(each.identity, []).append(each)
    slots: dict[int, Slots] = {}
    ensembles: dict[int, Ensemble] = {}
    refitted: dict[int, Fitted] = {}
    labelled_here = {number: each.labelled for number, each in fitted.items()}
    for generation in known.kept if changes else ():
        number, before = generation.number, read_slots(ledger, generation)
        mine = {place: changes[name] for name, place in before.places().items() if name in changes}
        if not mine:
            continue
        if before.given_labels is not None:
            after, ensemble = _refitted(configuration, ledger, generation, before, mine)
            slots[number], ensembles[number] = after, ensemble
            continue
        slots[number] = _with(before, mine)
        if number in fitted:
            first = fitted[number]
            pieces = not_kept(configuration, labelled_here, number)
            after, ensemble = _refitted(
                configuration, ledger, generation, first.slots, mine, pieces
            )
            labelled = replace(first.labelled, labels=_given(after))
            refitted[number] = replace(first, slots=after, ensemble=ensemble, labelled=labelled)
    erased = tuple(
        name for name, asked in changes.items() if any(each.is_erasure for each in asked)
    )
    return Changed(known.tick, tuple(bodies), erased, slots, ensembles, refitted)


def _refitted(
    configuration: Configuration,
    ledger: Ledger,
    generation: Generation,
    before: Slots,
    mine: Mapping[int, Sequence[Change]],
    pieces: Mapping[str, bytes] | None = None,
) -> tuple[Slots, Ensemble]:
    """Return changed slots with labels and learners; a hole has the first label, unseen."""
    after = _with(before, mine)
    labels = _given(after).copy()
    corrected = after.positions(place for place in mine if after.is_filled[place])
    if len(corrected):
        again = given_labels(configuration, generation, after, ledger=ledger, pieces=pieces or {})
        labels[corrected] = again[corrected]
    is_hole = np.ones(len(labels), dtype=np.bool_)
    is_hole[after.held] = False
    labels[is_hole] = 0
    ensemble = refit_chunks(configuration, after, labels, size=generation.chunks, places=mine)
    return after.fitted(labels, ensemble.to_bytes()), ensemble


def _given(slots: Slots) -> NDArray[np.int64]:
    return np.zeros(0, np.int64) if slots.given_labels is None else slots.given_labels


def _with(before: Slots, mine: Mapping[int, Sequence[Change]]) -> Slots:
    """Return slots with changes in the order of their requests, by their places."""
    after = {place: _changed(before.contents(place), asked) for place, asked in mine.items()}
    emptied = [place for place, contents in after.items() if contents is None]
    replaced = {place: contents for place, contents in after.items() if contents is not None}
    return before.changed(emptied, replaced)


def _changed(contents: Contents, asked: Sequence[Change]) -> Contents | None:
    """Return what a slot holds after changes, None where it is forgotten, which is for good."""
    for change in asked:
        if change.is_erasure:
            return None
        brought = change.contents
        if change.is_further:
            values = np.concatenate([contents.values, brought.values])
            contents = Contents(values, np.concatenate([contents.labels, brought.labels]))
        else:
            contents = brought
    return contents
