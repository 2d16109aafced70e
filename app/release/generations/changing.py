"""Erasures and corrections of stored rows, prepared in advance of a scheduled update.

A changed slot's chunk is fitted anew, with the seed it had, on what is left; nothing else is drawn,
and no slot moves.  The generation's other learners are fitted too and come out as they were, since
each is a function of its own chunk, seed and query: which chunk changed, nobody can tell from the
work.  The fit is done before the tick, and the tick itself does the same work whether anything
changed or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from app.ledger.beside_entries import REQUEST
from app.release.generations.fitting import Fitted, fit_slots
from app.release.generations.labelling import given_labels
from app.release.generations.requests import Change, read_changes
from app.release.generations.slots import Slots, read_slots
from app.release.progress import no_progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from app.learning.hypothesis import Ensemble
    from app.ledger.entries.generations import Generation, Generations
    from app.ledger.ledger import Ledger
    from app.release.terms.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Changed:
    """The prepared changes of rows for the next scheduled update; secret.

    Attributes:
        tick: the newest tick when they were prepared; of another they are no use.
        requests: names of the requests that they answer.
        erased: identities of records that are forgotten with it.
        slots: of each generation that changes, by its number.
        ensembles: learners of those that are fitted, by its number.
        fitted: of those that wait and are fitted here, the same fit with the changes.

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
    """Apply every pending request to the stored rows, and fit the changed learners again.

    Args:
        configuration: the release's.
        ledger: with slots and requests.
        known: its generations.
        fitted: of generations that wait, fits that are not in the ledger.

    Raises:
        LedgerCorruptError: slots, a labelling or a request are altered.
        MachineError: the machine failed.

    """
    bodies = ledger.beside(REQUEST)
    changes = {each.identity: each for body in bodies.values() for each in read_changes(body)}
    slots: dict[int, Slots] = {}
    ensembles: dict[int, Ensemble] = {}
    refitted: dict[int, Fitted] = {}
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
            after, ensemble = _refitted(
                configuration, ledger, generation, first.slots, mine, first.labelled.pieces
            )
            labelled = replace(first.labelled, labels=_given(after))
            refitted[number] = Fitted(after, ensemble, labelled)
    erased = tuple(each.identity for each in changes.values() if each.is_erasure)
    return Changed(known.tick, tuple(bodies), erased, slots, ensembles, refitted)


def _refitted(
    configuration: Configuration,
    ledger: Ledger,
    generation: Generation,
    before: Slots,
    mine: Mapping[int, Change],
    pieces: Mapping[str, bytes] | None = None,
) -> tuple[Slots, Ensemble]:
    """Return changed slots with labels and learners; a hole has the first label, unseen."""
    after = _with(before, mine)
    labels = _given(before).copy()
    corrected = [place for place, change in mine.items() if not change.is_erasure]
    if corrected:
        again = given_labels(configuration, generation, after, ledger=ledger, pieces=pieces or {})
        labels[corrected] = again[corrected]
    labels[~after.is_filled] = 0
    ensemble = fit_slots(configuration, after, labels, size=generation.chunks, progress=no_progress)
    return after.fitted(labels, ensemble.to_bytes()), ensemble


def _given(slots: Slots) -> NDArray[np.int64]:
    return np.zeros(0, np.int64) if slots.given_labels is None else slots.given_labels


def _with(before: Slots, mine: Mapping[int, Change]) -> Slots:
    """Return slots with changes, by their places."""
    emptied = [place for place, change in mine.items() if change.is_erasure]
    replaced = {
        place: (np.frombuffer(change.row, dtype="<f8"), change.label)
        for place, change in mine.items()
        if not change.is_erasure
    }
    return before.changed(emptied, replaced)
