"""Revisions: they build the tables that the code knows, from every earlier one."""
# ruff: noqa: S608 -- the statements are made of constants

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.ledger.opening import MIGRATIONS
from app.ledger.sqlite import create_owner_only, writing_engine
from app.ledger.tables import REVISION, metadata
from app.ledger.verify import verify
from tests.unit.ledger.releases import create, middle_of_life, tamper

if TYPE_CHECKING:
    from pathlib import Path

ROOT = MIGRATIONS.parent
# Those that every revision has.
ANSWER_COLUMNS = "release_number, query_id, sequence, vector_digest, vector, label, stable"


def script_directory() -> ScriptDirectory:
    """Return the revisions as Alembic reads them."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


def test_code_knows_the_newest_revision() -> None:
    """There is one newest revision, and it is the one that opening expects."""
    assert script_directory().get_heads() == [REVISION]


def test_revisions_build_the_tables_that_the_code_declares(tmp_path: Path) -> None:
    """What the revisions leave differs in nothing from the declared tables."""
    ledger = create(tmp_path / "tables.db")
    with ledger.snapshot() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        schemas = connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%' ORDER BY name"
        ).scalars()
        assert list(schemas) == ["answers", "entries", "idempotency_keys"]


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_ledger_in_the_middle_of_its_life_is_migrated(tmp_path: Path, revision: str) -> None:
    """A ledger that an earlier revision wrote opens, verifies and says the same."""
    whole, path = tmp_path / "whole.db", tmp_path / "earlier.db"
    middle_of_life(whole).close()
    migrate_by_hand(path, revision)
    copy_rows(whole, path)
    migrated = create(path)
    expected = create(whole)
    assert migrated.read_state() == expected.read_state()
    assert list(migrated.answers_after(0)) == list(expected.answers_after(0))
    verify(migrated)


def test_alembic_migrates_by_hand(tmp_path: Path) -> None:
    """The developers' configuration migrates the database that -x url=... names."""
    path = tmp_path / "hand.db"
    config = Config(ROOT / "alembic.ini")
    config.cmd_opts = type("Options", (), {"x": [f"url=sqlite:///{path}"]})()
    command.upgrade(config, "0001")
    command.upgrade(config, "head")
    assert path.stat().st_mode & 0o777 == 0o600


def migrate_by_hand(path: Path, revision: str) -> None:
    """Bring a new database to an earlier revision."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    create_owner_only(path)
    engine = writing_engine(path)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def copy_rows(source: Path, target: Path) -> None:
    """Copy every row of the ledger's tables into a database of an earlier revision."""
    tables = ("entries", "idempotency_keys", "private_state", "database_secret")
    tamper(
        target,
        f"ATTACH '{source}' AS whole",
        *(f"INSERT INTO main.{table} SELECT * FROM whole.{table}" for table in tables),
        f"INSERT INTO main.answers SELECT {ANSWER_COLUMNS} FROM whole.answers",
    )
