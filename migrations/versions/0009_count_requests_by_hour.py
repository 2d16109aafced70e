"""Count what is asked in each hour, so that a history survives restarts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, whose rows are added to, and forgotten when they are old."""
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
