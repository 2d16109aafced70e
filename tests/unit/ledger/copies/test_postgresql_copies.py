"""Backups of a ledger in PostgreSQL are closed files, and are restored into either kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from app.errors import ConfigurationError, LedgerUnavailableError, VerificationError
from app.ledger.copies import copy_target
from app.ledger.copies.copies import Copied, back_up, restore, retire
from app.ledger.copies.copy_target import copy_rows, row_digests
from app.ledger.database.database import ledger_database
from app.ledger.database.open_database import reading
from app.ledger.database.protections import unprotected
from app.ledger.ledger import open_ledger
from app.ledger.move_database import MoveStep
from app.ledger.verification import verify
from app.noise.system import SystemNoise
from tests.builders.ledger.databases import KINDS, POSTGRESQL, SQLITE
from tests.builders.ledger.places import Places, StoppedError, answers_afresh, go, opened

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tests.builders.ledger.postgresql_server import PostgresqlServer


def test_a_backup_of_postgresql_is_one_closed_file(places: Places) -> None:
    """It has every row of one moment, and one entry more; its ledger goes on."""
    source, copy = places.ledger(POSTGRESQL), places.folder / "copies" / "copy.db"
    copy.parent.mkdir()
    before = opened(source).read_state()
    assert back_up(source, copy) == Copied(before.head)
    assert (list(copy.parent.iterdir()), copy.stat().st_mode & 0o777) == ([copy], 0o600)
    backup = opened(f"sqlite:///{copy}")
    assert verify(backup, before.head.hash).closed == "backup"
    assert list(backup.answers_after(0)) == list(opened(source).answers_after(0))
    digests = []
    for url in (source, f"sqlite:///{copy}"):
        with reading(ledger_database(url)) as connection:
            digests.append(row_digests(connection))
    assert {name for name in digests[0] if digests[0][name] != digests[1][name]} == {"entries"}
    assert answers_afresh(source)


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_is_restored_into_postgresql(places: Places, kind: str) -> None:
    """Closed, unless the newest head is given; a ledger that is there is not overwritten."""
    source, copy = places.ledger(kind), places.folder / "copy.db"
    head = back_up(source, copy).head
    closed, goes_on = places.new(POSTGRESQL), places.new(POSTGRESQL)
    assert restore(copy, closed) == Copied(head)
    assert not answers_afresh(closed)
    with pytest.raises(ConfigurationError, match="holds a ledger already"):
        restore(copy, closed)
    with pytest.raises(VerificationError, match="not at the expected head"):
        restore(copy, goes_on, expect_head="ab" * 32)
    assert restore(copy, goes_on, expect_head=head.hash) == Copied(head, reopened=True)
    assert answers_afresh(goes_on)
    verify(opened(goes_on), head.hash)


def test_a_retired_ledger_goes_on_in_postgresql_by_its_code(places: Places) -> None:
    """Retire, back up, restore: over files, where the two databases do not see each other."""
    source, copy, target = (
        places.ledger(SQLITE),
        places.folder / "copy.db",
        places.new(POSTGRESQL),
    )
    code = retire(open_ledger(source, create=True), moves=True, noise=SystemNoise()).code
    back_up(source, copy)
    with pytest.raises(VerificationError, match="the code is not the one"):
        restore(copy, target, code="0" * 64)
    assert restore(copy, target, code=code).reopened
    assert answers_afresh(target)
    assert not answers_afresh(source)


def test_an_unfinished_copy_is_not_restored_over(places: Places) -> None:
    """A database that a move has reserved is that move's: its source may be retired already."""
    source, copy, target = (
        places.ledger(SQLITE),
        places.folder / "copy.db",
        places.new(POSTGRESQL),
    )
    back_up(source, copy)
    with pytest.raises(StoppedError):
        go(source, target, stop_at=MoveStep.GO_ON)
    with pytest.raises(ConfigurationError, match="was being copied to"):
        restore(copy, target)
    go(source, target)


def test_a_restoring_that_is_not_whole_leaves_nothing(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is lost on the way is seen before anything is kept, and can be restored again."""

    def lose(source: Connection, target: Connection) -> None:
        copy_rows(source, target)
        with unprotected(target, "answer_groups"):
            target.execute(text("DELETE FROM answer_groups WHERE last_query_id = 9"))

    def refuse(source: Connection, _: Connection) -> None:
        source.execute(text("SELECT nothing FROM nowhere"))

    copy, target = places.folder / "copy.db", places.new(POSTGRESQL)
    back_up(places.ledger(SQLITE), copy)
    for plant, error in ((lose, VerificationError), (refuse, LedgerUnavailableError)):
        monkeypatch.setattr(copy_target, "copy_rows", plant)
        with pytest.raises(error) as refused:
            restore(copy, target)
        assert "\n" not in str(refused.value)
        assert copy_target.look_at(target).held is copy_target.Held.NOTHING
    monkeypatch.undo()
    restore(copy, target)


def test_a_backup_of_older_tables_is_told(places: Places, postgresql: PostgresqlServer) -> None:
    """Tables of an earlier version are prepared first; nothing is written."""
    source, copy = places.ledger(POSTGRESQL), places.folder / "copy.db"
    with postgresql.connect(source) as connection:
        connection.execute("ALTER TABLE key_counts RENAME COLUMN mark TO sign")
        connection.execute("UPDATE alembic_version SET version_num = '0005'")
    with pytest.raises(ConfigurationError, match="has tables of revision 0005; `prepare` it"):
        back_up(source, copy)
    assert not copy.exists()
