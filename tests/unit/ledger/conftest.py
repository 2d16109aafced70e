"""Closes every ledger that a test opened, so that no connection outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.ledger.store import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.ledger.opening import OpenDatabase


@pytest.fixture(autouse=True)
def _ledgers_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[Ledger] = []
    initialise = Ledger.__init__

    def remember(self: Ledger, database: OpenDatabase, release: str | int = 1) -> None:
        initialise(self, database, release)
        opened.append(self)

    monkeypatch.setattr(Ledger, "__init__", remember)
    yield
    for ledger in opened:
        ledger.close()
