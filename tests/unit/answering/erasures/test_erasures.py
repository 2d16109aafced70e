"""Records are forgotten and corrected: what changes, what stays, and what nobody can tell."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.errors import ConfigurationError, LedgerCorruptError, LedgerUnavailableError
from app.ledger.entries.generations import generations_of
from app.ledger.erasure_state import REQUEST, TOMBSTONE
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.release.generations import tick
from app.release.generations.fitting import fit_slots
from app.release.generations.labelling import given_labels
from app.release.generations.tick import Ticker
from app.release.generations.waiting_requests import (
    Taken,
    corrections_of,
    erasures_of,
    read_changes,
    refuse_changes,
    take_down,
)
from app.release.progress import no_progress
from app.release.terms import answer_time_padding
from tests.builders.release.growing_release import MINUTE, GrowingRelease
from tests.builders.release.named_rows import NamedRelease, named, place_of, slots_of
from tests.builders.release.small_release import HIT, STABLE, SmallRelease, ask, private_rows

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.release.generations.slots import Slots

MASKED = "0" * 64


def forget(ledger: Ledger, *identifiers: str) -> Taken:
    """Ask for erasures."""
    return take_down(ledger, erasures_of(ledger, identifiers))


def pass_tick(growing: GrowingRelease, answerer: LivingAnswerer, ticker: Ticker) -> None:
    """Let a period pass with whatever is prepared, by one server."""
    growing.now += MINUTE
    answerer.follow()
    ticker.fit_waiting()
    answerer.tick(ticker)


def emptied(growing: NamedRelease, slots: Slots, *places: int) -> Slots:
    """Return slots that were empty in places from the start, under the same key and labelling."""
    hole = slots.changed(places, {})
    labels = slots.given_labels
    assert labels is not None
    labels = labels.copy()
    labels[list(places)] = 0
    ensemble = fit_slots(growing.small.configuration(), hole, labels, size=3, progress=no_progress)
    return hole.fitted(labels, ensemble.to_bytes())


def test_an_erased_slot_is_as_if_it_had_been_empty_from_the_start(tmp_path: Path) -> None:
    """Byte for byte: rows, labels, learners and identities; the hole stays where it was."""
    growing = NamedRelease(tmp_path, {"answers__ensemble": "3"})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    before, places = slots_of(ledger), (place_of(ledger, "a1"), place_of(ledger, "a5"))
    assert forget(ledger, "a1", "a5") == Taken(2, ())
    assert slots_of(ledger).to_bytes() == before.to_bytes()
    pass_tick(growing, answerer, ticker)
    assert slots_of(ledger).to_bytes() == emptied(growing, before, *places).to_bytes()
    assert np.flatnonzero(~slots_of(ledger).is_filled).tolist() == sorted(places)
    assert not ledger.beside(REQUEST)
    number, learners = answerer.living.private_fitted[1]
    assert number == generations_of(ledger.read_state().generations).tick
    assert learners.to_bytes() == slots_of(ledger).ensemble


def test_a_chunk_without_a_record_votes_the_first_class(tmp_path: Path) -> None:
    """Every record of a chunk may be forgotten; the others vote as they did."""
    growing = NamedRelease(tmp_path, {"answers__ensemble": "3"})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    names = {place_of(ledger, f"a{index}"): f"a{index}" for index in range(private_rows().count)}
    values = np.array([[40.0, 0.0], [-40.0, 0.0]])
    before = answerer.living.ensemble.vote_counts(values)
    forget(ledger, *[names[place] for place in range(slots_of(ledger).count // 3)])
    pass_tick(growing, answerer, ticker)
    after = answerer.living.ensemble.vote_counts(values)
    assert after.sum() == before.sum()
    assert (after[:, 0] >= before[:, 0]).all()
    assert after[0, 0] == before[0, 0] + 1


def test_what_is_not_known_is_named_and_the_rest_is_done(tmp_path: Path) -> None:
    """Unknown, asked for twice, and already forgotten are one thing to a stranger."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    assert forget(ledger, "nobody", "a1") == Taken(1, (1,))
    assert forget(ledger, "a1", "a2") == Taken(1, (1,))
    pass_tick(growing, answerer, ticker)
    assert forget(ledger, "a1") == Taken(0, (1,))
    assert not ledger.beside(REQUEST)


