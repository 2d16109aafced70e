"""A history of requests by hour, shared by all servers of a ledger and kept over restarts.

Counts are public totals.  They are written once a minute, and when the server ends, in a
transaction of their own on a thread beside the event loop: no answer waits for them but by the
ledger's lock, for as long as one small commit.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from app.errors import ConclaveError
from app.ledger.database.hour_counts import HourCounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ledger.ledger import Ledger

HOUR_SECONDS: Final = 3600
WRITE_SECONDS: Final = 60.0

log = structlog.get_logger("conclave.service")


class Hourly:
    """Counts of requests in this process that are not yet written to the ledger."""

    def __init__(self, ledger: Ledger, clock: Callable[[], float] = time.time) -> None:
        """Start at nothing.

        Args:
            ledger: with the history.
            clock: seconds since 1970.

        """
        self._ledger = ledger
        self._clock = clock
        self._counts: dict[int, Counter[str]] = {}
        self._writing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def add(self, kind: str, count: int, *, unstable: int = 0) -> None:
        """Add requests of one kind, and their unstable answers, to the counts of this hour."""
        counts = self._counts.setdefault(int(self._clock()) // HOUR_SECONDS, Counter())
        counts[kind] += count
        if unstable:
            counts["unstable"] += unstable

    def start(self) -> None:
        """Start writing the counts of requests to the ledger from time to time."""
        self._writing = asyncio.get_running_loop().create_task(self._write_on())

    async def close(self) -> None:
        """Write the remaining counts of requests to the ledger, and stop."""
        if self._writing is not None:
            self._writing.cancel()
            await self.write()

    async def write(self) -> None:
        """Write the counts of requests to the ledger; counts that cannot be written are kept."""
        async with self._turn:
            taken, self._counts = self._counts, {}
            if not taken:
                return
            counts = {hour: HourCounts(**each) for hour, each in taken.items()}
            try:
                await asyncio.to_thread(self._ledger.add_hours, counts)
            except ConclaveError as error:
                # Of an altered ledger the next answer tells; a history stops no release.
                log.warning("history_postponed", error=type(error).__name__)
                for hour, each in taken.items():
                    self._counts.setdefault(hour, Counter()).update(each)

    async def document(self) -> dict[str, object]:
        """Return the body of ``GET /budget/history``; counts of other servers are a minute old.

        Raises:
            LedgerUnavailableError: the ledger cannot be read.

        """
        async with self._turn:
            hours = await asyncio.to_thread(self._ledger.hour_counts)
            for hour, mine in self._counts.items():
                before = hours.get(hour, HourCounts())
                hours[hour] = HourCounts(
                    *(count + mine[name] for name, count in before._asdict().items())
                )
        return {
            "hours": [
                {"time": hour * HOUR_SECONDS, **hours[hour]._asdict()} for hour in sorted(hours)
            ]
        }

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.write()
