"""Count the answers given to each API key, for the limits of the key."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, whose counts only grow; earlier answers are counted for no key."""
    op.create_table(
        "key_counts",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("answered", sa.BigInteger, nullable=False),
        sa.Column("unstable", sa.BigInteger, nullable=False),
        sa.Column("mark", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("release_number", "name", name="key_counts_key"),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        _protect_in_postgresql()
    else:
        _protect_in_sqlite()


def _protect_in_sqlite() -> None:
    op.execute(
        "CREATE TRIGGER key_counts_refuse_delete BEFORE DELETE ON key_counts "
        "BEGIN SELECT RAISE(ABORT, 'key_counts: rows are never changed'); END"
    )
    op.execute(
        "CREATE TRIGGER key_counts_only_grow BEFORE UPDATE ON key_counts "
        "WHEN NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
        "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable "
        "BEGIN SELECT RAISE(ABORT, 'key_counts: counts only grow'); END"
    )
    op.execute(
        "CREATE TRIGGER key_counts_refuse_replacement BEFORE INSERT ON key_counts "
        "WHEN EXISTS (SELECT 1 FROM key_counts WHERE release_number = NEW.release_number "
        "AND name = NEW.name) "
        "BEGIN SELECT RAISE(ABORT, 'key_counts: rows are never replaced'); END"
    )


def _protect_in_postgresql() -> None:
    op.execute(
        "CREATE TRIGGER key_counts_refuse_change BEFORE DELETE OR TRUNCATE ON key_counts "
        "FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
    )
    op.execute(
        "CREATE FUNCTION conclave_key_counts_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN IF NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name "
        "OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable THEN "
        "RAISE EXCEPTION 'key_counts: counts only grow' USING ERRCODE = '23000'; "
        "END IF; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER key_counts_only_grow BEFORE UPDATE ON key_counts "
        "FOR EACH ROW EXECUTE FUNCTION conclave_key_counts_only_grow()"
    )