def test_nobody_comes_back_unnoticed(tmp_path: Path) -> None:
    """Rows of a forgotten record, and of one that is held, are refused by their number."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    with pytest.raises(ConfigurationError, match="row 1 names a record that generation 1 holds"):
        growing.append(ledger, prefix="a")
    forget(ledger, "a0")
    head = ledger.read_state().head
    for _ in range(2):  # before the tick and after
        with pytest.raises(ConfigurationError, match="row 1 names a record that was erased"):
            growing.append(ledger, prefix="a")
        assert ledger.read_state().head == head
        pass_tick(growing, answerer, ticker)
        head = ledger.read_state().head
    assert len(ledger.beside(TOMBSTONE)) == 1


def test_a_restart_reads_no_source_and_keeps_the_hole(tmp_path: Path) -> None:
    """Whether the row is still in the source or not, it stays forgotten."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    place = place_of(ledger, "a3")
    forget(ledger, "a3")
    pass_tick(growing, answerer, ticker)
    ledger.close()
    again = growing.open()
    assert not slots_of(again.ledger).is_filled[place]
    assert not slots_of(again.ledger).values[place].any()


def test_a_request_survives_a_restart_and_is_done_at_its_start(tmp_path: Path) -> None:
    """No server ran when it came: the next start makes the tick that is due."""
    growing = NamedRelease(tmp_path)
    ledger = growing.open().ledger
    place = place_of(ledger, "a3")
    forget(ledger, "a3")
    ledger.close()
    growing.now += MINUTE
    again = growing.open()
    assert not slots_of(again.ledger).is_filled[place]


POOLED = {
    "hypotheses__class": "cells",
    "hypotheses__cells": '["margin >= 0", "", ""]',
    "answers__ensemble": "12",
}


@pytest.mark.parametrize(
    ("labelling", "kind"),
    [
        ("own", {}),
        ("own", {"hypotheses__class": "thresholds"}),
        ("inherit", {}),
        ("pooled", POOLED),
        ("cohort", {}),
    ],
)
def test_a_correction_replaces_a_record_and_its_label(
    tmp_path: Path, labelling: str, kind: dict[str, str]
) -> None:
    """The new version has the label that the labelling gives it; no other slot changes."""
    changes = {"generations__labelling": labelling, **kind}
    growing = NamedRelease(tmp_path, changes)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    before, place = slots_of(ledger), place_of(ledger, "a2")
    rows = named(ledger, "a")
    change = corrections_of(rows)[2]
    turned = type(change)(change.identity, (-rows.values[2]).tobytes(), 1 - int(rows.labels[2]))
    assert take_down(ledger, [turned]) == Taken(1, ())
    pass_tick(growing, answerer, ticker)
    after = slots_of(ledger)
    assert after.values[place].tolist() == (-rows.values[2]).tolist()
    assert after.labels[place] == 1 - rows.labels[2]
    others = np.arange(before.count) != place
    assert (after.values[others] == before.values[others]).all()
    assert after.given_labels is not None
    assert before.given_labels is not None
    assert (after.given_labels[others] == before.given_labels[others]).all()
    assert after.is_filled.all()
    assert place_of(ledger, "a2") == place


