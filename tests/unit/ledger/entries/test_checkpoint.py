"""Checkpoints: what they hold, what a start reads because of them, and what refuses one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerCorruptError, VerificationError
from app.ledger.database.statements import read_checkpoints
from app.ledger.entries import checkpoint
from app.ledger.entries.checkpoint import STATE_FIELDS, checkpoint_body, newest_checkpoint
from app.ledger.entries.entry_kinds import (
    ReleaseClosed,
    ReleaseHalted,
    ReleaseReopened,
    ThresholdRefreshed,
)
from app.ledger.entries.fold import DOCUMENTS, EMPTY, LedgerState
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import (
    answer,
    create,
    middle_of_life,
    open_release,
    publish,
    tamper,
    url_of,
)
from tests.builders.ledger.whole_bodies import store_whole

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 4


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint every four entries."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_ENTRIES", EVERY)


def places(ledger: Ledger) -> list[int]:
    """Return the entries at which a ledger has a checkpoint."""
    with ledger.snapshot() as connection:
        return [row.sequence for row in read_checkpoints(connection, 1, 0)]


def answer_one(ledger: Ledger, count: int = 1) -> None:
    """Answer in a transaction each."""
    for _ in range(count):
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, transaction.state.answered + 1)])


def refusal(path: Path) -> str:
    """Return why a ledger is not opened."""
    with pytest.raises(LedgerCorruptError) as refused:
        create(path).read_state()
    return str(refused.value)


def account(path: Path) -> str:
    """Return what verifying says."""
    with pytest.raises(VerificationError) as told:
        verify(open_ledger(url_of(path), create=False))
    return str(told.value)


def test_a_checkpoint_has_every_field_of_the_state() -> None:
    """A field that is added to the state is in the checkpoint, or in an entry that it names."""
    assert {*STATE_FIELDS, *DOCUMENTS} == set(LedgerState.__struct_fields__)
    assert STATE_FIELDS.isdisjoint(DOCUMENTS)


def test_a_checkpoint_at_every_entry_gives_the_folded_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a whole life, a publication and a closing included, both states are the same."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_ENTRIES", 1)
    ledger = create(tmp_path / "life.db")
    pieces = {"threshold-noise-0": b"0"}
    open_release(ledger, cutoff=9, further=pieces)
    states = [ledger.read_state()]
    for stable in (True, False, True, False):
        with ledger.transaction() as transaction:
            number = transaction.state.answered + 1
            label = 0 if stable else None
            transaction.record_answers([answer(ledger, number, label=label, stable=stable)])
            if not stable:
                name = f"threshold-noise-{transaction.state.unstable}"
                bound = {name: transaction.put_private(name, b"noise")}
                transaction.append(ThresholdRefreshed(private_digests=bound))
        states.append(restored(ledger))
        assert states[-1] == folded(ledger)
    publish(ledger)
    assert restored(ledger) == folded(ledger)
    for ending in (
        ReleaseHalted(reason="an internal failure after votes were cast"),
        ReleaseClosed(reason="backup"),
        ReleaseReopened(reason="newest"),
    ):
        with ledger.transaction() as transaction:
            transaction.append(ending)
        assert restored(ledger) == folded(ledger)
    assert restored(ledger).classifier is not None
    verify(ledger)


def restored(ledger: Ledger) -> LedgerState:
    """Return the state of the newest checkpoint."""
    with ledger.snapshot() as connection:
        return newest_checkpoint(connection, 1, ledger.digests)


def folded(ledger: Ledger) -> LedgerState:
    """Return the state folded by a ledger that has read every entry."""
    return ledger.read_state()


def test_a_state_does_not_grow_with_answers_or_refreshed_thresholds(tmp_path: Path) -> None:
    """After fifty refreshed thresholds a checkpoint is as long as after two, but for its digits."""
    ledger = create(tmp_path / "thresholds.db")
    open_release(ledger, queries=None, cutoff=99, further={"threshold-noise-0": b"0"})
    lengths = []
    for hits in range(1, 51):
        with ledger.transaction() as transaction:
            number = transaction.state.answered + 1
            transaction.record_answers([answer(ledger, number, label=None, stable=False)])
            name = f"threshold-noise-{hits}"
            bound = {name: transaction.put_private(name, b"noise")}
            transaction.append(ThresholdRefreshed(private_digests=bound))
        lengths.append(len(checkpoint_body(ledger.read_state(), 1)))
    assert lengths[-1] - lengths[1] <= 6
    verify(ledger)


def test_a_transaction_writes_a_checkpoint_once_enough_entries_follow(tmp_path: Path) -> None:
    """Every fourth entry here, counted over transactions and restarts, whoever wrote the last."""
    path = tmp_path / "every.db"
    ledger = create(path)
    open_release(ledger)  # entries 1 to 4, and 5
    assert places(ledger) == [4]
    answer_one(ledger, 2)
    ledger.close()
    again = create(path)
    answer_one(again)
    assert places(again) == [4, 8]
    other = create(path)
    other.read_state()
    answer_one(again, 4)
    answer_one(other)
    assert places(other) == [4, 8, 12]
    verify(other)


def test_a_start_folds_only_what_follows_the_newest_checkpoint(tmp_path: Path) -> None:
    """Whatever lies before it is not read: that entry two is altered, only verifying finds."""
    path = tmp_path / "start.db"
    ledger = create(path)
    open_release(ledger)
    answer_one(ledger, 9)
    expected = ledger.read_state()
    ledger.close()
    tamper(path, "UPDATE entries SET body = 'x' WHERE sequence = 2")
    assert create(path).read_state() == expected
    assert account(path) == (
        "entry 2 does not have the hash that its contents and the entry before it give"
    )


def test_without_a_checkpoint_everything_is_folded(tmp_path: Path) -> None:
    """A ledger of an earlier version opens as before, and is given one when it is served."""
    path = tmp_path / "none.db"
    ledger = middle_of_life(path)
    expected = ledger.read_state()
    ledger.close()
    tamper(path, "DELETE FROM checkpoints")
    again = create(path)
    assert again.read_state() == expected
    again.keep_checkpoint()
    assert places(again) == [expected.head.sequence]
    again.keep_checkpoint()
    assert create(path).read_state() == expected
    verify(again)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            """UPDATE checkpoints SET body = replace(body, '"answered":3', '"answered":2')""",
            "the checkpoint at entry 8 is altered, or of another database",
        ),
        (
            "UPDATE checkpoints SET mark = substr(mark, 2) || '0'",
            "the checkpoint at entry 8 is altered, or of another database",
        ),
        (
            "UPDATE checkpoints SET sequence = 7 WHERE sequence = 8",
            "the checkpoint at entry 7 is of another release or entry",
        ),
        (
            "UPDATE entries SET hash = replace(hash, '0', '1') WHERE sequence = 8",
            "the checkpoint at entry 8 has another hash than that entry has",
        ),
        (
            "DELETE FROM entries WHERE sequence >= 8",
            "the checkpoint at entry 8 has another hash than that entry has",
        ),
        (
            "UPDATE entries SET body = replace(body, 'trees', 'boxes') WHERE sequence = 1",
            "entry 1 does not have the hash that its contents",
        ),
        pytest.param(
            "UPDATE checkpoints SET body = x'00'",
            "a table of the ledger holds a value of a wrong type",
            marks=pytest.mark.sqlite_only(reason="PostgreSQL keeps to the types of its columns"),
        ),
        (
            "DELETE FROM answers WHERE query_id = 4",
            "answer 4 of entry 9 is missing from the answers table",
        ),
        (
            "DELETE FROM answers WHERE query_id >= 3",
            "answer 4 of entry 9 is missing from the answers table",
        ),
        (
            "UPDATE answers SET query_id = 9 WHERE query_id = 4",
            "answer 4 of entry 9 is missing from the answers table",
        ),
        (
            "UPDATE answers SET query_id = 9 WHERE query_id = 1",
            "answer 5 is in the answers table, and the chain ends with answer 4",
        ),
    ],
)
def test_what_does_not_fit_a_checkpoint_refuses_to_start(
    tmp_path: Path, statement: str, problem: str
) -> None:
    """An altered checkpoint, or entries or answers that it does not fit, are told by name."""
    path = tmp_path / "refused.db"
    ledger = create(path)
    open_release(ledger)
    answer_one(ledger, 4)
    ledger.close()
    tamper(path, statement)
    assert refusal(path).startswith(problem)


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("DELETE FROM answers WHERE query_id = 4", 4),
        ("DELETE FROM answers WHERE query_id >= 3", 3),
        ("UPDATE answers SET query_id = 9 WHERE query_id = 4", 4),
    ],
)
def test_an_answer_that_a_whole_entry_has_and_no_row_refuses_to_start(
    tmp_path: Path, statement: str, number: int
) -> None:
    """Entries that are stored whole can be read without their answers, which are counted."""
    path = tmp_path / "refused.db"
    ledger = create(path)
    open_release(ledger)
    answer_one(ledger, 4)
    ledger.close()
    store_whole(path)
    tamper(path, statement)
    assert refusal(path) == f"answer {number} is missing from the answers table"


def test_a_document_that_is_not_the_one_named_refuses_to_start(tmp_path: Path) -> None:
    """What a checkpoint leaves in its entry is read from there, and its hash computed anew."""
    path = tmp_path / "document.db"
    ledger = create(path)
    open_release(ledger)
    publish(ledger)
    at = ledger.read_state().head.sequence
    answer_one(ledger, 4)
    ledger.close()
    tamper(path, f"UPDATE entries SET body = replace(body, '0.47', '0.48') WHERE sequence = {at}")  # noqa: S608 -- a number of ours
    assert refusal(path) == f"entry {at} is not the one that the checkpoint at entry 8 names"


def test_a_mark_of_another_database_is_refused(tmp_path: Path) -> None:
    """Whoever does not know the secret cannot make a checkpoint that is believed."""
    path = tmp_path / "secret.db"
    middle_of_life(path).close()
    tamper(path, "UPDATE database_secret SET secret = zeroblob(32)")
    assert "is altered, or of another database" in refusal(path)


@pytest.mark.parametrize("claimed", ["answered", "unstable"])
def test_verify_finds_a_checkpoint_that_its_entries_do_not_give(
    tmp_path: Path, claimed: str
) -> None:
    """Even with a right mark, which whoever has the secret can make."""
    path = tmp_path / "forged.db"
    ledger = middle_of_life(path)
    with ledger.snapshot() as connection:
        state = newest_checkpoint(connection, 1, ledger.digests)
    fields = {claimed: getattr(state, claimed) - 1}
    forged = LedgerState(
        **{name: getattr(state, name) for name in LedgerState.__struct_fields__} | fields
    )
    body = checkpoint_body(forged, 1)
    mark = ledger.digests.of_checkpoint(body)
    ledger.close()
    at = state.head.sequence
    tamper(
        path,
        f"UPDATE checkpoints SET body = '{body}', mark = '{mark}' WHERE sequence = {at}",  # noqa: S608 -- ours
    )
    assert account(path) == f"the checkpoint at entry {at} is not what the entries up to there give"


def test_verify_finds_an_altered_mark_and_a_checkpoint_beyond_the_chain(tmp_path: Path) -> None:
    """Both are named."""
    marked, beyond = tmp_path / "mark.db", tmp_path / "beyond.db"
    for path in (marked, beyond):
        middle_of_life(path).close()
    tamper(marked, "UPDATE checkpoints SET mark = 'x' WHERE sequence = 4")
    tamper(beyond, "UPDATE checkpoints SET sequence = sequence + 99")
    assert account(marked) == "the checkpoint at entry 4 is altered, or of another database"
    assert account(beyond) == "a checkpoint is at an entry that the chain lacks"


def test_an_empty_ledger_has_an_empty_state(tmp_path: Path) -> None:
    """Nothing is restored, and nothing is due."""
    ledger = create(tmp_path / "empty.db")
    ledger.keep_checkpoint()
    assert ledger.read_state() == EMPTY
    assert places(ledger) == []
