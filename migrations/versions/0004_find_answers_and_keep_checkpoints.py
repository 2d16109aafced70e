"""Index answers by their vector, one answer each, and store checkpoints of a release's state."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index, which refuses a second answer to a vector, and the table."""
    op.create_index(
        "answers_by_vector", "answers", ["vector_digest", "release_number"], unique=True
    )
    op.create_table(
        "checkpoints",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("mark", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("release_number", "sequence", name="checkpoints_key"),
        sa.ForeignKeyConstraint(
            ["release_number", "sequence"],
            ["entries.release_number", "entries.sequence"],
            name="checkpoints_have_an_entry",
        ),
        sqlite_with_rowid=False,
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE TRIGGER checkpoints_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE "
            "ON checkpoints FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
        )
    else:
        _protect_in_sqlite()


def _protect_in_sqlite() -> None:
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER checkpoints_refuse_{verb.lower()} BEFORE {verb} ON checkpoints "
            "BEGIN SELECT RAISE(ABORT, 'checkpoints: rows are never changed'); END"
        )
    op.execute(
        "CREATE TRIGGER checkpoints_refuse_replacement BEFORE INSERT ON checkpoints "
        "WHEN EXISTS (SELECT 1 FROM checkpoints WHERE release_number = NEW.release_number "
        "AND sequence = NEW.sequence) "
        "BEGIN SELECT RAISE(ABORT, 'checkpoints: rows are never replaced'); END"
    )