def test_a_generation_that_waits_is_changed_with_its_fit(tmp_path: Path) -> None:
    """It is fitted here already: it joins at its tick, without the record."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    growing.append(ledger)
    ticker.fit_waiting()
    place = place_of(ledger, "b4", 2)
    forget(ledger, "b4")
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    (one, two) = generations_of(ledger.read_state().generations).all
    assert (one.standing, two.standing) == ("active", "active")
    assert not slots_of(ledger, 2).is_filled[place]
    assert slots_of(ledger, 2).ensemble == answerer.living.private_fitted[2][1].to_bytes()


def test_records_of_a_cohort_change_before_its_draw_and_after_it(tmp_path: Path) -> None:
    """One is forgotten while the cohort is not whole, one corrected between draw and tick."""
    changes = {"generations__labelling": "cohort", "generations__quorum": "2"}
    growing = NamedRelease(tmp_path, changes)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    hole = place_of(ledger, "a3")
    forget(ledger, "a3")
    pass_tick(growing, answerer, ticker)
    assert not slots_of(ledger).is_filled[hole]
    growing.append(ledger)
    ticker.fit_waiting()
    (drawn,) = ticker.waiting.private_fitted[1].labelled.pieces.values()
    rows, place = named(ledger, "b", seed=8), place_of(ledger, "b4", 2)
    change = corrections_of(rows)[4]
    turned = type(change)(change.identity, (-rows.values[4]).tobytes(), 1 - int(rows.labels[4]))
    assert take_down(ledger, [turned]) == Taken(1, ())
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    assert ledger.private("labelling-1") == drawn
    known = generations_of(ledger.read_state().generations)
    assert [each.standing for each in known.all] == ["active", "active"]
    after = slots_of(ledger, 2)
    again = given_labels(ticker.configuration, known.all[1], after, ledger=ledger, pieces={})
    assert after.given_labels is not None
    assert after.values[place].tolist() == (-rows.values[4]).tolist()
    assert after.given_labels.tolist() == again.tolist()
    verify(ledger)


def test_a_tick_at_once_is_followed_by_the_server(tmp_path: Path) -> None:
    """Another process makes it: the receipt names both heads, and a fit of before is made anew."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    growing.append(ledger)
    ticker.fit_waiting()
    forget(ledger, "a1", "b1")
    other = growing.small.ledger()
    before, after = growing.ticker(other).change_now()
    assert (before.sequence + 1, after) == (after.sequence, ledger.read_state().head)
    other.close()
    assert answerer.follow()
    assert answerer.living.private_fitted[1][1].to_bytes() == slots_of(ledger).ensemble
    assert ticker.awaits_fit(answerer.release.state)
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    assert generations_of(ledger.read_state().generations).all[1].standing == "active"
    assert int((~slots_of(ledger, 2).is_filled).sum()) == 1


class WorkClock:
    """Time that passes by naps and by the work of a tick alone."""

    def __init__(self) -> None:
        """Start somewhere."""
        self.now = 1234.5

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        self.now += seconds


def grains_of_ticks(
    growing: NamedRelease, patch: pytest.MonkeyPatch, *, is_at_once: bool
) -> list[float]:
    """Return how many grains after it began each tick is committed, after work of three lengths.

    A tick at once fits the changed chunks itself; one by the clock reads the slots.
    """
    clock, work = WorkClock(), [0.0]
    patch.setattr(tick, "time", clock)
    patch.setattr(answer_time_padding, "time", clock)
    place = "prepare_changes" if is_at_once else "read_slots"
    real = getattr(tick, place)

    def working(*given: object) -> object:
        clock.sleep(work[0])
        return real(*given)

    patch.setattr(tick, place, working)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ticker = growing.ticker(answerer.release.ledger)
    grains = []
    for seconds in (0.01, 0.09, 0.13):
        growing.now += MINUTE
        answerer.follow()
        work[0], began = seconds, clock.now
        if is_at_once:
            ticker.change_now()
        else:
            answerer.tick(ticker)
        grains.append((clock.now - began) / tick.TICK_GRAIN_SECONDS)
        work[0] = 0.0
    return grains


@pytest.mark.parametrize("is_at_once", [True, False])
def test_a_tick_is_committed_whole_grains_after_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_at_once: bool
) -> None:
    """By the clock or at once: work of 10 and of 90 ms is seen alike, and 130 ms as two grains."""
    grains = grains_of_ticks(NamedRelease(tmp_path), monkeypatch, is_at_once=is_at_once)
    assert grains == pytest.approx([1, 1, 2], abs=0.01)


