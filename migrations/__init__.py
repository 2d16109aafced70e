"""Alembic's revisions of the ledger's tables; see ``docs/ledger-format.md``."""
