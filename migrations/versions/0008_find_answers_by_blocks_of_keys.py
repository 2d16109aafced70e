"""Find new answers by blocks of keys, in place of an index in the order of digests.

The index had to write a page for every answer.  It still finds the existing answers, which
have null as qualifier, and takes no new ones.  The key of a new answer is first in
``newest_answers``, whose primary key refuses a second answer, and later in ``key_blocks``.
"""
# ruff: noqa: S608 -- the statements are made of the constant below

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

WITHOUT = "answers: a new answer has a qualifier"


def upgrade() -> None:
    """Add the column and the tables, and limit the index to the existing answers."""
    op.add_column("answers", sa.Column("qualifier", sa.LargeBinary, nullable=True))
    op.drop_index("answers_by_vector", "answers")
    op.create_index(
        "answers_by_vector",
        "answers",
        ["vector_digest", "release_number"],
        unique=True,
        sqlite_where=sa.text("qualifier IS NULL"),
        postgresql_where=sa.text("qualifier IS NULL"),
    )
    op.create_table(
        "newest_answers",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("vector_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("query_id", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "vector_digest", name="newest_answers_key"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "key_blocks",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("level", sa.SmallInteger, nullable=False),
        sa.Column("block", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "level", "block", name="key_blocks_key"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _fill_in_postgresql()
    else:
        _fill_in_sqlite()


def _fill_in_sqlite() -> None:
    op.execute(
        "CREATE TRIGGER answers_are_qualified AFTER INSERT ON answers "
        "WHEN NEW.qualifier IS NULL "
        f"BEGIN SELECT RAISE(ABORT, '{WITHOUT}'); END"
    )
    op.execute(
        "CREATE TRIGGER answers_are_newest AFTER INSERT ON answers "
        "BEGIN INSERT INTO newest_answers (release_number, vector_digest, query_id) "
        "VALUES (NEW.release_number, NEW.vector_digest, NEW.query_id); END"
    )
    op.execute(
        "CREATE TRIGGER newest_answers_refuse_update BEFORE UPDATE ON newest_answers "
        "BEGIN SELECT RAISE(ABORT, 'newest_answers: rows are never changed'); END"
    )
    op.execute(
        "CREATE TRIGGER newest_answers_refuse_replacement BEFORE INSERT ON newest_answers "
        "WHEN EXISTS (SELECT 1 FROM newest_answers WHERE release_number = NEW.release_number "
        "AND vector_digest = NEW.vector_digest) "
        "BEGIN SELECT RAISE(ABORT, 'newest_answers: rows are never replaced'); END"
    )


def _fill_in_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION conclave_answers_are_newest() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN IF NEW.qualifier IS NULL THEN "
        f"RAISE EXCEPTION '{WITHOUT}' USING ERRCODE = '23000'; END IF; "
        "INSERT INTO newest_answers (release_number, vector_digest, query_id) "
        "VALUES (NEW.release_number, NEW.vector_digest, NEW.query_id); RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER answers_are_newest AFTER INSERT ON answers "
        "FOR EACH ROW EXECUTE FUNCTION conclave_answers_are_newest()"
    )
    op.execute(
        "CREATE TRIGGER newest_answers_refuse_change BEFORE UPDATE OR TRUNCATE ON newest_answers "
        "FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
    )
