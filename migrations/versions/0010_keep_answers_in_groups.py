"""Keep up to 64 answers of an entry in one row, in place of a row for each answer.

The existing answers stay in the table ``answers``, which takes no further rows.  The key of a new
answer comes to ``newest_answers`` by a statement of the server, and no more by a trigger.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NEWEST = (
    "COALESCE((SELECT MAX(last_query_id) FROM answer_groups "
    "WHERE release_number = NEW.release_number), "
    "(SELECT MAX(query_id) FROM answers WHERE release_number = NEW.release_number), 0)"
)


def upgrade() -> None:
    """Create the table, and let the table of single answers refuse rows."""
    op.create_table(
        "answer_groups",
        sa.Column("release_number", sa.SmallInteger, nullable=False),
        sa.Column("last_query_id", sa.BigInteger, nullable=False),
        sa.Column("first_query_id", sa.BigInteger, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release_number", "last_query_id", name="answer_groups_key"),
        sa.ForeignKeyConstraint(
            ["release_number", "sequence"],
            ["entries.release_number", "entries.sequence"],
            name="answer_groups_have_an_entry",
        ),
        sa.CheckConstraint(
            "last_query_id - first_query_id BETWEEN 0 AND 63",
            name="answer_groups_have_1_to_64_answers",
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        _protect_in_postgresql()
    else:
        _protect_in_sqlite()


def _protect_in_sqlite() -> None:
    for trigger in ("follow_without_gaps", "are_qualified", "are_newest"):
        op.execute(f"DROP TRIGGER answers_{trigger}")
    op.execute(
        "CREATE TRIGGER answers_refuse_insert BEFORE INSERT ON answers "
        "BEGIN SELECT RAISE(ABORT, 'answers: rows are never added'); END"
    )
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER answer_groups_refuse_{verb.lower()} BEFORE {verb} ON answer_groups "
            "BEGIN SELECT RAISE(ABORT, 'answer_groups: rows are never changed'); END"
        )
    op.execute(
        "CREATE TRIGGER answer_groups_follow_without_gaps BEFORE INSERT ON answer_groups "
        f"WHEN NEW.first_query_id <> 1 + {NEWEST} "
        "BEGIN SELECT RAISE(ABORT, 'answer_groups: numbers follow without gaps'); END"
    )
    # INSERT OR REPLACE with the rowid of another row deletes that row without firing a trigger.
    op.execute(
        "CREATE TRIGGER answer_groups_refuse_replacement BEFORE INSERT ON answer_groups "
        "WHEN EXISTS (SELECT 1 FROM answer_groups WHERE rowid = NEW.rowid) "
        "BEGIN SELECT RAISE(ABORT, 'answer_groups: rows are never replaced'); END"
    )


def _protect_in_postgresql() -> None:
    for trigger in ("follow_without_gaps", "are_newest"):
        op.execute(f"DROP TRIGGER answers_{trigger} ON answers")
        op.execute(f"DROP FUNCTION conclave_answers_{trigger}()")
    op.execute("DROP TRIGGER answers_refuse_change ON answers")
    op.execute(
        "CREATE TRIGGER answers_refuse_change BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE "
        "ON answers FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
    )
    # Digests are like random bytes, which nothing compresses.
    op.execute("ALTER TABLE answer_groups ALTER COLUMN body SET STORAGE EXTERNAL")
    op.execute(
        "CREATE TRIGGER answer_groups_refuse_change BEFORE UPDATE OR DELETE OR TRUNCATE "
        "ON answer_groups FOR EACH STATEMENT EXECUTE FUNCTION conclave_refuse_change()"
    )
    op.execute(
        "CREATE FUNCTION conclave_answer_groups_follow_without_gaps() RETURNS trigger "
        f"LANGUAGE plpgsql AS $$ BEGIN IF NEW.first_query_id <> 1 + {NEWEST} THEN "
        "RAISE EXCEPTION 'answer_groups: numbers follow without gaps' USING ERRCODE = '23000'; "
        "END IF; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER answer_groups_follow_without_gaps BEFORE INSERT ON answer_groups "
        "FOR EACH ROW EXECUTE FUNCTION conclave_answer_groups_follow_without_gaps()"
    )
