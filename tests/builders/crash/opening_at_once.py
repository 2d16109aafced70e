"""What one of several processes does that create the same databases at the same moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.ledger.ledger import open_ledger

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

RACES: Final = 10
RACE_SECONDS_MAX: Final = 60


def open_in_turn(folder: Path, start: Barrier, said: Queue[list[str]]) -> None:
    """Open database after database, each at the moment at which the others do."""
    secrets = []
    for race in range(RACES):
        start.wait(RACE_SECONDS_MAX)
        ledger = open_ledger(f"sqlite:///{folder / f'{race}.db'}", create=True)
        secrets.append(ledger.database_secret().hex())
        ledger.close()
    said.put(secrets)
