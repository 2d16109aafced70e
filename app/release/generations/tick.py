"""The scheduled update (tick) at which trained models join the vote and rows are rewritten.

Ticks follow the clock, in periods of public length, and every tick is a ledger entry, whether
anything changed or not. Between ticks the set of voting models changes only when a generation
(batch of rows) retires: its models stop voting, since its budget is used up. This follows from
public counters. The time at which training ends is not visible: a generation joins the vote at the
first tick of the period that its ledger entry names. If it is not trained by then, the server
stops.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from app.errors import LedgerUnavailableError, MachineError, UnavailableError
from app.ledger.entries.entry_kinds import (
    GenerationsJoined,
    LabellingDrawn,
    SlotsChanged,
    SlotsChanged2,
    slots_name,
)
from app.ledger.entries.generations import cohort_of, generations_of
from app.ledger.erasure_state import REQUEST
from app.release.charged_draw import TURN_LOST
from app.release.generations.classifier_contribution import newest_weights
from app.release.generations.fitting import fit_generation, fit_slots
from app.release.generations.labelling import are_pooled, labels_by, not_kept, pooled_by
from app.release.generations.row_changes import Changed, prepare_changes
from app.release.generations.slots import Slots, read_slots
from app.release.generations.waiting_fits import WaitingFits
from app.release.generations.waiting_requests import bury
from app.release.private_state import put_pieces
from app.release.progress import no_progress
from app.release.terms.answer_time_padding import wait_for_multiple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from app.learning.hypothesis import Ensemble, Hypothesis
    from app.ledger.entries.chain import Head
    from app.ledger.entries.fold import LedgerState
    from app.ledger.entries.generations import Generation, Generations
    from app.ledger.ledger import Ledger, Transaction
    from app.noise.source import NoiseSource
    from app.release.generations.fitting import Fitted
    from app.release.generations.generations_release import LivingRelease
    from app.release.progress import Progress
    from app.release.terms.configuration import Configuration

TICK_GRAIN_SECONDS: Final = 0.1
"""A tick is committed whole multiples of this after it began: requests are a little work of it."""

FITTED_ELSEWHERE: Final = "a generation that is due is not fitted here; nothing was committed"
TICKED_ELSEWHERE: Final = "another process made a tick meanwhile; nothing was committed"


class NotFittedError(MachineError):
    """A batch of rows is due to vote but its models are not trained, so the server stops."""

    def __str__(self) -> str:
        """Return a text that says what to do."""
        return (
            "a generation was not fitted by its tick, and nothing is answered any more; start "
            "again, which fits it first and charges nothing twice, and make generations.tick "
            "longer than a fit takes in a new release"
        )


class Kept(NamedTuple):
    """The private data of one batch of rows, as stored at a scheduled update; secret.

    A slot is the fixed place of one row, or of the rows of one person.

    Attributes:
        slots: the stored rows, labels and models.
        ensemble: the batch's models if they were retrained; None if they did not change.

    """

    slots: Slots
    ensemble: Ensemble | None = None


@dataclass(slots=True)
class Ticker:
    """The background work of a release that accepts rows: training, and scheduled updates.

    Attributes:
        configuration: the release's public parameters.
        ledger: the ledger of the release.
        noise: the source of randomness.
        clock: a function that returns seconds since 1970.
        waiting: trained models that are not in the ledger yet.

    """

    configuration: Configuration
    ledger: Ledger
    noise: NoiseSource
    clock: Callable[[], float] = time.time
    waiting: WaitingFits = field(default_factory=WaitingFits, repr=False)
    _changed: Changed | None = field(default=None, repr=False)
    _fitting: Lock = field(default_factory=Lock, repr=False)

    @property
    def period(self) -> int:
        """The number of whole periods between updates that have passed since 1970."""
        rules = self.configuration.settings.generations
        return int(self.clock()) // (1 if rules is None else rules.tick_seconds)

    def is_due(self, state: LedgerState) -> bool:
        """Return whether a scheduled update is due in a release that still answers."""
        return not _has_ended(state) and self.period > generations_of(state.generations).period

    def awaits_fit(self, state: LedgerState) -> bool:
        """Return whether any waiting batch of rows has untrained models."""
        tick, fits = generations_of(state.generations).tick, self.waiting
        is_checked = fits.checked_at == tick and fits.are_held()
        return bool(fits.private_fitted and not is_checked) or bool(self._unfitted(state))

    def awaits_change(self, state: LedgerState) -> bool:
        """Return whether any requested erasure or correction is not prepared yet."""
        if state.generations is None or _has_ended(state):
            return False
        prepared = self._prepared(generations_of(state.generations))
        return tuple(self.ledger.beside(REQUEST)) != prepared.requests

    def fit_waiting(self, progress: Progress = no_progress) -> None:
        """Train the models of every waiting batch of rows, unless another server does.

        Pending erasures and corrections are prepared for the next tick.

        Raises:
            LedgerUnavailableError: another process is training the models, or the ledger cannot be
                read.
            MachineError: the machine refused memory, a file, a thread or a process.

        """
        with self._fitting:
            self._check_fits()
            self._prepare()
            while unfitted := self._unfitted(self.ledger.read_state()):
                generation = unfitted[0]
                self.waiting.take_turn(self.ledger)
                self.waiting.begun.setdefault(generation.number, self.period)
                fits, number = self.waiting.private_fitted, generation.number
                earlier = fits.get(number - 1)
                labelled = {each: fit.labelled for each, fit in fits.items()}
                fitted = fit_generation(
                    self.configuration,
                    generation,
                    ledger=self.ledger,
                    noise=self.noise,
                    progress=progress,
                    before=None if earlier is None else earlier.part,
                    pieces=not_kept(self.configuration, labelled, number),
                )
                if not self.waiting.are_held():
                    raise LedgerUnavailableError(TURN_LOST)
                self.waiting.private_fitted[generation.number] = fitted
                self._prepare()

    def _check_fits(self) -> None:
        """Forget fits of slots that a tick of another process has changed since.

        Where the turn was lost with its connection, another process may draw: forget all.
        """
        known, fits = generations_of(self.ledger.read_state().generations), self.waiting
        if fits.private_fitted and not fits.are_held():
            fits.end_turn()
        for each in known.waiting if self.waiting.checked_at != known.tick else ():
            fitted = fits.private_fitted.get(each.number)
            if fitted and not fitted.slots.holds_same(read_slots(self.ledger, each)):
                fits.forget_from(each.number)
        self.waiting.checked_at = known.tick

    def _prepare(self) -> None:
        """Prepare the requests that wait for the next tick."""
        known = generations_of(self.ledger.read_state().generations)
        self._changed = prepare_changes(
            self.configuration, self.ledger, known, self.waiting.private_fitted
        )

    def _prepared(self, known: Generations) -> Changed:
        """Return the changes that are prepared for the next tick, none of an earlier one."""
        if self._changed is None or self._changed.tick != known.tick:
            return Changed(known.tick)
        return self._changed

    def change_now(self) -> tuple[Head, Head]:
        """Make all requested changes now; return the newest ledger entry before and after them.

        The commit is made when a whole multiple of :data:`TICK_GRAIN_SECONDS` has passed since the
        call began. Unlike at a scheduled update, the retraining of changed chunks is part of this
        time.

        Raises:
            LedgerUnavailableError: a generation is due to join the vote, and only a server may make
                the tick at which it joins; or another tick was made meanwhile; or the ledger
                refused the commit. The requests stay pending until the next tick.

        """
        started = time.monotonic()
        with self._fitting:
            self._prepare()
            with self.ledger.transaction() as transaction:
                before = transaction.state.head
                known = generations_of(transaction.state.generations)
                if self._changed is None or self._changed.tick != known.tick:
                    raise LedgerUnavailableError(TICKED_ELSEWHERE)
                self._append(transaction, known, max(self.period, known.period))
                wait_for_multiple(TICK_GRAIN_SECONDS, started=started)
            self._tidy(generations_of(transaction.state.generations))
        return before, transaction.state.head

    def tick(self, release: LivingRelease) -> None:
        """Make a scheduled update, unless another server did; trained batches join the vote.

        The caller must ensure that nothing else changes the release meanwhile.

        Raises:
            NotFittedError: a generation is due to join the vote but its models are not trained.
            LedgerUnavailableError: the ledger refused the commit; try again.

        """
        before, kept = generations_of(release.state.generations).tick, dict[int, Kept]()
        started = time.monotonic()
        with self.ledger.transaction() as transaction:
            known = generations_of(transaction.state.generations)
            if known.tick == before and self.is_due(transaction.state):
                kept = self._append(transaction, known, self.period)
                wait_for_multiple(TICK_GRAIN_SECONDS, started=started)
        after = generations_of(transaction.state.generations)
        fitted = {
            number: each.ensemble for number, each in kept.items() if each.ensemble is not None
        }
        release.take_over(fitted, after.tick, kept.keys() - fitted.keys())
        release.adopt(transaction.state)
        self._tidy(after)

    def _tidy(self, after: Generations) -> None:
        """Forget what is in the ledger, once it is, and take over fits with changes."""
        changed, self._changed = self._changed, None
        if changed is not None and changed.tick < after.tick:
            self.waiting.private_fitted.update(changed.fitted)
        self.waiting.leave_out(each.number for each in after.all if each.labelled_by is not None)

    def _unfitted(self, state: LedgerState) -> list[Generation]:
        """Return the generations that wait without labels, here too; none of what has ended.

        Those of a cohort wait until the last of them is there.
        """
        known = generations_of(state.generations)
        if _has_ended(state) or len(known.all) < _cohort(state):
            return []
        return [
            each
            for each in known.waiting
            if each.labelled_by is None and each.number not in self.waiting.private_fitted
        ]

    def _append(self, transaction: Transaction, known: Generations, period: int) -> dict[int, Kept]:
        """Append the entries of a tick; return what every generation keeps from it on."""
        cohort = _cohort(transaction.state)
        due = [each for each in known.due(period, cohort) if each.labelled_by is None]
        changed = self._prepared(known)
        fitted = {**self.waiting.private_fitted, **changed.fitted}
        self._require_fitted(known, due, cohort, fitted)
        kept = self._kept(known, due, changed, fitted)
        transaction.delete_beside(changed.requests)
        bury(transaction, known.tick + 1, changed.erased)
        for each in due:
            labelled, part = fitted[each.number].labelled, fitted[each.number].part
            digests = put_pieces(transaction, labelled.pieces)
            transaction.append(
                LabellingDrawn(number=each.number, of=labelled.labelled_by, private_digests=digests)
            )
            if part is not None:
                if part.start != newest_weights(transaction.state):
                    raise NotFittedError  # it rests on weights that nobody was ever shown
                transaction.append(part.event)
        tick = known.tick + 1
        pieces = {slots_name(number, tick): each.slots.to_bytes() for number, each in kept.items()}
        digests = put_pieces(transaction, pieces)
        event = SlotsChanged(tick=tick, period=period, private_digests=digests)
        if self.configuration.settings.erasure.count == "public":
            event = SlotsChanged2(erased=len(changed.erased), **structs.asdict(event))
        transaction.append(event)
        known = generations_of(transaction.state.generations)
        if known.joining:
            joined = GenerationsJoined(numbers=list(known.joining), active=known.active_set + 1)
            transaction.append(joined)
        return kept

    def _require_fitted(
        self,
        known: Generations,
        due: Sequence[Generation],
        cohort: int,
        fitted: Mapping[int, Fitted],
    ) -> None:
        """Refuse a tick at which a generation is due that is not fitted.

        Raises:
            NotFittedError: this server had begun its fit before the tick was due.
            LedgerUnavailableError: another server fits it, and makes the tick; or none had
                begun in time, as after a restart, or the turn was lost with its connection,
                and the tick comes with the fit.

        """
        for each in due:
            if each.number in fitted and self.waiting.are_held():
                continue
            joins_at = known.join_period(each, cohort) or 0
            has_begun = self.waiting.begun.get(each.number, joins_at) < joins_at
            if has_begun and each.number not in fitted:
                raise NotFittedError
            raise LedgerUnavailableError(FITTED_ELSEWHERE)

    def _kept(
        self,
        known: Generations,
        due: Sequence[Generation],
        changed: Changed,
        fitted: Mapping[int, Fitted],
    ) -> dict[int, Kept]:
        """Return what every generation keeps: with further counts, all are labelled anew."""
        kept = {each.number: Kept(read_slots(self.ledger, each)) for each in known.kept}
        for number, slots in changed.slots.items():
            if number in kept:  # one may have retired since
                kept[number] = Kept(slots, changed.ensembles.get(number))
        for each in due:
            fit = fitted[each.number]
            if not fit.slots.holds_same(kept[each.number].slots):  # fitted at an earlier tick
                raise NotFittedError
            kept[each.number] = Kept(fit.slots, fit.ensemble)
        if due and are_pooled(self.configuration):
            further = [
                body for each in due for body in fitted[each.number].labelled.pieces.values()
            ]
            labelling = pooled_by(self.configuration, self.ledger, further)
            for each in known.kept:
                if kept[each.number].slots.given_labels is not None:
                    kept[each.number] = self._relabelled(each, kept[each.number], labelling)
        return kept

    def _relabelled(self, generation: Generation, kept: Kept, labelling: Hypothesis) -> Kept:
        """Return a generation's slots with the labels of a labelling, and learners fitted anew.

        They are where no label has changed too: how long a tick takes tells of none.
        """
        labels = labels_by(self.configuration, labelling, kept.slots)
        ensemble = fit_slots(
            self.configuration,
            kept.slots,
            labels,
            size=generation.chunks,
            progress=no_progress,
        )
        return Kept(kept.slots.fitted(labels, ensemble.to_bytes()), ensemble)


def _cohort(state: LedgerState) -> int:
    """Return the number of first generations with one draw of labels; 0 where each has its own."""
    return 0 if state.release is None else cohort_of(state.release)


def _has_ended(state: LedgerState) -> bool:
    """Return whether no vote is cast and nothing drawn any more."""
    return state.halted is not None or state.closed is not None


def wait_for_fits(ticker: Ticker, progress: Progress) -> None:
    """Wait, before serving, until the models of all waiting batches of rows are trained."""
    with suppress(UnavailableError):
        ticker.fit_waiting(progress)
