"""The second fold from entry one: what it gathers, and that it notices what a start passes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from app.errors import LedgerCorruptError
from app.ledger.entries import full_check as refold
from app.ledger.entries.chain import Head
from app.ledger.entries.full_check import Hit, Refold
from tests.builders.ledger.releases import (
    answer_many,
    create,
    middle_of_life,
    open_release,
    scores_of_every_kind,
    tamper,
)

if TYPE_CHECKING:
    from pathlib import Path

    from app.ledger.ledger import Ledger


def folded(ledger: Ledger) -> Refold:
    """Fold a whole ledger a second time."""
    found = Refold()
    while found.read_page(ledger):
        continue
    return found


def test_it_comes_to_the_state_that_serves(tmp_path: Path) -> None:
    """Folding again from the first entry gives what the ledger itself says, and the hits."""
    ledger = middle_of_life(tmp_path / "ledger.db")
    found = folded(ledger)
    state = ledger.read_state()
    assert found.state == state
    found.compare(state)
    assert sum(hit.units for hit in found.hits) == state.unstable > 0
    answers = [row.answer for row in ledger.answers_after(0)]
    unstable = [answer.query_id for answer in answers if not answer.stable]
    assert found.hits == [Hit(query_id, 1) for query_id in unstable]


def test_it_counts_the_units_of_scores(tmp_path: Path) -> None:
    """An answer with a score is a hit by the units that it used, stable or not."""
    ledger = scores_of_every_kind(tmp_path / "ledger.db")
    answers = [row.answer for row in ledger.answers_after(0)]
    used = [(answer.query_id, answer.units) for answer in answers if answer.units]
    assert folded(ledger).hits == used
    assert {units for _, units in used} == {1, 2}


def test_it_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page holds so many entries; what is committed meanwhile is folded on."""
    monkeypatch.setattr(refold, "PAGE_ENTRIES", 3)
    ledger = create(tmp_path / "ledger.db")
    open_release(ledger)
    found = Refold()
    assert found.read_page(ledger)
    assert found.state.head.sequence == 3
    assert not found.read_page(ledger)
    answer_many(ledger, batches=1, batch_size=2)
    assert not found.read_page(ledger)
    assert found.state == ledger.read_state()


def test_it_notices_an_old_entry_that_was_altered(tmp_path: Path) -> None:
    """An answer of before the checkpoint that a start goes from is checked again here."""
    path = tmp_path / "ledger.db"
    ledger = create(path)
    open_release(ledger)
    answer_many(ledger, batches=300, batch_size=1)
    ledger.close()
    tamper(path, "UPDATE answers SET stable = false WHERE query_id = 4")
    again = create(path)
    assert again.read_state().answered == 300
    with pytest.raises(LedgerCorruptError, match="entry 9 does not have the hash"):
        folded(again)


def test_it_compares_what_serves_at_the_same_entry(tmp_path: Path) -> None:
    """A state with another hash or count is refused; one at another entry is not compared."""
    ledger = middle_of_life(tmp_path / "ledger.db")
    found, state = folded(ledger), ledger.read_state()
    found.compare(replace(state, head=Head(state.head.sequence - 1, "ab" * 32)))
    for wrong in (
        replace(state, head=Head(state.head.sequence, "ab" * 32)),
        replace(state, answered=state.answered + 1),
        replace(state, unstable=state.unstable + 1),
    ):
        with pytest.raises(LedgerCorruptError, match="do not give the state that serves"):
            found.compare(wrong)
