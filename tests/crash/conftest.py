"""Releases to be killed: the ones of the end-to-end tests; and a server of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builders.ledger.postgresql_server import PostgresqlServer, postgresql_server
from tests.http.end_to_end.conftest import opened, opened_releases

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["opened", "opened_releases"]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    """Yield a PostgreSQL server that waits for the disk, or skip where there is none."""
    with postgresql_server(durable=True) as server:
        yield server
