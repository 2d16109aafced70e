"""Add triggers that refuse to change, delete or replace rows, or to leave a gap in numbers."""
# ruff: noqa: S608 -- the statements are made of the constants below

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

INSERT_ONLY = ("entries", "answers", "idempotency_keys", "private_state", "database_secret")
NUMBERED = (("entries", "sequence"), ("answers", "query_id"))
KEYED = (
    ("idempotency_keys", "release_number = NEW.release_number AND key_digest = NEW.key_digest"),
    ("private_state", "release_number = NEW.release_number AND name = NEW.name"),
    ("database_secret", "number = NEW.number"),
)


def upgrade() -> None:
    """Create the triggers of every table that only grows."""
    if op.get_bind().dialect.name == "postgresql":
        _protect_in_postgresql()
    else:
        _protect_in_sqlite()


def _protect_in_sqlite() -> None:
    for table in INSERT_ONLY:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_refuse_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table}: rows are never changed'); END"
            )
    for table, number in NUMBERED:
        op.execute(
            f"CREATE TRIGGER {table}_follow_without_gaps BEFORE INSERT ON {table} "
            f"WHEN NEW.{number} <> 1 + COALESCE((SELECT MAX({number}) FROM {table} "
            f"WHERE release_number = NEW.release_number), 0) "
            f"BEGIN SELECT RAISE(ABORT, '{table}: numbers follow without gaps'); END"
        )
    # INSERT OR REPLACE deletes a row without firing the DELETE trigger.
    for table, same_row in KEYED:
        op.execute(
            f"CREATE TRIGGER {table}_refuse_replacement BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same_row}) "
            f"BEGIN SELECT RAISE(ABORT, '{table}: rows are never replaced'); END"
        )


def _protect_in_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION conclave_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION '%: rows are never changed', TG_TABLE_NAME USING ERRCODE = '23000'; "
        "END $$"
    )
    for table in INSERT_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
        )
    for table, number in NUMBERED:
        op.execute(
            f"CREATE FUNCTION conclave_{table}_follow_without_gaps() RETURNS trigger "
            f"LANGUAGE plpgsql AS $$ BEGIN IF NEW.{number} <> 1 + COALESCE((SELECT MAX({number}) "
            f"FROM {table} WHERE release_number = NEW.release_number), 0) THEN "
            f"RAISE EXCEPTION '{table}: numbers follow without gaps' USING ERRCODE = '23000'; "
            "END IF; RETURN NEW; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_follow_without_gaps BEFORE INSERT ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION conclave_{table}_follow_without_gaps()"
        )
