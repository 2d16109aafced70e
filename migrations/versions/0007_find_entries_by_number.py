"""Find entries by their number without reading their bodies, in SQLite."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index by which SQLite finds the entry of an answer.

    Its foreign key takes the newest index of those columns.  The primary key is the table
    itself: a search in it reads a whole body, of many answers tens of thousands of bytes,
    for every comparison.  PostgreSQL keeps no row in an index.
    """
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("entries_by_number", "entries", ["release_number", "sequence"], unique=True)
