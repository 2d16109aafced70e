"""The SQL tables of a ledger, as of the newest revision in ``migrations/``.

Triggers refuse DELETE and UPDATE of rows, with four exceptions: the counts of API keys, which may
only grow; the two tables of the index of answers, which follow from the answers; and the counts of
requests by hour, which decide nothing. The number of the release is part of every primary key, so
that one database can contain several releases.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)

REVISION: Final = "0011"
"""The newest revision in ``migrations/``."""

TABLES_REVISION: Final = "0010"
"""The newest one that added a table or a column."""

INDEX_REVISION: Final = "0007"
"""The one that added the index of entries, in SQLite, and no table or column."""

INSERT_ONLY: Final = (
    "entries",
    "answers",
    "answer_groups",
    "idempotency_keys",
    "private_state",
    "database_secret",
    "checkpoints",
)

REVISION_TABLE: Final = "alembic_version"
"""The table with one row, the revision of the others."""

ANSWERS_INDEX: Final = "answers_by_vector"
"""The index that finds the answers of before revision 0008, and refuses a second one.

Later ones are in ``newest_answers``, and then in ``key_blocks``.
"""

ENTRIES_INDEX: Final = "entries_by_number"
"""The index by which SQLite finds an entry without reading bodies on its way."""

metadata = MetaData()

entries = Table(
    "entries",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("version", SmallInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
    PrimaryKeyConstraint("release_number", "sequence", name="entries_key"),
    CheckConstraint("sequence >= 1", name="entries_are_numbered_from_one"),
    Index(ENTRIES_INDEX, "release_number", "sequence", unique=True).ddl_if(dialect="sqlite"),
    sqlite_with_rowid=False,
)

# Answers of before revision 0010, which takes no further rows.
answers = Table(
    "answers",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("query_id", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("vector_digest", LargeBinary(32), nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("label", Integer, nullable=True),
    Column("stable", Boolean, nullable=False),
    # Of answers with scores; null beside labels.
    Column("precision", SmallInteger, nullable=True),
    Column("bin_index", SmallInteger, nullable=True),
    Column("bin_shifted", Boolean, nullable=True),
    Column("units", SmallInteger, nullable=True),
    # What the key holds beside the vector or the cell; null in rows of an earlier revision.
    Column("qualifier", LargeBinary, nullable=True),
    PrimaryKeyConstraint("release_number", "query_id", name="answers_key"),
    ForeignKeyConstraint(
        ["release_number", "sequence"],
        ["entries.release_number", "entries.sequence"],
        name="answers_have_an_entry",
    ),
    CheckConstraint("query_id >= 1", name="answers_are_numbered_from_one"),
    # The digest comes first: a search by release alone would read every answer.
    Index(
        ANSWERS_INDEX,
        "vector_digest",
        "release_number",
        unique=True,
        # In PostgreSQL too, where its revision says so: here SQLAlchemy would import that dialect.
        sqlite_where=text("qualifier IS NULL"),
    ),
    sqlite_with_rowid=False,
)

# A row has up to 64 answers of one entry, with consecutive numbers.
answer_groups = Table(
    "answer_groups",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("last_query_id", BigInteger, nullable=False),
    Column("first_query_id", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("release_number", "last_query_id", name="answer_groups_key"),
    ForeignKeyConstraint(
        ["release_number", "sequence"],
        ["entries.release_number", "entries.sequence"],
        name="answer_groups_have_an_entry",
    ),
    CheckConstraint(
        "last_query_id - first_query_id BETWEEN 0 AND 63", name="answer_groups_have_1_to_64_answers"
    ),
)
answer_groups.add_is_dependent_on(answers)  # whose numbers the first group follows

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("key_digest", LargeBinary(32), nullable=False),
    Column("vector_digest", LargeBinary(32), nullable=False),
    PrimaryKeyConstraint("release_number", "key_digest", name="idempotency_keys_key"),
    # Null in rows that an earlier revision wrote.
    Column("mark", LargeBinary(32), nullable=True),
    sqlite_with_rowid=False,
)

private_state = Table(
    "private_state",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("name", String(64), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("release_number", "name", name="private_state_key"),
)

database_secret = Table(
    "database_secret",
    metadata,
    Column("number", SmallInteger, nullable=False, autoincrement=False),
    Column("secret", LargeBinary(32), nullable=False),
    PrimaryKeyConstraint("number", name="database_secret_key"),
    CheckConstraint("number = 1", name="database_secret_is_one"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("body", Text, nullable=False),
    Column("mark", String(64), nullable=False),
    PrimaryKeyConstraint("release_number", "sequence", name="checkpoints_key"),
    ForeignKeyConstraint(
        ["release_number", "sequence"],
        ["entries.release_number", "entries.sequence"],
        name="checkpoints_have_an_entry",
    ),
    sqlite_with_rowid=False,
)

key_counts = Table(
    "key_counts",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("name", String(64), nullable=False),
    Column("answered", BigInteger, nullable=False),
    Column("unstable", BigInteger, nullable=False),
    Column("mark", LargeBinary(32), nullable=False),
    PrimaryKeyConstraint("release_number", "name", name="key_counts_key"),
    sqlite_with_rowid=False,
)

newest_answers = Table(
    "newest_answers",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("vector_digest", LargeBinary(32), nullable=False),
    Column("query_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("release_number", "vector_digest", name="newest_answers_key"),
    sqlite_with_rowid=False,
)

key_blocks = Table(
    "key_blocks",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("level", SmallInteger, nullable=False),
    Column("block", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("release_number", "level", "block", name="key_blocks_key"),
)

hour_counts = Table(
    "hour_counts",
    metadata,
    Column("release_number", SmallInteger, nullable=False),
    Column("hour", BigInteger, nullable=False),
    Column("fresh", BigInteger, nullable=False),
    Column("unstable", BigInteger, nullable=False),
    Column("repeated", BigInteger, nullable=False),
    Column("classified", BigInteger, nullable=False),
    Column("refused", BigInteger, nullable=False),
    PrimaryKeyConstraint("release_number", "hour", name="hour_counts_key"),
    sqlite_with_rowid=False,
)
