"""Persons in a release that grows: one slot in a life, whatever rows come later."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import numpy as np
import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.data.persons import IDENTITY_BYTES, WEIGHT_UNITS
from app.errors import (
    ConfigurationError,
    LedgerCorruptError,
    ReleaseMismatchError,
    VerificationError,
)
from app.ledger.entries.generations import generations_of
from app.ledger.erasure_state import PERSONS, REQUEST
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.release.generations.fitting import fit_slots
from app.release.generations.slots import Slots
from app.release.generations.waiting_requests import Taken, corrections_of, identity_of, take_down
from app.release.progress import no_progress
from app.release.views.budget import budget_view
from tests.builders.release.growing_persons import (
    FIRST,
    PERSON_COUNT,
    SECOND,
    PersonsRelease,
    rows_about,
)
from tests.builders.release.named_rows import place_of, slots_of
from tests.builders.release.small_release import HIT, STABLE, ask
from tests.unit.answering.erasures.test_erasures import _masked, forget, pass_tick

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.release.generations.tick import Ticker

CELLS = {
    "hypotheses__class": "cells",
    "hypotheses__cells": '["margin >= 0", "", ""]',
    "answers__ensemble": "auto",
}
LABELLINGS = {
    "own": {},
    "own, in cells": CELLS,
    "own, of thresholds": {"hypotheses__class": "thresholds"},
    "inherit": {"generations__labelling": "inherit"},
    "pooled": {"generations__labelling": "pooled", **CELLS},
    "their own labels": {"privacy__shares__relabel": "0"},
}


FEW = {f"c{number}": 1 + number % 2 for number in range(6)}


def opened(growing: PersonsRelease) -> tuple[LivingAnswerer, Ledger, Ticker]:
    """Open the release."""
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger = answerer.release.ledger
    return answerer, ledger, growing.ticker(ledger)


def row_counts(slots: Slots) -> np.ndarray:
    """Return how many rows each slot holds."""
    assert slots.starts is not None
    return np.diff(slots.starts)


def made_anew(growing: PersonsRelease, slots: Slots) -> Slots:
    """Return slots with learners that are all fitted on what they hold."""
    assert slots.given_labels is not None
    known = generations_of(growing.small.ledger().read_state().generations).all
    size = next(each.chunks for each in known if each.slots == slots.count)
    ensemble = fit_slots(
        growing.small.configuration(),
        slots,
        slots.given_labels,
        size=size,
        progress=no_progress,
    )
    return slots.fitted(slots.given_labels, ensemble.to_bytes())


def test_a_slot_holds_a_person_with_all_rows(tmp_path: Path) -> None:
    """In the order of the source; the number of persons is what is public of them."""
    answerer, ledger, _ = opened(PersonsRelease(tmp_path))
    slots, rows = slots_of(ledger), rows_about(ledger, FIRST)
    assert (slots.count, len(slots.labels)) == (PERSON_COUNT, sum(FIRST.values()))
    assert rows.persons is not None
    for name, count in FIRST.items():
        place = place_of(ledger, name)
        assert row_counts(slots)[place] == count
        person = rows.persons.identities.tolist().index(list(identity_of(ledger, name)))
        theirs = rows.values[rows.persons.numbers == person]
        assert slots.contents(place).values.tolist() == theirs.tolist()
    shown = budget_view(answerer.release)
    assert (shown.unit, shown.generations[0].size) == ("person", PERSON_COUNT)
    weights = slots.weights
    assert weights is not None
    assert weights.sum() <= PERSON_COUNT
    assert np.all(weights * WEIGHT_UNITS == WEIGHT_UNITS // np.repeat(*[row_counts(slots)] * 2))
    assert Slots.from_bytes(slots.to_bytes()).to_bytes() == slots.to_bytes()


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_a_forgotten_person_is_as_if_the_slot_had_been_empty(
    tmp_path: Path, labelling: str
) -> None:
    """Byte for byte, given the same key and labelling; one chunk of learners was fitted."""
    growing = PersonsRelease(tmp_path, LABELLINGS[labelling])
    answerer, ledger, ticker = opened(growing)
    before, places = slots_of(ledger), [place_of(ledger, name) for name in ("a1", "a4")]
    assert forget(ledger, "a1", "a4") == Taken(2, ())
    pass_tick(growing, answerer, ticker)
    after = slots_of(ledger)
    assert after.to_bytes() == made_anew(growing, before.changed(places, {})).to_bytes()
    assert np.flatnonzero(row_counts(after) == 0).tolist() == sorted(places)
    assert identity_of(ledger, "a1") not in after.to_bytes()
    assert answerer.living.private_fitted[1][1].to_bytes() == after.ensemble
    verify(ledger)


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_later_rows_go_into_the_slot_that_a_person_has(tmp_path: Path, labelling: str) -> None:
    """The batch's generation has the new persons alone; later rows get labels of what was drawn."""
    growing = PersonsRelease(tmp_path, LABELLINGS[labelling])
    answerer, ledger, ticker = opened(growing)
    before, place = slots_of(ledger), place_of(ledger, "a3")
    appended = growing.append_persons(ledger, {"a3": 2, **SECOND, "a5": 1})
    assert appended == (2, 2, 0)
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    one, two = generations_of(ledger.read_state().generations).all
    assert (one.standing, two.standing, two.slots) == ("active", "active", len(SECOND))
    assert not {identity_of(ledger, name) for name in FIRST} & slots_of(ledger, 2).places().keys()
    after = slots_of(ledger)
    assert place_of(ledger, "a3") == place
    assert row_counts(after)[place] == FIRST["a3"] + 2
    assert (row_counts(after) - row_counts(before)).sum() == 3
    rows = rows_about(ledger, {"a3": 2})
    assert after.contents(place).values[-2:].tolist() == rows.values.tolist()
    assert after.to_bytes() == made_anew(growing, after).to_bytes()
    verify(ledger)


