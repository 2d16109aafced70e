"""Add the columns of a score to answers: its precision, its bin and the units used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; existing answers have labels only, and null in the new columns."""
    op.add_column("answers", sa.Column("precision", sa.SmallInteger, nullable=True))
    op.add_column("answers", sa.Column("bin_index", sa.SmallInteger, nullable=True))
    op.add_column("answers", sa.Column("bin_shifted", sa.Boolean, nullable=True))
    op.add_column("answers", sa.Column("units", sa.SmallInteger, nullable=True))
