"""How long a batch waits for queries that are likely to come right now."""

from __future__ import annotations

import math
import time


class Arrivals:
    """Counts the queries that wait against those that are expected.

    Expected are as many as were answered last or waited by then: who was answered asks
    again.  Whether they come is public, and so is when: nothing here depends on a vote.
    """

    def __init__(self, count_max: int, quiet_seconds: float) -> None:
        """Expect as many as a batch may hold, as long as nobody is known to ask alone.

        Args:
            count_max: of one batch.
            quiet_seconds: without a further query, after which none is waited for.

        """
        self._count_max = count_max
        self._quiet_seconds = quiet_seconds
        self.expect(count_max)

    def expect(self, count: int) -> None:
        """Expect so many queries from now on."""
        self._expected = min(count, self._count_max)
        self._seen, self._seen_at = 0, math.inf
        self._is_quiet = False

    def are_complete(self, waiting_count: int) -> bool:
        """Return whether as many wait as are expected, or nobody has come for a while."""
        return self._is_quiet or waiting_count >= self._expected

    def note(self, waiting_count: int) -> None:
        """Take note of how many wait by now, in a turn of the loop of its own.

        What was answered before is on its way by then, and the quiet begins.
        """
        now = time.monotonic()
        if waiting_count > self._seen:
            self._seen, self._seen_at = waiting_count, now
        self._is_quiet = now - self._seen_at >= self._quiet_seconds
