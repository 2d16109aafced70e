"""Idempotency keys are marked, so that one that was altered is known; old ones have no mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import LedgerCorruptError, VerificationError
from app.ledger.entries.digests import Digests
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.releases import create, middle_of_life, tamper, url_of

if TYPE_CHECKING:
    from pathlib import Path

ALTERED = "an idempotency key was altered"
# The vector of another answer, which has its row, in the place of the key's own.
TAMPERED = {
    "another vector": (
        "UPDATE idempotency_keys SET vector_digest = "
        "(SELECT vector_digest FROM answers WHERE query_id = 1)"
    ),
    "another mark": "UPDATE idempotency_keys SET mark = CAST(zeroblob(32) AS BLOB)",
}


@pytest.mark.parametrize("statement", TAMPERED.values(), ids=TAMPERED.keys())
def test_an_altered_key_is_refused_where_it_is_used(tmp_path: Path, statement: str) -> None:
    """Verification names it, and a server that looks it up stops instead of answering by it."""
    path = tmp_path / "altered.db"
    middle_of_life(path).close()
    tamper(path, statement)
    with pytest.raises(VerificationError, match=ALTERED):
        verify(open_ledger(url_of(path), create=False))
    ledger = create(path)
    key = ledger.digests.of_key("key")
    with pytest.raises(LedgerCorruptError, match=ALTERED):
        ledger.known_keys([key])
    with pytest.raises(LedgerCorruptError, match=ALTERED), ledger.transaction() as transaction:
        transaction.known_keys([key])


def test_a_key_of_before_the_marks_is_known(tmp_path: Path) -> None:
    """A key that an earlier revision kept has no mark, and replays and verifies as it did."""
    path = tmp_path / "old.db"
    middle_of_life(path).close()
    tamper(path, "UPDATE idempotency_keys SET mark = NULL")
    ledger = create(path)
    key = ledger.digests.of_key("key")
    assert [found for found, _ in ledger.known_keys([key])] == [key]
    verify(ledger)


def test_a_mark_is_of_one_key_vector_and_release() -> None:
    """Marks differ by each of the three, and by the database's secret."""
    first, second = b"a" * 32, b"b" * 32
    marks = {
        Digests(secret).of_kept_key(*pair, release_number=number)
        for secret in (first, second)
        for pair in ((first, second), (second, first))
        for number in (1, 2)
    }
    assert len(marks) == 8