def test_labels_of_later_rows_are_those_of_the_labelling(tmp_path: Path) -> None:
    """By the hypothesis that was drawn, whatever the rows say themselves."""
    growing = PersonsRelease(tmp_path)
    answerer, ledger, ticker = opened(growing)
    rows = rows_about(ledger, {"a3": 4, "a9": 2})
    turned = type(rows)(rows.values, 1 - rows.labels, rows.persons)
    take_down(ledger, corrections_of(turned, are_further=True))
    pass_tick(growing, answerer, ticker)
    slots = slots_of(ledger)
    assert slots.given_labels is not None
    for name in ("a3", "a9"):
        theirs = slots.positions([place_of(ledger, name)])
        assert len(set(slots.given_labels[theirs].tolist())) == 1
        assert len(set(slots.labels[theirs].tolist())) == 2


def test_a_batch_without_a_new_person_appends_nothing(tmp_path: Path) -> None:
    """No entry tells of it; the rows wait for the tick."""
    growing = PersonsRelease(tmp_path)
    answerer, ledger, ticker = opened(growing)
    head = ledger.read_state().head
    assert growing.append_persons(ledger, {"a1": 1, "a2": 3}) == (None, 2, 0)
    assert ledger.read_state().head == head
    pass_tick(growing, answerer, ticker)
    assert row_counts(slots_of(ledger))[place_of(ledger, "a2")] == FIRST["a2"] + 3


def test_rows_of_a_person_whose_generation_retired_are_not_used(tmp_path: Path) -> None:
    """The person has had a budget, and gets no second one."""
    growing = PersonsRelease(tmp_path)
    answerer = growing.answerer([HIT, HIT, STABLE], generations=2)
    answerer.answer_batch([ask(1), ask(2)])
    ledger = answerer.release.ledger
    assert not generations_of(ledger.read_state().generations).active
    kept = ledger.beside(PERSONS)
    assert {name: len(body) for name, body in kept.items()} == {
        f"persons-{number:08d}": PERSON_COUNT * IDENTITY_BYTES for number in (1, 2)
    }
    assert growing.append_persons(ledger, {"a1": 1, **FEW}) == (3, 0, 1)
    assert generations_of(ledger.read_state().generations).all[2].slots == len(FEW)
    assert not ledger.beside(REQUEST)


def test_fewer_new_persons_than_learners_are_refused(tmp_path: Path) -> None:
    """In one line, whoever else is in the batch; nothing is appended and nothing waits."""
    growing = PersonsRelease(tmp_path)
    _, ledger, _ = opened(growing)
    with pytest.raises(ConfigurationError, match=r"has 2 new persons, and .* makes 5 learners"):
        growing.append_persons(ledger, {"a1": 1, "a2": 1, "a3": 1, "c1": 1, "c2": 7})
    assert not ledger.beside(REQUEST)


