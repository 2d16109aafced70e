"""Give idempotency keys a mark, by which an altered key is detected."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; existing keys have no mark, and null in the column."""
    op.add_column("idempotency_keys", sa.Column("mark", sa.LargeBinary(32), nullable=True))
