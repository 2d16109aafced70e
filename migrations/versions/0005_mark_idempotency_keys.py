"""Give idempotency keys a mark, by which a key that was altered is known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; keys that are there have none, and null in it."""
    op.add_column("idempotency_keys", sa.Column("mark", sa.LargeBinary(32), nullable=True))
