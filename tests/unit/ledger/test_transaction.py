"""A transaction: all of it or nothing, and nothing that does not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError, LedgerCorruptError, LedgerUnavailableError
from app.ledger.entries.entry_kinds import EnsembleFitted
from app.ledger.ledger import RELEASE_SECRET, Ledger, Transaction
from app.ledger.verification import verify
from tests.builders.ledger.releases import (
    SECRET,
    answer,
    create,
    middle_of_life,
    open_release,
    opened,
    shares,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from app.errors import ConclaveError
    from app.ledger.ledger import AnswerRow


class CallerError(Exception):
    """Raised by what a caller does inside a transaction."""


def test_error_of_the_caller_undoes_everything(tmp_path: Path) -> None:
    """Entries, answers, keys and private state of a failed transaction are gone."""
    ledger = middle_of_life(tmp_path / "undo.db")
    before, keys = ledger.read_state(), list(ledger.keys())
    with pytest.raises(CallerError):
        write_and_fail(ledger)
    assert ledger.read_state() == before
    assert len(list(ledger.answers_after(0))) == 9
    assert list(ledger.keys()) == keys
    verify(ledger)


def write_and_fail(ledger: Ledger) -> None:
    """Write to every table, and raise."""
    with ledger.transaction() as transaction:
        transaction.put_private("further", b"1")
        transaction.record_answers([answer(ledger, 10)])
        transaction.record_key(bytes(32), answer(ledger, 10).vector_digest)
        raise CallerError


def test_state_of_a_transaction_is_what_its_commit_will_say(tmp_path: Path) -> None:
    """Inside and after a transaction its state is the ledger's own fold."""
    ledger = middle_of_life(tmp_path / "state.db")
    with ledger.transaction() as transaction:
        head = transaction.record_answers([answer(ledger, 10), answer(ledger, 11)])
        assert transaction.state.head == head == transaction.head()
        assert ledger.read_state().answered == 9
    assert ledger.read_state() == transaction.state
    assert transaction.state.answered == 11


def test_transaction_without_writes_changes_nothing(tmp_path: Path) -> None:
    """An empty transaction commits no entry."""
    ledger = middle_of_life(tmp_path / "none.db")
    with ledger.transaction() as transaction:
        assert transaction.state == ledger.read_state()
    assert ledger.read_state().head.sequence == 9


def test_event_that_does_not_follow_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """The fold refuses an append, and the ledger goes on."""
    ledger = middle_of_life(tmp_path / "fold.db")
    with pytest.raises(InvariantError, match="opens a release a second time"):
        append_opened(ledger)
    with ledger.transaction() as transaction:
        transaction.record_answers([answer(ledger, 10)])
    verify(ledger)


def append_opened(ledger: Ledger) -> None:
    """Try to open a second release."""
    with ledger.transaction() as transaction:
        transaction.append(opened())


@pytest.mark.parametrize("query_ids", [[], [11], [10, 12], [10, 10], [9], [11, 10]])
def test_answers_follow_without_gaps(tmp_path: Path, query_ids: list[int]) -> None:
    """A range that does not begin at the next number, or has a gap, is refused."""
    ledger = middle_of_life(tmp_path / "gaps.db")
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        transaction.record_answers([answer(ledger, query_id) for query_id in query_ids])
    assert ledger.read_state().answered == 9


def test_key_is_kept_once(tmp_path: Path) -> None:
    """The same idempotency key is never kept for a second vector."""
    ledger = middle_of_life(tmp_path / "keys.db")
    for vector in (1, 2):
        with pytest.raises(InvariantError, match="refuse a row"), ledger.transaction() as again:
            again.record_key(ledger.digests.of_key("key"), answer(ledger, vector).vector_digest)


def without_entry(ledger: Ledger, transaction: Transaction) -> None:
    """Put private state that no entry binds."""
    transaction.put_private("further", ledger.database_secret())


def twice(_: Ledger, transaction: Transaction) -> None:
    """Put a piece of private state under a name that is taken."""
    transaction.put_private("ensemble", b"others")


def not_put(_: Ledger, transaction: Transaction) -> None:
    """Bind private state that was not put."""
    transaction.append(EnsembleFitted(size=8, private_digests={"ensemble": "0" * 64}))


def another_digest(_: Ledger, transaction: Transaction) -> None:
    """Bind private state by another digest than its own."""
    transaction.put_private("further", b"1")
    transaction.append(EnsembleFitted(size=8, private_digests={"further": "0" * 64}))


def bad_name(_: Ledger, transaction: Transaction) -> None:
    """Put private state under a name with a separator in it."""
    transaction.put_private("a\0b", b"1")


@pytest.mark.parametrize("misuse", [without_entry, twice, not_put, another_digest, bad_name])
def test_private_state_is_bound_in_its_transaction(
    tmp_path: Path, misuse: Callable[[Ledger, Transaction], None]
) -> None:
    """Private state and the entry that binds it come together or not at all."""
    ledger = middle_of_life(tmp_path / "bound.db")
    with pytest.raises(InvariantError), ledger.transaction() as transaction:
        misuse(ledger, transaction)
    verify(ledger)


def test_secret_of_the_release_comes_first(tmp_path: Path) -> None:
    """No digest of private state is made before the release has its secret."""
    ledger = create(tmp_path / "first.db")
    with pytest.raises(InvariantError, match="secret is put before"):
        put_without_secret(ledger)
    open_release(ledger)
    assert ledger.private(RELEASE_SECRET) == SECRET


def put_without_secret(ledger: Ledger) -> None:
    """Put private state in a ledger without a release."""
    with ledger.transaction() as transaction:
        transaction.put_private("ensemble", b"1")


def test_body_above_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece larger than the database can hold is refused by name of the limit."""
    monkeypatch.setattr("app.ledger.transaction.PRIVATE_BODY_BYTES_MAX", 3)
    ledger = middle_of_life_of_small_pieces(tmp_path / "limit.db")
    with pytest.raises(InvariantError, match="too large"), ledger.transaction() as transaction:
        transaction.put_private("further", b"1234")


def middle_of_life_of_small_pieces(path: Path) -> Ledger:
    """Open a release whose only private state is a short secret."""
    ledger = create(path)
    with ledger.transaction() as transaction:
        digest = transaction.put_private(RELEASE_SECRET, b"abc")
        transaction.append(opened(private_digests={RELEASE_SECRET: digest}))
        for event in shares():
            transaction.append(event)
    return ledger


def test_swallowed_failure_is_not_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A caller that goes on after a failed write does not get a half transaction."""
    ledger = middle_of_life(tmp_path / "swallowed.db")
    first = answer(ledger, 10)
    no_vector = answer(ledger, 11)._replace(vector=None)  # type: ignore[arg-type]  # -- the point
    with pytest.raises(LedgerUnavailableError):
        swallow(ledger, [first, no_vector], LedgerCorruptError)
    monkeypatch.setattr(Transaction, "_refuse_recorded", lambda *_: None)
    same_key = answer(ledger, 11)._replace(vector_digest=first.vector_digest)
    with pytest.raises(LedgerUnavailableError):
        swallow(ledger, [first, same_key], InvariantError)  # by the database
    assert ledger.read_state().answered == 9
    verify(ledger)


def swallow(ledger: Ledger, rows: Sequence[AnswerRow], error: type[ConclaveError]) -> None:
    """Append answers of which the second is refused, and carry on as if nothing were."""
    with ledger.transaction() as transaction, pytest.raises(error):
        transaction.record_answers(rows)
