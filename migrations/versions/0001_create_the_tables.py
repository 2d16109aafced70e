"""Create the tables of entries, answers, idempotency keys and secret state."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of the first version."""
    _create_entries()
    _create_answers()
    _create_idempotency_keys()
    _create_secret_state()


def _create_entries() -> None:
    op.create_table(
        "entries",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("version", sa.SmallInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("release_number", "sequence", name="entries_key"),
        sa.CheckConstraint("sequence >= 1", name="entries_are_numbered_from_one"),
        sqlite_with_rowid=False,
    )


def _create_answers() -> None:
    op.create_table(
        "answers",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("query_id", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("vector_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.Column("label", sa.Integer, nullable=True),
        sa.Column("stable", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "query_id", name="answers_key"),
        sa.ForeignKeyConstraint(
            ["release_number", "sequence"],
            ["entries.release_number", "entries.sequence"],
            name="answers_have_an_entry",
        ),
        sa.CheckConstraint("query_id >= 1", name="answers_are_numbered_from_one"),
        sqlite_with_rowid=False,
    )


def _create_idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("key_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("vector_digest", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("release_number", "key_digest", name="idempotency_keys_key"),
        sqlite_with_rowid=False,
    )


def _create_secret_state() -> None:
    op.create_table(
        "private_state",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "name", name="private_state_key"),
    )
    op.create_table(
        "database_secret",
        sa.Column("number", sa.SmallInteger, nullable=False, autoincrement=False),
        sa.Column("secret", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("number", name="database_secret_key"),
        sa.CheckConstraint("number = 1", name="database_secret_is_one"),
    )
