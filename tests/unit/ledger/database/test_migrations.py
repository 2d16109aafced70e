"""Revisions: they build the tables that the code knows, from every earlier one."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.runtime.migration import HeadMaintainer
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from app.errors import ConfigurationError, LedgerCorruptError
from app.ledger.copies.copies import restore
from app.ledger.database.open_database import MIGRATIONS
from app.ledger.database.sqlite import reading_engine, writing_engine
from app.ledger.database.tables import REVISION, REVISION_TABLE, metadata
from app.ledger.entries.fold import DELTA_KEY, EPSILON_KEY
from app.ledger.entries.scored_answers import OUTPUT
from app.ledger.ledger import open_ledger
from app.ledger.verification import verify
from tests.builders.ledger.old_ledgers import (
    HISTORIES,
    LIVES,
    configuration,
    migrate_by_hand,
    revisions,
    rows_of,
    tables_of,
    write_old_ledger,
)
from tests.builders.ledger.releases import (
    answer,
    create,
    open_release,
    record,
    scored,
    tamper,
    url_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from alembic.runtime.migration import RevisionStep
    from sqlalchemy import Connection

ROOT = MIGRATIONS.parent
EARLIER = revisions()[:-1]
VERSIONS = ("table", REVISION_TABLE)
TWO_ANSWERS = (
    "INSERT INTO answers SELECT release_number, query_id + 99, sequence, vector_digest, vector, "
    "label, stable, precision, bin_index, bin_shifted, units FROM answers WHERE query_id = 1"
)


def script_directory() -> ScriptDirectory:
    """Return the revisions as Alembic reads them."""
    return ScriptDirectory.from_config(configuration())


def test_code_knows_the_newest_revision() -> None:
    """There is one newest revision, and it is the one that opening expects."""
    assert script_directory().get_heads() == [REVISION]


def test_revisions_build_the_tables_that_the_code_declares(tmp_path: Path) -> None:
    """What the revisions leave differs in nothing from the declared tables."""
    path = tmp_path / "tables.db"
    migrate_by_hand(path, REVISION)
    engine = reading_engine(path)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        schemas = connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%' ORDER BY name"
        ).scalars()
        assert list(schemas) == [
            "answers",
            "checkpoints",
            "entries",
            "hour_counts",
            "idempotency_keys",
            "key_counts",
            "newest_answers",
        ]
    engine.dispose()


def test_a_new_file_has_what_the_revisions_build(tmp_path: Path) -> None:
    """A ledger made by the newest tables has each table, index and trigger of the revisions."""
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    create(made).close()
    migrate_by_hand(migrated, REVISION)
    assert parts_of(made) == parts_of(migrated)


def test_a_table_of_revisions_without_one_is_a_new_file(tmp_path: Path) -> None:
    """An operator who asked Alembic for the revision of an empty file can open a ledger in it."""
    path, whole = tmp_path / "asked.db", tmp_path / "whole.db"
    migrate_by_hand(whole, REVISION)
    (statement,) = [text for kind, name, text in parts_of(whole) if (kind, name) == VERSIONS]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
    create(path).close()
    assert parts_of(path) == parts_of(whole)


def parts_of(path: Path) -> list[tuple[str, str, str]]:
    """Return kind, name and text of each part of a file, each run of spaces as one."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT type, name, COALESCE(sql, '') FROM sqlite_master")
        parts = [(kind, name, " ".join(text.split())) for kind, name, text in found]
        revision = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    return [*sorted(parts), ("revision", *revision[0], "")]


@pytest.mark.parametrize("revision", EARLIER)
def test_every_revision_but_the_newest_has_its_history(revision: str) -> None:
    """A revision that is followed by another has a ledger of its day, and a life to write it by."""
    assert (HISTORIES / f"{revision}.sql").is_file()
    assert revision in LIVES


@pytest.mark.parametrize("revision", EARLIER)
def test_an_old_ledger_is_migrated_without_a_byte_of_it_changed(
    tmp_path: Path, revision: str
) -> None:
    """Every row of an earlier revision is there after the upgrade as it was, and verifies."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    with closing(sqlite3.connect(path)) as connection:
        columns = tables_of(connection)
    before = rows_of(path, columns)
    migrated = create(path)
    report = verify(migrated)
    migrated.close()
    assert rows_of(path, columns) == before
    groups = before.get("answer_groups", [])
    first, last = (
        columns.get("answer_groups", ["first_query_id", "last_query_id"]).index(name)
        for name in ("first_query_id", "last_query_id")
    )
    in_groups = sum(int(str(row[last])) - int(str(row[first])) + 1 for row in groups)
    assert report.answered == len(before["answers"]) + in_groups
    assert report.head.hash == before["entries"][-1][columns["entries"].index("hash")]


@pytest.mark.parametrize("revision", EARLIER)
def test_an_old_ledger_goes_on_where_it_was(tmp_path: Path, revision: str) -> None:
    """After the upgrade answers, keys and pieces are found, and the next answer has its number."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    ledger, other = create(path), LIVES[revision](tmp_path / "new.db")
    assert ledger.read_state().answered == other.read_state().answered
    assert list(ledger.answers_after(0)) == list(other.answers_after(0))
    assert list(ledger.keys()) == list(other.keys())
    for name in ledger.read_state().private_digests:
        assert ledger.private(name) == other.private(name)
    number = ledger.read_state().answered + 1
    has_scores = OUTPUT in other.read_state().release.parameters  # type: ignore[union-attr]  # it is open
    record(ledger, [scored(ledger, number) if has_scores else answer(ledger, number)])
    assert verify(ledger).answered == number


