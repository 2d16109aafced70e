"""What cannot be opened as a ledger is refused in one line that names ledger.url."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from app.errors import ConfigurationError, LedgerCorruptError
from app.ledger.ledger import open_ledger
from tests.builders.ledger.releases import create, middle_of_life, tamper, url_of

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "is no address like sqlite:///conclave.db"),
        ("conclave.db", "is no address like sqlite:///conclave.db"),
        ("sqlite://", "a ledger in memory would forget what it charged; name a file"),
        ("sqlite:///:memory:", "a ledger in memory would forget what it charged; name a file"),
        (
            "sqlite+aiosqlite:///x",
            "a ledger is kept in sqlite:/// or postgresql+psycopg://, not in sqlite+aiosqlite",
        ),
        ("sqlite:///x.db?mode=memory", "a sqlite:/// address has a path and nothing else"),
        ("sqlite://host/x.db", "a sqlite:/// address has a path and nothing else"),
        ("sqlite://host:port/x.db", "is no address like sqlite:///conclave.db"),
        (
            "postgresql+psycopg://me:secret@host:port/x",
            "is no address like postgresql+psycopg://HOST/DATABASE",
        ),
        (
            "postgresql+psycopg://me:sec@ret@host/x",
            "has an @ in its password; write it as %40",
        ),
    ],
)
@pytest.mark.parametrize("create_allowed", [True, False])
def test_address_that_is_none_is_refused(url: str, problem: str, *, create_allowed: bool) -> None:
    """A bad address gets its line, without the password in it."""
    with pytest.raises(ConfigurationError) as raised:
        open_ledger(url, create=create_allowed)
    assert str(raised.value) == f"ledger.url: {problem}"


@pytest.mark.parametrize("create_allowed", [True, False])
def test_folder_that_is_missing_is_not_created(tmp_path: Path, *, create_allowed: bool) -> None:
    """A ledger in a folder that does not exist is refused, and no folder is made."""
    path = tmp_path / "absent" / "x.db"
    with pytest.raises(ConfigurationError, match=r"^ledger\.url: .*absent/x\.db") as raised:
        open_ledger(url_of(path), create=create_allowed)
    assert "\n" not in str(raised.value)
    assert not path.parent.exists()


@pytest.mark.parametrize("create_allowed", [True, False])
def test_folder_in_the_place_of_the_file_is_refused(
    tmp_path: Path, *, create_allowed: bool
) -> None:
    """A folder is no ledger."""
    with pytest.raises(ConfigurationError, match=r"^ledger\.url: "):
        open_ledger(url_of(tmp_path), create=create_allowed)


def test_reader_does_not_create_a_ledger(tmp_path: Path) -> None:
    """A ledger that is not there is not made by looking for it."""
    path = tmp_path / "absent.db"
    with pytest.raises(ConfigurationError) as raised:
        open_ledger(url_of(path), create=False)
    assert str(raised.value) == f"ledger.url: there is no ledger at {path}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("create_allowed", [True, False])
def test_database_of_something_else_is_refused(tmp_path: Path, *, create_allowed: bool) -> None:
    """Another application's database is left as it was."""
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE orders (number INTEGER)")
    connection.close()
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(ConfigurationError, match="is a database, and no ledger"):
        open_ledger(url_of(path), create=create_allowed)
    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """A text file is no ledger to write to, and a damaged one to read from."""
    path = tmp_path / "text.db"
    path.write_text("not a database at all\n" * 100, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"^ledger\.url: cannot open .*not a database"):
        open_ledger(url_of(path), create=True)
    with pytest.raises(LedgerCorruptError, match="the file of the ledger is damaged"):
        open_ledger(url_of(path), create=False)


def test_empty_file_is_no_ledger_to_a_reader(tmp_path: Path) -> None:
    """A file without tables, as a crash before the first commit leaves, is created anew."""
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(ConfigurationError, match=r"there is no ledger at .* yet"):
        open_ledger(url_of(path), create=False)
    create(path).close()
    open_ledger(url_of(path), create=False).close()


def test_newer_revision_is_refused(tmp_path: Path) -> None:
    """A database that a newer version migrated is opened by neither reader nor writer."""
    path = tmp_path / "newer.db"
    middle_of_life(path).close()
    tamper(path, "UPDATE alembic_version SET version_num = '9999'")
    for create_allowed in (True, False):
        with pytest.raises(ConfigurationError, match="has tables of revision 9999, and this"):
            open_ledger(url_of(path), create=create_allowed)


def test_lost_secret_is_not_drawn_again(tmp_path: Path) -> None:
    """A ledger whose database secret is gone is damaged, for reader and writer."""
    path = tmp_path / "secret.db"
    middle_of_life(path).close()
    tamper(path, "DELETE FROM database_secret")
    for create_allowed in (True, False):
        with pytest.raises(LedgerCorruptError, match="has lost its secret"):
            open_ledger(url_of(path), create=create_allowed)


def test_locked_database_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process's lock is waited for, and then said."""
    monkeypatch.setattr("app.ledger.database.sqlite.BUSY_TIMEOUT_SECONDS", 0.1)
    path = tmp_path / "locked.db"
    create(path).close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(ConfigurationError, match="database is locked"):
        create(path)
    holder.execute("ROLLBACK")
    holder.close()
    create(path).close()


def test_path_is_taken_as_it_is_written(tmp_path: Path) -> None:
    """Characters that mean something elsewhere are part of the name, escaped in the address."""
    path = tmp_path / "50% of #1 %20 é?.db"
    open_ledger(url_of(Path(quote(str(path)))), create=True).close()
    assert path.is_file()


def test_ledger_is_created_from_any_folder(tmp_path: Path) -> None:
    """The revisions are found wherever the process runs, and a relative path is its own."""
    code = (
        "from app.ledger.ledger import open_ledger\n"
        "open_ledger('sqlite:///here.db', create=True).close()\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert (tmp_path / "here.db").is_file()


def test_a_ledger_in_a_file_is_made_and_opened_without_alembic(tmp_path: Path) -> None:
    """Neither a first start nor a restart imports what only an upgrade needs."""
    code = (
        "import sys\n"
        "from app.ledger.ledger import open_ledger\n"
        "from app.noise.system import SystemNoise\n"
        f"address = {url_of(tmp_path / 'fast.db')!r}\n"
        "open_ledger(address, create=True, noise=SystemNoise()).close()\n"
        "open_ledger(address, create=True).close()\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
    )
