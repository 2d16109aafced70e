"""What SQLite itself must refuse, and hold: the triggers of the tables, and their types.

SQLite keeps a value of any type in any column and a trigger under any name, so that
both are compared here with what the revisions in ``migrations/`` wrote.
"""

# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import Boolean, LargeBinary, String

from app.ledger.database.tables import ANSWERS_INDEX, ENTRIES_INDEX, INSERT_ONLY, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Column, Connection

_NUMBERED: Final = {"entries": "sequence", "answers": "query_id"}
_KEYED: Final = {
    "idempotency_keys": ("release_number", "key_digest"),
    "private_state": ("release_number", "name"),
    "database_secret": ("number",),
    "checkpoints": ("release_number", "sequence"),
    "key_counts": ("release_number", "name"),
}

_ONLY_GROW: Final = (
    "CREATE TRIGGER key_counts_only_grow BEFORE UPDATE ON key_counts "
    "WHEN NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
    "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable "
    "BEGIN SELECT RAISE(ABORT, 'key_counts: counts only grow'); END"
)
_INDEXES: Final = {
    ANSWERS_INDEX: ("answers", "(vector_digest, release_number)"),
    ENTRIES_INDEX: ("entries", "(release_number, sequence)"),
}


def protection_fault(connection: Connection) -> str | None:
    """Return what is wrong with the triggers, or with an index, or None.

    A trigger that is missing, one that was altered, and one that is not ours.
    """
    indexes = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
    texts = dict(tuple(row) for row in indexes)
    for name, (table, columns) in _INDEXES.items():
        if texts.get(name) != f"CREATE UNIQUE INDEX {name} ON {table} {columns}":
            return f"the table {table} has lost the index {name}, or it was altered"
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    found = dict(tuple(row) for row in rows)
    for name, (table, sql) in _protections().items():
        if found.pop(name, None) != sql:
            return f"the table {table} has lost the trigger {name}, or it was altered"
    if found:
        return f"the database has a trigger that is not the ledger's: {min(found)}"
    return None


def type_fault(connection: Connection) -> str | None:
    """Return which column holds a value that no entry, answer or piece was written with."""
    for name, table in metadata.tables.items():
        for column in table.columns:
            query = f"SELECT 1 FROM {name} WHERE NOT ({_fits(column)}) LIMIT 1"
            if connection.exec_driver_sql(query).first() is not None:
                return f"the table {name} has a value of a wrong type in the column {column.name}"
    return None


@contextmanager
def unprotected(connection: Connection, table: str) -> Iterator[None]:
    """Drop the triggers of a table for a block; see ``protections.unprotected``."""
    found = f"SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
    triggers = [tuple(row) for row in connection.exec_driver_sql(found)]
    for name, _ in triggers:
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    yield
    for _, statement in triggers:
        connection.exec_driver_sql(statement)


def _protections() -> dict[str, tuple[str, str]]:
    """Return every trigger by its name: its table and its text."""
    expected = {"key_counts_only_grow": ("key_counts", _ONLY_GROW)}
    name = "key_counts_refuse_delete"
    expected[name] = (
        "key_counts",
        _refusing(name, "DELETE ON key_counts", "key_counts", "changed"),
    )
    for table in INSERT_ONLY:
        for verb in ("UPDATE", "DELETE"):
            name = f"{table}_refuse_{verb.lower()}"
            expected[name] = (table, _refusing(name, f"{verb} ON {table}", table, "changed"))
    for table, number in _NUMBERED.items():
        name = f"{table}_follow_without_gaps"
        newest = f"(SELECT MAX({number}) FROM {table} WHERE release_number = NEW.release_number)"
        event = f"INSERT ON {table} WHEN NEW.{number} <> 1 + COALESCE({newest}, 0)"
        text = (
            f"CREATE TRIGGER {name} BEFORE {event} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: numbers follow without gaps'); END"
        )
        expected[name] = (table, text)
    for table, key in _KEYED.items():
        name = f"{table}_refuse_replacement"
        same = " AND ".join(f"{column} = NEW.{column}" for column in key)
        event = f"INSERT ON {table} WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})"
        expected[name] = (table, _refusing(name, event, table, "replaced"))
    return expected


def _refusing(name: str, event: str, table: str, verb: str) -> str:
    return (
        f"CREATE TRIGGER {name} BEFORE {event} "
        f"BEGIN SELECT RAISE(ABORT, '{table}: rows are never {verb}'); END"
    )


def _fits(column: Column[object]) -> str:
    """Return the condition that a value of a column was written by the ledger."""
    name, kind = f'"{column.name}"', column.type
    if isinstance(kind, LargeBinary):
        fits = f"typeof({name}) = 'blob'"
        if kind.length is not None:
            fits += f" AND length({name}) = {kind.length}"
    elif isinstance(kind, String):
        fits = f"typeof({name}) = 'text'"
    else:
        fits = f"typeof({name}) = 'integer'"
        if isinstance(kind, Boolean):
            fits += f" AND {name} IN (0, 1)"
    return f"{name} IS NULL OR ({fits})" if column.nullable else fits