def test_the_same_batch_is_refused_though_its_persons_are_known(tmp_path: Path) -> None:
    """By the keyed fingerprint of all its rows, known persons' included."""
    growing = PersonsRelease(tmp_path)
    _, ledger, _ = opened(growing)
    batch = {"a1": 1, **SECOND}
    growing.append_persons(ledger, batch)
    with pytest.raises(ReleaseMismatchError, match="the very rows of generation 2"):
        growing.append_persons(ledger, batch)


def test_a_forgotten_person_does_not_come_back_unnoticed(tmp_path: Path) -> None:
    """Before the tick, after it, and after the generation has retired: refused by the row."""
    growing = PersonsRelease(tmp_path)
    answerer = growing.answerer([HIT, HIT])
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    forget(ledger, "a1")
    for standing in ("active", "active", "retired"):
        known = generations_of(ledger.read_state().generations)
        assert known.all[0].standing == standing
        head = ledger.read_state().head
        with pytest.raises(ConfigurationError, match="row 3 names a person who was forgotten"):
            growing.append_persons(ledger, {"c1": 1, "c2": 1, "a1": 1})
        assert ledger.read_state().head == head
        pass_tick(growing, answerer, ticker)
        if not ledger.beside(REQUEST) and standing == "active" and known.tick > 1:
            growing.pass_periods(answerer, 0)
            answerer.answer_batch([ask(1), ask(2)])


def test_a_correction_replaces_all_rows_of_a_person(tmp_path: Path) -> None:
    """A history of the slot; whoever is not known is named by the place."""
    growing = PersonsRelease(tmp_path)
    answerer, ledger, ticker = opened(growing)
    changes = corrections_of(rows_about(ledger, {"a4": 2, "z9": 1}, shift=0.25))
    assert take_down(ledger, changes).count == 1
    take_down(ledger, corrections_of(rows_about(ledger, {"a4": 1}), are_further=True))
    pass_tick(growing, answerer, ticker)
    slots, place = slots_of(ledger), place_of(ledger, "a4")
    first, second = rows_about(ledger, {"a4": 2}, shift=0.25), rows_about(ledger, {"a4": 1})
    expected = np.concatenate([first.values, second.values])
    assert slots.contents(place).values.tolist() == expected.tolist()
    assert slots.to_bytes() == made_anew(growing, slots).to_bytes()


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_everybody_may_be_forgotten_before_the_fit(tmp_path: Path, labelling: str) -> None:
    """Labels are drawn of no rows, and every chunk votes: nothing fails for want of rows."""
    growing = PersonsRelease(tmp_path, LABELLINGS[labelling])
    answerer, ledger, ticker = opened(growing)
    growing.append_persons(ledger, FEW)
    forget(ledger, *FEW)
    growing.now += 60
    growing.ticker(growing.small.ledger()).change_now()
    answerer.follow()
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    two = generations_of(ledger.read_state().generations).all[1]
    assert (two.standing, two.slots) == ("active", len(FEW))
    assert not slots_of(ledger, 2).is_filled.any()
    assert answerer.living.ensemble.vote_counts(np.zeros((1, 2))).sum() > len(FEW)


@pytest.mark.parametrize("labelling", LABELLINGS)
def test_persons_of_a_generation_that_waits_are_changed_with_its_fit(
    tmp_path: Path, labelling: str
) -> None:
    """It is fitted already: rows that come, and one who is forgotten, are in what joins."""
    growing = PersonsRelease(tmp_path, LABELLINGS[labelling])
    answerer, ledger, ticker = opened(growing)
    growing.append(ledger)
    ticker.fit_waiting()
    place = place_of(ledger, "b4", 2)
    assert growing.append_persons(ledger, {"b5": 4, "a1": 2}) == (None, 2, 0)
    forget(ledger, "b4")
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    assert generations_of(ledger.read_state().generations).all[1].standing == "active"
    after = slots_of(ledger, 2)
    assert row_counts(after)[place] == 0
    assert row_counts(after)[place_of(ledger, "b5", 2)] == SECOND["b5"] + 4
    assert after.to_bytes() == made_anew(growing, after).to_bytes()
    assert after.ensemble == answerer.living.private_fitted[2][1].to_bytes()
    verify(ledger)


