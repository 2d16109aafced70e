"""One labelling of a cohort, with persons, a published classifier, restarts and two servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from app.answering.generations.generations_answerer import LivingAnswerer
from app.ledger.entries.generations import generations_of
from app.ledger.verification import verify
from app.noise.scripted import ScriptedNoise
from app.release.generations.labelling import given_labels
from tests.builders.ledger.outside_audit import faults_in
from tests.builders.release.growing_persons import FIRST, SECOND, PersonsRelease
from tests.builders.release.growing_release import GrowingRelease
from tests.builders.release.named_rows import place_of, slots_of
from tests.unit.answering.erasures.test_erasures import forget, pass_tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from tests.builders.ledger.postgresql_server import PostgresqlServer

COHORT: Final = {"generations__labelling": "cohort", "generations__quorum": "2"}
PUBLISHES: Final = {
    "privacy__shares__answers": "0.6",
    "privacy__shares__classifier": "0.3",
    "classifier__learner": "linear",
}
FURTHER: Final = {f"c{number}": 1 + number % 4 for number in range(60)}


def check_labels(growing: GrowingRelease, ledger: Ledger) -> None:
    """Verify the ledger: one labelling is kept, and every row has the label that it gives."""
    verify(ledger)
    assert faults_in(ledger.public_entries(0, 1000)) == []
    state = ledger.read_state()
    known = generations_of(state.generations)
    assert {each.labelled_by for each in known.all} == {1}
    assert [name for name in state.private_digests if "labelling" in name] == ["labelling-1"]
    for each in known.kept:
        slots = slots_of(ledger, each.number)
        again = given_labels(growing.small.configuration(), each, slots, ledger=ledger, pieces={})
        assert slots.given_labels is not None
        held = slots.held
        assert slots.given_labels[held].tolist() == again[held].tolist()


@pytest.mark.parametrize("changes", [{}, PUBLISHES], ids=["labels", "labels and a classifier"])
def test_a_cohort_of_persons_draws_once(tmp_path: Path, changes: dict[str, str]) -> None:
    """Who is forgotten, and rows that come back, before and after the draw, change no other's."""
    growing = PersonsRelease(tmp_path, {**COHORT, **changes})
    answerer = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger, ticker = answerer.release.ledger, growing.ticker(answerer.release.ledger)
    pass_tick(growing, answerer, ticker)
    forget(ledger, "a1")
    growing.append_persons(ledger, {**SECOND, "a2": 3})
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    check_labels(growing, ledger)
    drawn = ledger.private("labelling-1")
    growing.append_persons(ledger, {**FURTHER, "a3": 1, "b4": 2})
    forget(ledger, "b1", "c2")
    for _ in range(2):
        pass_tick(growing, answerer, ticker)
    check_labels(growing, ledger)
    assert ledger.private("labelling-1") == drawn
    known = generations_of(ledger.read_state().generations)
    assert [each.standing for each in known.all] == ["active"] * 3
    holes = [int((~slots_of(ledger, each.number).is_filled).sum()) for each in known.all]
    assert holes == [1, 1, 1]
    came = [(1, "a2", FIRST["a2"] + 3), (1, "a3", FIRST["a3"] + 1), (2, "b4", SECOND["b4"] + 2)]
    for number, name, count in came:
        slots = slots_of(ledger, number)
        assert len(slots.contents(place_of(ledger, name, number)).labels) == count
    assert ["relabel" in each.shares for each in known.all] == [True, True, False]


def test_parts_of_a_cohort_are_published_at_its_one_tick(tmp_path: Path) -> None:
    """Each follows its generation's labels; none is there while the cohort is not whole."""
    growing = GrowingRelease(tmp_path, {**COHORT, **PUBLISHES})
    answerer = growing.answerer([])
    ledger = answerer.release.ledger
    growing.pass_periods(answerer, 2)
    assert answerer.release.classifier is None
    growing.append(ledger, seed=9)
    growing.pass_periods(answerer, 2)
    kinds = [str(entry["kind"]) for entry in ledger.public_entries(0, 1000)]
    assert kinds[-6:] == [
        "LabellingDrawn",
        "ClassifierPublished",
        "LabellingDrawn",
        "ClassifierPublished",
        "SlotsChanged",
        "GenerationsJoined",
    ]
    check_labels(growing, ledger)
    newest = ledger.read_state().classifier
    ledger.close()
    again = growing.answerer([])
    assert again.release.state.classifier == newest
    assert again.release.classifier is not None
    check_labels(growing, again.release.ledger)


@pytest.fixture
def address(postgresql: PostgresqlServer) -> Iterator[str]:
    """Return an empty database's address."""
    address = postgresql.create_database()
    yield address
    postgresql.drop_database(address)


def test_of_two_servers_one_draws_for_the_cohort(tmp_path: Path, address: str) -> None:
    """The other follows, and after a restart of both the labelling and the learners are those."""
    growing = PersonsRelease(tmp_path, {**COHORT, **PUBLISHES}, ledger_url=address)
    one = LivingAnswerer(growing.open(), ScriptedNoise([]))
    other = LivingAnswerer(growing.open(), ScriptedNoise([]))
    ledger = one.release.ledger
    growing.append(other.release.ledger)
    forget(other.release.ledger, "a5")
    ticker = growing.ticker(ledger)
    for _ in range(2):
        pass_tick(growing, one, ticker)
    assert other.follow()
    assert other.release.state == one.release.state
    values = np.array([[40.0, 0.0], [-40.0, 1.0]])
    votes = one.living.ensemble.vote_counts(values).tolist()
    assert other.living.ensemble.vote_counts(values).tolist() == votes
    check_labels(growing, ledger)
    ledger.close()
    other.release.ledger.close()
    again = growing.open()
    assert again.ensemble.vote_counts(values).tolist() == votes
    check_labels(growing, again.ledger)
    again.ledger.close()