@pytest.mark.parametrize("revision", EARLIER)
def test_an_old_ledger_takes_a_second_release_beside_it(tmp_path: Path, revision: str) -> None:
    """Its release is found by its name, and goes on as it was beside one with a statement."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    first = create(path, "test")
    before = first.read_state()
    assert (first.release_number, before.release is None) == (1, False)
    second = create(path, "second")
    open_release(second, name="second", parameters={EPSILON_KEY: "2", DELTA_KEY: "1/500000"})
    record(second, [answer(second, 1)])
    assert first.read_state() == before
    assert (verify(first).answered, verify(second).answered) == (before.answered, 1)


@pytest.mark.parametrize("revision", EARLIER)
def test_an_old_ledger_comes_to_the_tables_of_a_new_one(tmp_path: Path, revision: str) -> None:
    """Upgraded, it has the columns, keys, indexes and triggers of a ledger that is created now."""
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    write_old_ledger(old, revision)
    upgraded, created = create(old), create(new)
    with upgraded.snapshot() as connection, created.snapshot() as other:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert made_of(connection) == made_of(other)


def made_of(connection: Connection) -> dict[str, object]:
    """Return the text of every index and trigger, and the columns of every table."""
    rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master").all()
    columns = {
        name: connection.exec_driver_sql(f"PRAGMA table_info({name})").all()
        for kind, name, _ in rows
        if kind == "table"
    }
    return {f"{kind} {name}": sql for kind, name, sql in rows if kind != "table"} | columns


@pytest.mark.parametrize("revision", EARLIER)
def test_reading_an_old_ledger_does_not_migrate_it(tmp_path: Path, revision: str) -> None:
    """What only reads says which version to run, and leaves the file as it is."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    content = path.read_bytes()
    with pytest.raises(ConfigurationError, match=f"has tables of revision {revision}"):
        open_ledger(url_of(path), create=False)
    assert path.read_bytes() == content


@pytest.mark.parametrize("revision", EARLIER)
def test_a_backup_of_an_old_ledger_is_restored_migrated(tmp_path: Path, revision: str) -> None:
    """A copy of an earlier version's ledger is restored by the newest tables, closed."""
    old, place = tmp_path / "old.db", tmp_path / "place.db"
    write_old_ledger(old, revision)
    content = old.read_bytes()
    restored = restore(old, url_of(place))
    assert old.read_bytes() == content
    assert verify(create(place), restored.head.hash).answered > 0


@pytest.mark.parametrize("revision", EARLIER)
def test_an_upgrade_that_fails_leaves_the_ledger_as_it_was(tmp_path: Path, revision: str) -> None:
    """Revisions are brought on in one transaction: whatever stops the last undoes the first."""
    path = tmp_path / "old.db"
    write_old_ledger(path, revision)
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())

    def fail(*_: object, **__: object) -> None:
        raise OperationalError("", {}, sqlite3.OperationalError("the disk is full"))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(HeadMaintainer, "update_to_step", failing_at_the_newest(fail))
        with pytest.raises(ConfigurationError, match="the disk is full"):
            create(path)
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before
    verify(create(path))


def failing_at_the_newest(fail: Callable[..., None]) -> Callable[..., None]:
    """Return what notes a revision, and fails where it is the newest, whose tables are there."""
    note = HeadMaintainer.update_to_step

    def update(maintainer: HeadMaintainer, step: RevisionStep) -> None:
        if step.to_revisions_no_deps == (REVISION,):
            fail()
        note(maintainer, step)

    return update


def test_two_answers_to_one_vector_are_not_migrated(tmp_path: Path) -> None:
    """A ledger that an earlier version would have served is refused, and stays as it was."""
    path = tmp_path / "twice.db"
    write_old_ledger(path, "0003")
    tamper(path, TWO_ANSWERS)
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
    with pytest.raises(LedgerCorruptError) as refused:
        create(path)
    assert str(refused.value) == "the answers table holds two answers to one vector"
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


@pytest.mark.parametrize("revision", revisions())
def test_no_revision_can_be_undone(tmp_path: Path, revision: str) -> None:
    """There is no way back that would rewrite history: no revision has one, and none is run."""
    (script,) = [each for each in script_directory().walk_revisions() if each.revision == revision]
    assert not hasattr(script.module, "downgrade")
    path = tmp_path / "old.db"
    migrate_by_hand(path, revision)
    with closing(sqlite3.connect(path)) as connection:
        before = list(connection.iterdump())
    engine, undoing = writing_engine(path), configuration()
    with ExitStack() as held:
        undoing.attributes["connection"] = held.enter_context(engine.connect())
        with pytest.raises(AttributeError, match="downgrade"):
            command.downgrade(undoing, "base")
    engine.dispose()
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


def test_alembic_migrates_by_hand(tmp_path: Path) -> None:
    """The developers' configuration migrates the database that -x url=... names."""
    path = tmp_path / "hand.db"
    config = Config(ROOT / "alembic.ini")
    config.cmd_opts = type("Options", (), {"x": [f"url=sqlite:///{path}"]})()
    command.upgrade(config, "0001")
    command.upgrade(config, "head")
    assert path.stat().st_mode & 0o777 == 0o600