def test_a_restart_reads_no_source_and_knows_everybody(tmp_path: Path) -> None:
    """Slots, holes and owners are the ledger's."""
    growing = PersonsRelease(tmp_path)
    answerer, ledger, ticker = opened(growing)
    forget(ledger, "a3")
    growing.append_persons(ledger, {"a4": 2, **FEW})
    pass_tick(growing, answerer, ticker)
    ledger.close()
    again = growing.open().ledger
    with pytest.raises(ConfigurationError, match="row 1 names a person who was forgotten"):
        growing.append_persons(again, {"a3": 1})
    assert growing.append_persons(again, {"a4": 1}) == (None, 1, 0)


def test_lost_owners_are_found(tmp_path: Path) -> None:
    """A person would have a second budget, so nothing is appended, and a check of all says so."""
    growing = PersonsRelease(tmp_path)
    _, ledger, _ = opened(growing)
    with sqlite3.connect(tmp_path / "conclave.db") as raw:
        named = "select name from sqlite_master where type = 'trigger' and tbl_name = ?"
        triggers = raw.execute(named, ("private_state",)).fetchall()
        texts = [_text_of(raw, trigger) for (trigger,) in triggers]
        for (trigger,) in triggers:
            raw.execute(f"drop trigger {trigger}")
        raw.execute("delete from private_state where name like 'persons-%'")
        for text in texts:
            raw.execute(text)
    raw.close()
    lost = "lacks the persons of generation 1"
    with pytest.raises(LedgerCorruptError, match=lost):
        growing.append_persons(ledger, SECOND)
    with pytest.raises(VerificationError, match=lost):
        verify(ledger)


def _text_of(raw: sqlite3.Connection, trigger: str) -> str:
    """Return the text that makes a trigger."""
    (found,) = raw.execute("select sql from sqlite_master where name = ?", (trigger,)).fetchone()
    return str(found)


@pytest.mark.parametrize("damage", [b"\x00", b""])
def test_slots_that_are_none_are_found(tmp_path: Path, damage: bytes) -> None:
    """Starts that do not fit the rows are no slots."""
    _, ledger, _ = opened(PersonsRelease(tmp_path))
    slots = slots_of(ledger)
    assert slots.starts is not None
    broken = slots.starts.copy()
    broken[-1] += len(damage) or -1
    fields = {name: getattr(slots, name) for name in Slots.__dataclass_fields__}
    with pytest.raises(LedgerCorruptError, match="no slots"):
        Slots.from_bytes(Slots(**{**fields, "starts": broken}).to_bytes())


def test_classes_that_label_no_further_rows_are_refused(tmp_path: Path) -> None:
    """Later rows of a person could get no label; with labels of their own they need none."""
    changes = {"hypotheses__class": "intervals", "hypotheses__tests": '{"group": []}'}
    with pytest.raises(ConfigurationError, match=r"hypotheses\.class: must be \"trees\""):
        PersonsRelease(tmp_path, changes).open()
    allowed = PersonsRelease(tmp_path, {**changes, "privacy__shares__relabel": "0"})
    assert allowed.open().ensemble_size == 5


def life(folder: Path, *, comes_back: bool = False, copies: int = 1, erased: str = "") -> str:
    """Return the public entries and the budget of a life, masked; k is found by n."""
    folder.mkdir()
    first = {**FIRST, "a7": FIRST["a7"] * copies}
    growing = PersonsRelease(folder, {"answers__ensemble": "auto"}, first=first)
    answerer = growing.answerer([STABLE, HIT, STABLE])
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    answerer.answer_batch([ask(1), ask(2)])
    growing.append_persons(ledger, {**SECOND, **({"a7": 3} if comes_back else {})})
    if erased:
        forget(ledger, erased)
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    growing.pass_periods(answerer, 0)
    answerer.answer_batch([ask(3)])
    entries = json.loads(json.dumps(ledger.public_entries(0, 1000)))
    shown = budget_view(answerer.release).model_dump(mode="json")
    return json.dumps([_masked(entries), _masked(shown)])


def test_lives_that_differ_in_one_person_have_the_same_public_bytes(tmp_path: Path) -> None:
    """Who came back, with how many rows, and who was forgotten, shows in no entry."""
    plain = life(tmp_path / "plain")
    assert life(tmp_path / "back", comes_back=True) == plain
    assert life(tmp_path / "copies", copies=900) == plain
    assert life(tmp_path / "erased", erased="a7") == plain
