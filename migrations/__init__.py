"""The Alembic revisions that create and change a ledger's tables; see ``docs/ledger-format.md``."""
