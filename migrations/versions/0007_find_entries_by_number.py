"""Index entries by number in SQLite, so that a search reads none of their bodies."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index by which SQLite finds the entry of an answer.

    SQLite checks the foreign key of an answer by the newest index of these columns.  The
    primary key is the table itself: a search in it reads a whole body for every comparison,
    tens of thousands of bytes if the entry has many answers.  An index of PostgreSQL holds
    no rows, so PostgreSQL needs no second one.
    """
    if op.get_bind().dialect.name == "sqlite":
        op.create_index("entries_by_number", "entries", ["release_number", "sequence"], unique=True)
