"""What a move of a ledger refuses, and what it notices in time: nothing is retired then."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy.exc import OperationalError

from app.errors import (
    ConfigurationError,
    LedgerUnavailableError,
    VerificationError,
)
from app.ledger.copies import copy_target
from app.ledger.copies.copies import back_up, restore, retire
from app.ledger.copies.copy_target import copy_rows
from app.ledger.database.database import ledger_database
from app.ledger.database.protections import unprotected
from app.ledger.ledger import open_ledger
from app.ledger.move_database import MoveStep
from app.noise.system import SystemNoise
from tests.builders.ledger.databases import POSTGRESQL, SQLITE
from tests.builders.ledger.places import EITHER, Places, StoppedError, answers_afresh, go, opened
from tests.builders.ledger.releases import middle_of_life, open_release, tamper

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection


def test_what_cannot_be_moved_is_told_in_a_line(places: Places) -> None:
    """Each problem names its option; nothing is retired, and nothing is made."""
    source = places.ledger(SQLITE)
    path = places.folder / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE people (name)")
    (places.folder / "log.db-wal").touch()
    (places.folder / "text.db").write_bytes(b"no database " * 400)
    taken = places.ledger(POSTGRESQL)
    folder = places.folder
    refused = {
        (source, "mysql://h/d"): "--to: a ledger is kept in sqlite:/// or postgresql",
        ("oracle://h/d", source): "--from: a ledger is kept in sqlite:/// or postgresql",
        (source, "nonsense"): "--to: is no address like",
        (source, source): "--to: is the ledger that is to be copied",
        (
            source,
            f"sqlite:///{folder}/./{ledger_database(source).place.split('/')[-1]}",
        ): "--to: is",
        (source, taken): "--to: conclave_test_",
        (source, places.ledger(SQLITE)): "--to: ",
        (source, f"sqlite:///{path}"): f"--to: {path} is a database, and no ledger",
        (source, f"sqlite:///{folder}/text.db"): "--to: cannot open",
        (source, f"sqlite:///{folder}/log.db"): f"--to: {folder}/log.db-wal is left of a ledger",
        (source, f"sqlite:///{folder}/nowhere/a.db"): "--to: cannot lock",
        (f"sqlite:///{folder}/nowhere.db", places.new(SQLITE)): "--from: there is no ledger at",
        (source, taken.replace("conclave_test", "absent")): "--to: cannot open absent_",
    }
    for (here, there), told in refused.items():
        with pytest.raises(ConfigurationError) as problem:
            go(here, there)
        assert str(problem.value).startswith(told)
        assert "\n" not in str(problem.value)
    assert answers_afresh(source)
    assert answers_afresh(taken)


def test_what_is_closed_is_not_moved(places: Places) -> None:
    """A backup, a retired ledger and one without a release are no ledgers to be moved."""
    source, backup = places.ledger(SQLITE), places.folder / "backup.db"
    back_up(source, backup)
    ledger = open_ledger(source, create=True)
    retire(ledger, moves=False, noise=SystemNoise())
    empty = places.new(SQLITE)
    open_ledger(empty, create=True).close()
    for url, told in (
        (source, r"closed already, by entry 10 \(retired\)"),
        (f"sqlite:///{backup}", r"closed already, by entry 10 \(backup\)"),
        (empty, "there is nothing to copy"),
    ):
        with pytest.raises(VerificationError, match=told):
            go(url, places.new(POSTGRESQL))


@EITHER
def test_a_ledger_that_does_not_verify_is_not_moved(places: Places, kind: str) -> None:
    """What is damaged is told before anything is made or retired."""
    path = places.folder / "life.db"
    middle_of_life(path).close()
    tamper(path, "UPDATE answers SET vector = x'00' WHERE query_id = 2")
    target = places.new(kind)
    with pytest.raises(VerificationError, match="answer 2 in the answers table has a vector"):
        go(f"sqlite:///{path}", target)
    assert copy_target.look_at(target).held is copy_target.Held.NOTHING
    assert opened(f"sqlite:///{path}").read_state().closed is None


@EITHER
def test_no_release_begins_in_a_reserved_database(places: Places, kind: str) -> None:
    """Not by a process that opened it empty, nor later under the secret that it had then."""
    source, target = places.ledger(SQLITE), places.new(kind)
    early = [open_ledger(target, create=True, name=name) for name in ("test", "other")]
    with pytest.raises(StoppedError):
        go(source, target, stop_at=MoveStep.COPY)
    for is_copied in (False, True):
        if is_copied:
            go(source, target)
        for ledger in early:
            with pytest.raises(LedgerUnavailableError, match="copied here since"):
                open_release(ledger, name="other")
    for ledger in early:
        ledger.close()
    assert answers_afresh(target)


def test_a_copy_of_what_was_left_is_not_taken_for_what_goes_on(places: Places) -> None:
    """Where the target is lost after the retirement, a restored backup is another, and closed."""
    source, copy = places.ledger(SQLITE), places.folder / "backup.db"
    with pytest.raises(StoppedError):
        go(source, places.new(SQLITE), stop_at=MoveStep.GO_ON)
    back_up(source, copy)
    restored = places.new(SQLITE)
    restore(copy, restored)
    with pytest.raises(ConfigurationError, match=r"--from: moved to .* by entry 10"):
        go(source, restored)
    assert not answers_afresh(restored)


def _loses_an_answer(source: Connection, target: Connection) -> None:
    copy_rows(source, target)
    with unprotected(target, "answer_groups"):
        target.exec_driver_sql("DELETE FROM answer_groups WHERE last_query_id = 9")


def _alters_a_key(source: Connection, target: Connection) -> None:
    copy_rows(source, target)
    with unprotected(target, "checkpoints"):
        target.exec_driver_sql("INSERT INTO checkpoints VALUES (1, 1, 'x', 'y')")


def _drops_protections(source: Connection, target: Connection) -> None:
    copy_rows(source, target)
    if target.dialect.name == SQLITE:
        target.exec_driver_sql("DROP TRIGGER answers_refuse_delete")
    else:
        target.exec_driver_sql("ALTER TABLE answers DISABLE TRIGGER answers_refuse_change")


@pytest.mark.parametrize("plant", [_loses_an_answer, _alters_a_key, _drops_protections])
@EITHER
def test_a_copy_that_is_not_whole_retires_nothing(
    places: Places,
    kind: str,
    plant: Callable[[Connection, Connection], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that are lost or altered on the way, and a missing trigger, are seen in time."""
    source, target = places.ledger(SQLITE), places.new(kind)
    with monkeypatch.context() as planted:
        planted.setattr(copy_target, "copy_rows", plant)
        with pytest.raises(VerificationError):
            go(source, target)
    assert answers_afresh(source)
    assert not answers_afresh(target)
    go(source, target)
    assert answers_afresh(target)


def test_a_database_that_refuses_is_one_line(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a driver raises on the way is told in its first line, and the same command goes on."""

    def fail(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception("disk full\nDETAIL: a row"))

    source, target = places.ledger(SQLITE), places.new(POSTGRESQL)
    with monkeypatch.context() as planted:
        planted.setattr(copy_target, "copy_rows", fail)
        with pytest.raises(LedgerUnavailableError) as refused:
            go(source, target)
    assert str(refused.value) == (
        "the copy was refused: disk full; give the same command again to go on"
    )
    go(source, target)