def test_a_tick_that_was_overtaken_leaves_its_requests(tmp_path: Path) -> None:
    """Another makes a tick between the fit and the commit: nothing is committed, or forgotten."""
    growing = NamedRelease(tmp_path)
    ledger = growing.open().ledger
    forget(ledger, "a1")
    late, other = growing.ticker(ledger), growing.ticker(ledger)
    real = Ticker._prepare

    def overtaken(self: Ticker) -> None:
        real(self)
        if self is late:
            other.change_now()
            forget(ledger, "a2")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ticker, "_prepare", overtaken)
        with pytest.raises(LedgerUnavailableError, match="made a tick meanwhile"):
            late.change_now()
    assert len(ledger.beside(REQUEST)) == 1
    late.change_now()
    assert not ledger.beside(REQUEST)
    verify(ledger)


def life(folder: Path, *, erases: bool) -> list[object]:
    """Return the public entries of a life, in which a record is forgotten or not, masked."""
    growing = NamedRelease(folder)
    answerer = growing.answerer([STABLE, HIT, STABLE], generations=2)
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    answerer.answer_batch([ask(1), ask(2)])
    if erases:
        forget(ledger, "a1", "b2")
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    growing.pass_periods(answerer, 0)
    answerer.answer_batch([ask(3)])
    shown = [json.loads(json.dumps(entry)) for entry in ledger.public_entries(0, 1000)]
    return [_masked(entry) for entry in shown]


def _masked(shown: object) -> object:
    """Return a public document with hashes and digests of one length in place of themselves."""
    if isinstance(shown, dict):
        return {key: _masked(value) for key, value in shown.items()}
    if isinstance(shown, list):
        return [_masked(value) for value in shown]
    is_digest = isinstance(shown, str) and len(shown) == len(MASKED)
    return MASKED if is_digest else shown


def test_two_lives_that_differ_in_an_erasure_have_the_same_public_bytes(tmp_path: Path) -> None:
    """Every entry is equal after masking hashes and digests, ticks with and without it."""
    lives = []
    for erases in (False, True):
        folder = tmp_path / str(erases)
        folder.mkdir()
        lives.append(life(folder, erases=erases))
    assert json.dumps(lives[0]) == json.dumps(lives[1])


def test_the_files_bytes_hold_the_record_before_and_not_after(tmp_path: Path) -> None:
    """Deleted pages of SQLite are overwritten; the log is brought in when the ledger closes."""
    growing = NamedRelease(tmp_path)
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    row = slots_of(ledger).values[place_of(ledger, "a1")]
    marker = np.ascontiguousarray(row, dtype="<f8").tobytes()[:8]
    ledger.close()
    assert any(marker in path.read_bytes() for path in tmp_path.glob("conclave.db*"))
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    forget(ledger, "a1")
    pass_tick(growing, answerer, ticker)
    ledger.close()
    assert not any(marker in path.read_bytes() for path in tmp_path.glob("conclave.db*"))


def test_an_altered_request_is_found(tmp_path: Path) -> None:
    """Whoever reads it checks its keyed digest, and a body that is none is refused."""
    growing = NamedRelease(tmp_path)
    ledger = growing.open().ledger
    forget(ledger, "a1")
    with pytest.raises(LedgerCorruptError, match="request that is none"):
        read_changes(b"\x00")
    assert len(ledger.beside(REQUEST)) == 1
    verify(ledger)
    with sqlite3.connect(tmp_path / "conclave.db") as raw:
        named = "select name from sqlite_master where type = 'trigger' and tbl_name = ?"
        for (trigger,) in raw.execute(named, ("private_state",)).fetchall():
            raw.execute(f"drop trigger {trigger}")
        raw.execute("update private_state set body = x'90' where name like 'request-%'")
    raw.close()
    with pytest.raises(LedgerCorruptError, match="altered piece: request-00000001"):
        ledger.beside(REQUEST)


def test_a_release_that_cannot_tell_records_apart_refuses(tmp_path: Path) -> None:
    """Without data.id, and in a fixed release, whatever its calibration."""
    growing = GrowingRelease(tmp_path)
    ledger = growing.open().ledger
    with pytest.raises(ConfigurationError, match=r"data\.id: names no column"):
        refuse_changes(growing.small.configuration(), ledger, corrects=False)
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    small = SmallRelease(fixed, {"privacy__calibration": "svt"})
    with pytest.raises(ConfigurationError, match="the ledger's release is fixed"):
        refuse_changes(small.configuration(), small.open().ledger, corrects=False)
