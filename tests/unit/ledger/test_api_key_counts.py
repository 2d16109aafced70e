"""What keys were given is kept with the answers, and what is altered of it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import InvariantError, LedgerCorruptError, VerificationError
from app.ledger.api_key_counts import ALTERED, KeyCount
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import revisions, write_old_ledger
from tests.builders.ledger.releases import answer, create, open_release, tamper, url_of
from tests.builders.ledger.whole_lives import life_with_labels

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = {"desk": KeyCount(1), "web": KeyCount(2, 1)}


def test_counts_are_read_by_name_and_all_together(tmp_path: Path) -> None:
    """A ledger that is opened again finds them; of other names there are none."""
    path = tmp_path / "counts.db"
    life_with_labels(path).close()
    ledger = create(path)
    assert ledger.key_counts() == COUNTS
    with ledger.transaction() as transaction:
        assert transaction.key_counts({"web", "nobody"}) == {"web": KeyCount(2, 1)}
    assert open_ledger(url_of(path), create=False).key_counts() == COUNTS


def test_a_count_that_is_undone_was_not_given(tmp_path: Path) -> None:
    """A transaction that fails leaves counts as they were: they go with its answers."""
    ledger = life_with_labels(tmp_path / "undone.db")

    def fail() -> None:
        with ledger.transaction() as transaction:
            transaction.keep_key_counts({"web": KeyCount(3, 1), "new": KeyCount(1)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert ledger.key_counts() == COUNTS


def test_a_count_that_shrinks_is_a_broken_invariant(tmp_path: Path) -> None:
    """The table refuses it, whatever the program believes."""
    ledger = life_with_labels(tmp_path / "shrunk.db")

    def shrink() -> None:
        with ledger.transaction() as transaction:
            transaction.keep_key_counts({"web": KeyCount(1, 1)})

    with pytest.raises(InvariantError):
        shrink()
    assert ledger.key_counts() == COUNTS


@pytest.mark.parametrize("column", ["answered", "unstable", "mark"])
def test_an_altered_count_is_refused_where_it_is_used(tmp_path: Path, column: str) -> None:
    """Verification names it, and a server that reads it stops instead of going by it."""
    path = tmp_path / "altered.db"
    life_with_labels(path).close()
    value = "zeroblob(32)" if column == "mark" else f"{column} + 1"
    tamper(path, f"UPDATE key_counts SET {column} = {value} WHERE name = 'web'")  # noqa: S608 -- names of ours
    with pytest.raises(VerificationError, match=ALTERED):
        verify(open_ledger(url_of(path), create=False))
    ledger = create(path)
    with pytest.raises(LedgerCorruptError, match=ALTERED):
        ledger.key_counts()
    with pytest.raises(LedgerCorruptError, match=ALTERED), ledger.transaction() as transaction:
        transaction.key_counts({"web"})


def test_more_counted_than_answered_does_not_verify(tmp_path: Path) -> None:
    """Marks that are right do not save counts which no answers stand behind."""
    ledger = life_with_labels(tmp_path / "more.db")
    with ledger.transaction() as transaction:
        transaction.keep_key_counts({"desk": KeyCount(4)})
    with pytest.raises(VerificationError, match="come to more than the answers"):
        verify(ledger)


def test_releases_of_one_database_are_counted_apart(tmp_path: Path) -> None:
    """A key has a count in each release that it asked."""
    path = tmp_path / "two.db"
    first = create(path, "test")
    open_release(first, name="test", parameters={"privacy.composed.epsilon": "4"} | DELTA)
    second = create(path, "second")
    open_release(second, name="second", parameters={"privacy.composed.epsilon": "4"} | DELTA)
    for ledger, count in ((first, KeyCount(1)), (second, KeyCount(1))):
        with ledger.transaction() as transaction:
            transaction.record_answers([answer(ledger, 1)])
            transaction.keep_key_counts({"web": count})
    with second.transaction() as transaction:
        transaction.record_answers([answer(second, 2)])
        transaction.keep_key_counts({"web": KeyCount(2)})
    assert (first.key_counts(), second.key_counts()) == (
        {"web": KeyCount(1)},
        {"web": KeyCount(2)},
    )
    verify(first)
    verify(second)


@pytest.mark.parametrize("revision", revisions()[:5])
@pytest.mark.sqlite_only(reason="no earlier version kept ledgers in PostgreSQL")
def test_a_ledger_of_before_the_counts_begins_them(tmp_path: Path, revision: str) -> None:
    """What was answered before there were counts is counted for no key."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    ledger = create(path)
    assert ledger.key_counts() == {}
    with ledger.transaction() as transaction:
        transaction.keep_key_counts({"web": KeyCount(1)})
    verify(ledger)
    assert ledger.key_counts() == {"web": KeyCount(1)}


DELTA = {"privacy.composed.delta": "1/100"}
