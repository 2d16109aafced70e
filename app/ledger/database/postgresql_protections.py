"""What PostgreSQL must refuse, and hold: the triggers of the tables, and what they run.

An owner of the tables can disable a trigger, drop it, or replace the function that it
runs, so that all three are compared here with what the revisions in ``migrations/``
wrote.  A server needs to own nothing: ``docs/postgresql.md`` has the roles.
"""

# ruff: noqa: S608 -- the statements are made of the names of our own tables

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import LargeBinary

from app.ledger.database.tables import ANSWERS_INDEX, INSERT_ONLY, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

_NUMBERED: Final = {"entries": "sequence", "answers": "query_id"}
_COUNTS: Final = "key_counts"
_ONLY_GROW: Final = (
    " BEGIN IF NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
    "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable THEN "
    "RAISE EXCEPTION 'key_counts: counts only grow' USING ERRCODE = '23000'; "
    "END IF; RETURN NEW; END "
)
_REFUSE: Final = "conclave_refuse_change"
_ENABLED: Final = "O"

_TABLES: Final = ", ".join(f"'{name}'" for name in sorted(metadata.tables))
_TRIGGERS: Final = (
    "SELECT tgname, relname, pg_get_triggerdef(pg_trigger.oid), tgenabled, prosrc "
    "FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "JOIN pg_proc ON pg_proc.oid = tgfoid "
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    f"WHERE NOT tgisinternal AND nspname = current_schema() AND relname IN ({_TABLES})"
)
_RULES: Final = (
    "SELECT rulename FROM pg_rules "
    f"WHERE schemaname = current_schema() AND tablename IN ({_TABLES}) LIMIT 1"
)
_INDEX: Final = (
    "SELECT indisunique AND indisvalid FROM pg_index "
    f"WHERE indexrelid = to_regclass('{ANSWERS_INDEX}') AND indrelid = to_regclass('answers') "
    "AND pg_get_indexdef(indexrelid) LIKE '%(vector_digest, release_number)'"
)


def protection_fault(connection: Connection) -> str | None:
    """Return what is wrong with the triggers, or with the index of answers, or None.

    A trigger that is missing, disabled or altered, one that is not ours, and a rule.
    """
    if connection.exec_driver_sql(_INDEX.replace("%", "%%")).scalar() is not True:
        return f"the table answers has lost the index {ANSWERS_INDEX}, or it was altered"
    rows = connection.exec_driver_sql(_TRIGGERS)
    found = {row[0]: (row[1], _clause(row[2]), row[3], row[4]) for row in rows}
    for name, (table, clause, source) in _protections().items():
        if found.pop(name, None) != (table, clause, _ENABLED, source):
            return f"the table {table} has lost the trigger {name}, or it was altered"
    if found:
        return f"the database has a trigger that is not the ledger's: {min(found)}"
    rule = connection.exec_driver_sql(_RULES).scalar()
    return None if rule is None else f"the database has a rule that is not the ledger's: {rule}"


def type_fault(connection: Connection) -> str | None:
    """Return which column holds bytes of a length that was never written.

    PostgreSQL keeps to the types of its columns, and knows no length of bytes.
    """
    for name, table in metadata.tables.items():
        for column in table.columns:
            length = column.type.length if isinstance(column.type, LargeBinary) else None
            if length is None:
                continue
            query = f"SELECT 1 FROM {name} WHERE octet_length({column.name}) <> {length} LIMIT 1"
            if connection.exec_driver_sql(query).first() is not None:
                return f"the table {name} has a value of a wrong type in the column {column.name}"
    return None


@contextmanager
def unprotected(connection: Connection, table: str) -> Iterator[None]:
    """Disable the triggers of a table in a block; see ``protections.unprotected``."""
    connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def _protections() -> dict[str, tuple[str, str, str]]:
    """Return every trigger by its name: its table, its clause and the text of its function."""
    refuse = (
        " BEGIN RAISE EXCEPTION '%: rows are never changed', TG_TABLE_NAME "
        "USING ERRCODE = '23000'; END "
    )
    grow = (
        f"BEFORE UPDATE ON {_COUNTS} FOR EACH ROW EXECUTE FUNCTION conclave_{_COUNTS}_only_grow()"
    )
    expected = {f"{_COUNTS}_only_grow": (_COUNTS, grow, _ONLY_GROW)}
    for table in (*INSERT_ONLY, _COUNTS):
        verbs = "DELETE OR TRUNCATE" if table == _COUNTS else "DELETE OR UPDATE OR TRUNCATE"
        event = f"BEFORE {verbs} ON {table} FOR EACH STATEMENT"
        clause = f"{event} EXECUTE FUNCTION {_REFUSE}()"
        expected[f"{table}_refuse_change"] = (table, clause, refuse)
    for table, number in _NUMBERED.items():
        name = f"{table}_follow_without_gaps"
        clause = f"BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION conclave_{name}()"
        follow = (
            f" BEGIN IF NEW.{number} <> 1 + COALESCE((SELECT MAX({number}) "
            f"FROM {table} WHERE release_number = NEW.release_number), 0) THEN "
            f"RAISE EXCEPTION '{table}: numbers follow without gaps' USING ERRCODE = '23000'; "
            "END IF; RETURN NEW; END "
        )
        expected[name] = (table, clause, follow)
    return expected


def _clause(definition: str) -> str:
    """Return what a trigger's definition says after its name, without the schema's."""
    clause = definition.split(" ", 3)[3]
    before, _, after = clause.partition(" ON ")
    table = after.split(" ", 1)[0]
    return f"{before} ON {after.replace(table, table.split('.')[-1], 1)}"
