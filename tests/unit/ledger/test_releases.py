"""Several releases in one database: numbers of their own, and nothing shared but the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ledger.store import Ledger
from app.ledger.verify import verify
from tests.unit.ledger.releases import answer, answer_many, create, open_release, publish, record

if TYPE_CHECKING:
    from pathlib import Path


def second_in(first: Ledger) -> Ledger:
    """Return the ledger of the second release in a database."""
    return Ledger(first._database, 2)


def test_releases_count_their_own_entries_and_answers(tmp_path: Path) -> None:
    """Two releases that answer by turns have numbers without gaps, each from 1."""
    first = create(tmp_path / "two.db")
    second = second_in(first)
    open_release(first)
    open_release(second)
    for _ in range(2):
        answer_many(first, batches=2, batch_size=1)
        answer_many(second, batches=1, batch_size=2)
    publish(second)
    assert (first.read_state().answered, first.read_state().head.sequence) == (4, 9)
    assert (second.read_state().answered, second.read_state().head.sequence) == (4, 9)
    assert first.read_state().classifier is None
    verify(first)
    verify(second)


def test_releases_share_no_key_answer_or_piece(tmp_path: Path) -> None:
    """What one release recorded, another reads nothing of, nor does its transaction."""
    first = create(tmp_path / "two.db")
    second = second_in(first)
    open_release(first, further={"extra": b"of the first"})
    with first.transaction() as transaction:
        row = answer(first, 1)
        transaction.record_answers([row])
        transaction.record_key(first.digests.of_key("key"), row.vector_digest)
    assert second.read_state().release is None
    open_release(second)
    assert list(second.answers_after(0)) == []
    assert list(second.keys()) == []
    assert second.private("extra") is None
    with second.transaction() as transaction:
        assert transaction.known_keys([first.digests.of_key("key")]) == []
        transaction.record_answers([answer(second, 1, label=1)])
        transaction.record_key(first.digests.of_key("key"), row.vector_digest)
    assert [found.label for found in first.answers_after(0)] == [0]
    assert [found.label for found in second.answers_after(0)] == [1]
    record(first, [answer(first, 2)])
    assert [entry["sequence"] for entry in second.public_entries(5, 10)] == [6]
    assert [entry["sequence"] for entry in first.public_entries(5, 10)] == [6, 7]
