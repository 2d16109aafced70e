"""Count queries by the hour, and let PostgreSQL servers delete unused private state of batches.

To delete from ``private_state``, its triggers must be disabled for the statement, which only the
table's owner may do.  The function does so with the owner's rights, for roles that may execute
it, and only for the kinds of private state that a growing release can leave unused.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


FORGET = (
    " BEGIN IF EXISTS (SELECT 1 FROM unnest(gone) AS name WHERE "
    "name !~ '^(slots|labelling|request)-') THEN "
    "RAISE EXCEPTION 'private_state: rows are never changed' USING ERRCODE = '23000'; END IF; "
    "ALTER TABLE private_state DISABLE TRIGGER USER; "
    "DELETE FROM private_state WHERE release_number = of_release AND name = ANY (gone); "
    "ALTER TABLE private_state ENABLE TRIGGER USER; END "
)


def upgrade() -> None:
    """Create the table of hourly counts, whose old rows are deleted, and the function."""
    op.create_table(
        "hour_counts",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("hour", sa.BigInteger, nullable=False),
        sa.Column("fresh", sa.BigInteger, nullable=False),
        sa.Column("unstable", sa.BigInteger, nullable=False),
        sa.Column("repeated", sa.BigInteger, nullable=False),
        sa.Column("classified", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "hour", name="hour_counts_key"),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        _forget_in_postgresql()


def _forget_in_postgresql() -> None:
    connection = op.get_bind()
    schema = connection.dialect.identifier_preparer.quote_identifier(
        str(connection.exec_driver_sql("SELECT current_schema()").scalar())
    )
    op.execute(
        "CREATE FUNCTION conclave_forget(of_release smallint, gone text[]) RETURNS void "
        f"LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $${FORGET}$$"
    )
    op.execute("REVOKE ALL ON FUNCTION conclave_forget(smallint, text[]) FROM PUBLIC")
