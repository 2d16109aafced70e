"""Run revisions on the connection that Conclave passes, or on a database named by an operator.

Conclave migrates a database when it opens it, inside one transaction.  An operator
migrates it by ``alembic -x url=sqlite:///conclave.db upgrade head``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic import context

from app.ledger.database.database import ledger_database
from app.ledger.database.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection


def run(connection: Connection) -> None:
    """Run the revisions inside the connection's transaction."""
    context.configure(connection=connection, target_metadata=metadata)
    context.run_migrations()


def run_by_hand() -> None:
    """Open the database that ``-x url=...`` names, and run the revisions on it."""
    database = ledger_database(context.get_x_argument(as_dictionary=True).get("url", ""))
    database.create()
    engine = database.writing_engine()
    try:
        with engine.begin() as connection:
            run(connection)
    finally:
        engine.dispose()


handed_over = context.config.attributes.get("connection")
if handed_over is None:
    run_by_hand()
else:
    run(handed_over)
