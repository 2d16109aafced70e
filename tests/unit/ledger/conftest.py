"""Closes every ledger that a test opened, and runs what is not about files in PostgreSQL too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.ledger.ledger import Ledger
from tests.builders.ledger.databases import DATABASES, KINDS, POSTGRESQL, SQLITE
from tests.builders.ledger.places import Places
from tests.builders.ledger.postgresql_server import PostgresqlServer, postgresql_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ledger.database.open_database import OpenDatabase

FOLDER = Path(__file__).parent
IN_EVERY_DATABASE = {
    FOLDER / name
    for name in (
        "entries/test_checkpoint.py",
        "entries/test_full_check.py",
        "entries/test_scores.py",
        "test_api_key_counts.py",
        "test_closing.py",
        "test_grouped_answers.py",
        "test_kept_keys.py",
        "test_ledger.py",
        "test_recorded_keys.py",
        "test_releases.py",
        "test_short_entries.py",
        "test_transaction.py",
        "test_verification.py",
    )
}
"""What the tests of these modules say holds of a ledger wherever it is kept."""

if absent := sorted(str(path) for path in IN_EVERY_DATABASE if not path.is_file()):
    raise FileNotFoundError(f"IN_EVERY_DATABASE names what is no module: {', '.join(absent)}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of what is about SQLite alone."""
    config.addinivalue_line("markers", "sqlite_only(reason): says something of files alone")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of a portable module once in every kind of database."""
    if metafunc.definition.path in IN_EVERY_DATABASE:
        metafunc.parametrize("_database_kind", KINDS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of PostgreSQL what is about SQLite alone."""
    alone = [item for item in items if _is_in_postgresql(item) and _is_of_sqlite(item)]
    if alone:
        config.hook.pytest_deselected(items=alone)
        items[:] = [item for item in items if item not in set(alone)]


def _is_in_postgresql(item: pytest.Item) -> bool:
    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    return parameters.get("_database_kind") == POSTGRESQL


def _is_of_sqlite(item: pytest.Item) -> bool:
    return item.get_closest_marker("sqlite_only") is not None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """Yield a PostgreSQL server, or skip where there is none."""
    with postgresql_server() as server:
        yield server


@pytest.fixture
def places(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[Places]:
    """Yield places for the ledgers of a test."""
    places = Places(tmp_path, postgresql)
    yield places
    places.end()


@pytest.fixture(autouse=True)
def _database_kind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep the ledgers of a test where its kind says."""
    if getattr(request, "param", SQLITE) == POSTGRESQL:
        DATABASES.server = request.getfixturevalue("postgresql")
    yield
    DATABASES.end()


@pytest.fixture(autouse=True)
def _ledgers_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[Ledger] = []
    initialise = Ledger.__init__

    def remember(self: Ledger, database: OpenDatabase, release: str | int = 1) -> None:
        initialise(self, database, release)
        opened.append(self)

    monkeypatch.setattr(Ledger, "__init__", remember)
    yield
    for ledger in opened:
        ledger.close()
