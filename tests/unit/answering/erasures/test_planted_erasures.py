"""Faults planted in erasures, and the check that sees each; the real code passes every one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.learning.chunks import chunk_offsets
from app.learning.ensemble import read_ensemble_bytes
from app.ledger.copies.copies import back_up
from app.ledger.database import sqlite
from app.ledger.entries.generations import generations_of
from app.noise.scripted import ScriptedNoise
from app.release.generations import row_changes, tick
from app.release.generations.slots import Slots
from app.release.generations.tick import Ticker
from tests.builders.release.named_rows import NamedRelease, place_of, slots_of
from tests.unit.answering.erasures.test_erasures import (
    emptied,
    forget,
    grains_of_ticks,
    life,
    pass_tick,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHUNKS = 3


def chunks_changed(before: Slots, after: Slots) -> int:
    """Return how many chunks hold other records than before."""
    offsets = chunk_offsets(before.count, CHUNKS)
    return sum(
        before.values[a:b][before.is_filled[a:b]].tobytes()
        != after.values[a:b][after.is_filled[a:b]].tobytes()
        for a, b in pairwise(offsets.tolist())
    )


def erased(folder: Path) -> tuple[Slots, Slots]:
    """Return the slots of a release before and after its first slot's record is forgotten."""
    growing = NamedRelease(folder, {"answers__ensemble": str(CHUNKS)})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    before = slots_of(ledger)
    names = {place_of(ledger, f"a{index}"): f"a{index}" for index in range(before.count)}
    forget(ledger, names[0])
    pass_tick(growing, answerer, ticker)
    return before, slots_of(ledger)


def others_labelled_alike(before: Slots, after: Slots) -> bool:
    """Return whether every other record has the label that it had."""
    assert before.given_labels is not None
    assert after.given_labels is not None
    return bool((before.given_labels[1:] == after.given_labels[1:]).all())


def leaves_nothing(before: Slots, after: Slots) -> bool:
    """Return whether nothing of the first slot's record is left in the stored form."""
    assert before.identities is not None
    body = after.to_bytes()
    return before.identities[0].tobytes() not in body and before.values[0].tobytes() not in body


def test_the_real_code_passes_every_check(tmp_path: Path) -> None:
    """One chunk changes, no other label does, and nothing is left."""
    before, after = erased(tmp_path)
    assert chunks_changed(before, after) == 1
    assert others_labelled_alike(before, after)
    assert leaves_nothing(before, after)


def _closing_up(original: Callable[..., Slots]) -> Callable[..., Slots]:
    """Return an erasure that closes the hole up: later records move by one."""

    def changed(self: Slots, emptied: list[int], replaced: Any) -> Slots:
        after = original(self, emptied, replaced)
        order = np.argsort(~after.is_filled, kind="stable")
        values, labels, filled = after.values[order], after.labels[order], after.is_filled[order]
        return replace(after, values=values, labels=labels, is_filled=filled)

    return changed


def test_a_hole_that_is_closed_up_moves_many_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every chunk behind the hole loses a record to the one before."""
    monkeypatch.setattr(Slots, "changed", _closing_up(Slots.changed))
    assert chunks_changed(*erased(tmp_path)) > 1


def test_a_labelling_drawn_anew_changes_other_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels of records that nobody asked about are others after the tick."""
    monkeypatch.setattr(row_changes, "_given", lambda slots: 1 - slots.given_labels)
    assert not others_labelled_alike(*erased(tmp_path))


def test_a_record_that_is_only_marked_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot that is no longer filled but keeps its row, or its keyed identity."""

    def changed(self: Slots, emptied: list[int], replaced: Any) -> Slots:
        del replaced
        filled = self.is_filled.copy()
        filled[emptied] = False
        return replace(self, is_filled=filled)

    monkeypatch.setattr(Slots, "changed", changed)
    assert not leaves_nothing(*erased(tmp_path))


@pytest.mark.parametrize("is_secure", [True, False])
def test_pages_that_are_not_overwritten_still_hold_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_secure: bool
) -> None:
    """Without secure_delete the file's bytes have it after the tick; with it they have not."""
    if not is_secure:
        options = tuple(each for each in sqlite.WRITER_OPTIONS if "secure" not in each)
        monkeypatch.setattr(sqlite, "WRITER_OPTIONS", (*options, "secure_delete=OFF"))
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    marker = slots_of(ledger).values[place_of(ledger, "a1")].tobytes()[:8]
    forget(ledger, "a1")
    pass_tick(growing, answerer, ticker)
    ledger.close()
    found = any(marker in path.read_bytes() for path in tmp_path.glob("conclave.db*"))
    assert found is not is_secure


def test_a_model_that_is_not_fitted_anew_still_holds_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slots are those of a release in which the slot was empty, but for the learners."""
    growing = NamedRelease(tmp_path, {"answers__ensemble": str(CHUNKS)})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    before = slots_of(ledger)
    assert before.given_labels is not None
    # A chunk of which the last record of one label goes: its learner is another without it.
    side = before.given_labels[: before.count // CHUNKS]
    gone = [place for place, label in enumerate(side.tolist()) if label == 1]
    names = {place_of(ledger, f"a{index}"): f"a{index}" for index in range(before.count)}

    def old(configuration: Any, slots: Slots, labels: Any, **named: Any) -> Any:
        del labels, named
        return read_ensemble_bytes(configuration.learner, slots.ensemble or b"")

    with monkeypatch.context() as patch:
        patch.setattr(row_changes, "refit_chunks", old)
        forget(ledger, *[names[place] for place in gone])
        pass_tick(growing, answerer, ticker)
    after, empty = slots_of(ledger), emptied(growing, before, *gone)
    assert after.values.tobytes() == empty.values.tobytes()
    assert after.to_bytes() != empty.to_bytes()


def test_a_backup_of_after_the_tick_holds_nothing_of_the_record(tmp_path: Path) -> None:
    """One of before holds the row, as the page says of older backups."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    # The digest of the identifier stays, as a tombstone: what is looked for is the row.
    marker = slots_of(ledger).values[place_of(ledger, "a1")].tobytes()[:8]
    copies = [tmp_path / "before.db", tmp_path / "after.db"]
    back_up(growing.small.settings().ledger_url, copies[0])
    forget(ledger, "a1")
    pass_tick(growing, answerer, ticker)
    back_up(growing.small.settings().ledger_url, copies[1])
    assert [marker in copy.read_bytes() for copy in copies] == [True, False]


def test_a_tick_without_padding_shows_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a tick at once that is committed as soon as its chunks are fitted."""
    monkeypatch.setattr(tick, "wait_for_multiple", lambda *_, **__: None)
    grains = grains_of_ticks(NamedRelease(tmp_path), monkeypatch, is_at_once=True)
    assert grains == pytest.approx([0.1, 0.9, 1.3], abs=0.01)


def test_a_tick_that_comes_because_somebody_asked_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Public entries of two lives differ where a server makes a tick as soon as one is asked."""
    real = Ticker.fit_waiting

    def eager(self: Ticker, *given: Any) -> None:
        real(self, *given)
        asked = self._changed is not None and bool(self._changed.requests)
        if asked:
            with self.ledger.transaction() as transaction:
                known = generations_of(transaction.state.generations)
                self._append(transaction, known, known.period)

    monkeypatch.setattr(Ticker, "fit_waiting", eager)
    lives = []
    for erases in (False, True):
        folder = tmp_path / str(erases)
        folder.mkdir()
        lives.append(life(folder, erases=erases))
    assert lives[0] != lives[1]
