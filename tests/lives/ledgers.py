"""Every row of every table of a ledger, read past the application."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy.engine import make_url

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# What is longer is told by its hash: a difference in it is found, and not shown.
SHOWN_MAX = 4000
# An hour of the clock may end in a life: the counts of a release are added over its hours.
HOUR_COUNTS = "hour_counts"
HOURS_ADDED = """
select release_number, sum(fresh), sum(unstable), sum(repeated), sum(classified), sum(refused)
from hour_counts group by release_number
"""
POSTGRESQL_TABLES = """
select table_schema, table_name from information_schema.tables
where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'
order by 1, 2
"""
POSTGRESQL_SCHEMA = """
select table_name, column_name, data_type, is_nullable from information_schema.columns
where table_schema not in ('pg_catalog', 'information_schema') order by table_name, column_name
"""
POSTGRESQL_GUARDS = """
select c.relname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
where not t.tgisinternal order by 1, 2
"""


def ledger_bytes(url: str) -> bytes:
    """Return tables, columns, triggers and rows of a ledger at an address."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        return _sqlite_bytes(str(address.database))
    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(plain, autocommit=True)) as database:
        told = [_rows("columns", database.execute(POSTGRESQL_SCHEMA))]
        told.append(_rows("triggers", database.execute(POSTGRESQL_GUARDS)))
        for schema, table in database.execute(POSTGRESQL_TABLES).fetchall():
            query = _query_of(table, f'"{schema}"."{table}"')
            told.append(_rows(table, database.execute(query)))
        return b"\n".join(told)


def kinds(url: str) -> list[str]:
    """Return the kinds of the entries of a ledger's newest release, in order."""
    query = (
        "select kind from entries where release_number = "
        "(select max(release_number) from entries) order by sequence"
    )
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        with closing(_opened(str(address.database))) as database:
            return [kind for (kind,) in database.execute(query)]
    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    with closing(psycopg.connect(plain, autocommit=True)) as server:
        return [kind for (kind,) in server.execute(query).fetchall()]


def file_bytes(path: Path) -> bytes:
    """Return the bytes of a file, or that there is none."""
    return path.read_bytes() if path.exists() else b"<no file>"


def _opened(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def _sqlite_bytes(path: str) -> bytes:
    with closing(_opened(path)) as database:
        listed = database.execute("select type, name, sql from sqlite_master").fetchall()
        told = [_rows("tables", listed)]
        for name in sorted(name for kind, name, _ in listed if kind == "table"):
            query = _query_of(name, f'"{name}"')
            told.append(_rows(name, database.execute(query)))
        return b"\n".join(told)


def _query_of(table: str, quoted: str) -> str:
    """Return what reads the rows of a table."""
    if table == HOUR_COUNTS:
        return HOURS_ADDED
    return f"select * from {quoted}"  # noqa: S608 -- a name of the database's own catalogue


def _rows(name: str, rows: Iterable[Any]) -> bytes:
    """Return rows in the order of their text."""
    lines = sorted("\t".join(map(_shown, row)) for row in rows)
    return "\n".join([f"== {name}: {len(lines)}", *lines]).encode()


def _shown(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    if len(text) <= SHOWN_MAX:
        return text
    return f"sha256:{sha256(text.encode()).hexdigest()} of {len(text)}"
