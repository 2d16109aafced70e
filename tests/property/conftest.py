"""Gives the state machines a server of PostgreSQL."""

from __future__ import annotations

from tests.unit.ledger.conftest import postgresql

__all__ = ["postgresql"]
