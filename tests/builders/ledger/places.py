"""Empty places for ledgers of either kind, and moves between them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from app.errors import ConfigurationError, InvariantError
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.move_database import Moved, MoveStep, move
from app.noise.system import SystemNoise
from tests.builders.ledger.databases import POSTGRESQL, SQLITE
from tests.builders.ledger.releases import answer, middle_of_life, record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.builders.ledger.postgresql_server import PostgresqlServer

# What is the same code in both kinds is run in files by the long audits alone.
EITHER = pytest.mark.parametrize("kind", [POSTGRESQL, pytest.param(SQLITE, marks=pytest.mark.long)])


class Places:
    """New, empty places of either kind.

    Attributes:
        folder: where the files are.

    """

    def __init__(self, folder: Path, server: PostgresqlServer) -> None:
        """Begin with none."""
        self.folder = folder
        self._server = server
        self._numbers = itertools.count(1)
        self._created: list[str] = []

    def new(self, kind: str) -> str:
        """Return the address of another one."""
        if kind == POSTGRESQL:
            self._created.append(self._server.create_database())
            return self._created[-1]
        return f"sqlite:///{self.folder / f'place-{next(self._numbers)}.db'}"

    def ledger(self, kind: str, life: Callable[[Path], Ledger] = middle_of_life) -> str:
        """Return the address of a ledger that lived; in PostgreSQL one that was moved there."""
        path = self.folder / f"life-{next(self._numbers)}.db"
        life(path).close()
        url = f"sqlite:///{path}"
        if kind == SQLITE:
            return url
        address = self.new(POSTGRESQL)
        go(url, address)
        return address

    def end(self) -> None:
        """Drop what was created in PostgreSQL, whoever has it open."""
        for address in self._created:
            self._server.drop_database(address)


class StoppedError(Exception):
    """What ends a move in the middle."""


def go(source: str, target: str, *, stop_at: MoveStep | None = None) -> Moved:
    """Move a ledger, or end before a step of that."""

    def observe(step: MoveStep) -> None:
        if step is stop_at:
            raise StoppedError

    return move(source, target, noise=SystemNoise(), observe=observe)


def opened(url: str) -> Ledger:
    """Open a ledger to be read."""
    return open_ledger(url, create=False)


def answers_afresh(url: str) -> bool:
    """Return whether a ledger takes one more answer; it is there afterwards."""
    try:
        ledger = open_ledger(url, create=True)
    except ConfigurationError:
        return False
    next_id = ledger.read_state().answered + 1
    try:
        record(ledger, [answer(ledger, next_id)])
    except InvariantError:
        return False
    return True
