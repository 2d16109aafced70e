"""The forecast of a release's end, and the progress of the regular check of the ledger.

The forecast follows from the public entries of the ledger, and from the times at which this process
read them. It is computed on request, and no decision depends on it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from app.answering.outlook import drain_forecast as outlook
from app.answering.outlook.answer_rate import Pace, Sample
from app.answering.outlook.drain_alarm import FALSE_ALARM_PROBABILITY, DrainAlarm
from app.errors import UnavailableError
from app.ledger.entries.full_check import Refold
from app.privacy.budget import confidence_bounds
from app.privacy.voting.query_decision import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.answering.hourly_counts import Changes
    from app.answering.outlook.drain_forecast import Counts, Forecast
    from app.ledger.entries.fold import LedgerState
    from app.release.release import Release

READ_SECONDS: Final = 0.2
"""For which entries are folded again at one look; a long ledger takes several."""

SAMPLE_SECONDS: Final = 1.0
WINDOWS_SECONDS: Final = (10, 300)
"""Over which answers a second are given; the last one is the present rate of a forecast."""

FORECAST_ANSWERS_MIN: Final = 10
"""Answers of the last window below which there is no present rate to forecast by.

Of so few that come independently the number has a standard deviation of a third of itself.
"""

HITS_SHOWN_MAX: Final = 240


class Outlook:
    """The observed counts of answers of one release, and the forecast from them."""

    def __init__(
        self,
        release: Release,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Start to observe a release as it is opened.

        Args:
            release: the open release.
            clock: a function that returns the seconds since a fixed moment and never goes back.
            wall_clock: a function that returns the seconds since 1970.

        """
        self._release = release
        self._clock = clock
        self._began = clock()
        self._opened_at = int(wall_clock())
        self._pace = Pace(Sample(0, release.state.answered, release.state.unstable))
        self._refold = Refold()
        self._is_whole = False  # every entry that there was is folded
        self._alarm = _alarm_of(release)
        self._hits_told = 0
        self._answers_told = 0
        self._looking = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._seen: tuple[tuple[int, str], dict[str, object]] | None = None

    def start(self, changes: Changes) -> None:
        """Record the counts after every change from now on, at most once a second."""
        self._watching = asyncio.create_task(self._watch(changes))

    async def close(self) -> None:
        """Stop recording the counts of answers."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})

    async def _watch(self, changes: Changes) -> None:
        async with changes.subscribe() as each:
            async for _ in each:
                self.note()
                await asyncio.sleep(SAMPLE_SECONDS)

    def note(self, at: LedgerState | None = None) -> None:
        """Record the answer counts of this server's state, or of a newer committed state ``at``."""
        state = at or self._release.state
        newest = self._pace.newest
        if (state.answered, state.unstable) < newest[1:]:
            return
        self._pace.note(Sample(self._second, state.answered, state.unstable))

    async def document(self, at: LedgerState | None = None) -> dict[str, object]:
        """Return the body of ``GET /budget/outlook``, the forecast of the release's end.

        Args:
            at: a state of the ledger; None for the state that this server has in memory.

        Raises:
            LedgerCorruptError: the ledger's entries were altered.

        """
        async with self._looking:
            state = at or self._release.state
            moment = (self._second, state.head.hash)
            if self._seen is None or self._seen[0] != moment:
                await asyncio.to_thread(self._fold_on, state)
                self.note(state)
                phase = self._release.phase_at(state)
                self._seen = moment, self._document(moment[0], phase)
            return self._seen[1]

    @property
    def _second(self) -> int:
        return int(self._clock() - self._began)

    def _fold_on(self, state: LedgerState) -> None:
        """Fold further entries from the ledger; one that cannot be read is read another time.

        This runs in a thread of its own, where what a forecast needs is loaded too.
        """
        confidence_bounds.load()
        ends = self._clock() + READ_SECONDS
        try:
            while more := self._refold.read_page(self._release.ledger):
                if self._clock() > ends:
                    break
        except UnavailableError:
            return
        self._is_whole = self._is_whole or not more
        self._refold.compare(state)
        self._tell_alarm()

    def _tell_alarm(self) -> None:
        if self._alarm is None:
            return
        for hit in self._refold.hits[self._hits_told :]:
            self._alarm.note_stable(hit.query_id - 1 - self._answers_told)
            self._alarm.note_hit(hit.units)
            self._answers_told = hit.query_id
        self._alarm.note_stable(self._refold.state.answered - self._answers_told)
        self._hits_told = len(self._refold.hits)
        self._answers_told = self._refold.state.answered

    # -- what is shown ---------------------------------------------------------

    def _document(self, second: int, phase: Phase) -> dict[str, object]:
        points = self._pace.points
        return {
            "time": self._opened_at + second,
            "opened_at": self._opened_at,
            "pace": [self._pace_over(window, second) for window in WINDOWS_SECONDS],
            "over_time": {
                "times": [self._opened_at + point.second for point in points],
                "answered": [point.answered for point in points],
                "unstable": [point.unstable for point in points],
            },
            "chain": self._chain_view(second),
            **(self._figures(second, phase) if self._is_whole else _UNREAD),
        }

    def _pace_over(self, window: int, second: int) -> dict[str, object]:
        rate = self._pace.answers_per_second(now=second, window_seconds=window)
        return {"window_seconds": window, "answers_per_second": rate}

    def _chain_view(self, second: int) -> dict[str, object]:
        head = self._refold.state.head
        return {
            "checked_from": 1,
            "checked_to": head.sequence,
            "hash": head.hash,
            "checked_at": self._opened_at + second,
            "complete": self._is_whole,
        }

    def _figures(self, second: int, phase: Phase) -> dict[str, object]:
        counts = self._counts()
        rate = outlook.band(counts)
        return {
            "over_answers": self._hits_view(),
            "unstable_rate": rate
            and {
                "mean": rate.mean,
                "lower": rate.lower,
                "upper": rate.upper,
                "confidence": outlook.BAND_CONFIDENCE,
            },
            "forecast": self._forecast(counts, second) if self._may_end(phase) else None,
            "alarm": None if self._alarm is None else _alarm_view(self._alarm),
        }

    def _may_end(self, phase: Phase) -> bool:
        """Return whether the ensemble answers, and ends by a limit."""
        return phase is Phase.ENSEMBLE and self._release.state.generations is None

    def _counts(self) -> Counts:
        hits, mechanism = self._refold.hits, self._release.mechanism
        return outlook.Counts(
            answered=self._refold.state.answered,
            limit=mechanism.answer_limit,
            hits=len(hits),
            double_hits=sum(hit.units > 1 for hit in hits),
            cutoff=mechanism.cutoff,
            with_scores=mechanism.with_scores,
        )

    def _forecast(self, counts: Counts, second: int) -> dict[str, object]:
        window = WINDOWS_SECONDS[-1]
        rate = self._pace.answers_per_second(now=second, window_seconds=window)
        is_known = self._pace.answers_since(second - window) >= FORECAST_ANSWERS_MIN
        return _forecast_view(outlook.forecast(counts), rate if is_known else 0.0)

    def _hits_view(self) -> dict[str, object]:
        """Return at most so many points of units by answers, the first and the last among them."""
        total, points = 0, []
        for hit in self._refold.hits:
            total += hit.units
            points.append((hit.query_id, total))
        step = max(1, -(-len(points) // HITS_SHOWN_MAX))
        shown = points[::-step][::-1]
        return {
            "answers": [answers for answers, _ in shown],
            "unstable": [unstable for _, unstable in shown],
        }


_UNREAD: Final[dict[str, object]] = {
    "over_answers": None,
    "unstable_rate": None,
    "forecast": None,
    "alarm": None,
}


def _alarm_of(release: Release) -> DrainAlarm | None:
    """Return an alarm where unstable answers can run out before answers do, once for all."""
    if release.state.generations is not None:
        return None  # every generation brings unstable answers of its own
    cutoff, limit = release.mechanism.cutoff, release.mechanism.answer_limit
    if cutoff is None or cutoff >= limit:
        return None
    return DrainAlarm(cutoff=cutoff, limit=limit)


def _alarm_view(alarm: DrainAlarm) -> dict[str, object]:
    return {
        "raised": alarm.is_raised,
        "raised_at_answer": alarm.raised_at,
        "pace_allowed": alarm.pace,
        "evidence": min(alarm.fortune, 1e300),
        "evidence_needed": 1 / FALSE_ALARM_PROBABILITY,
        "false_alarm_probability": FALSE_ALARM_PROBABILITY,
    }


def _forecast_view(seen: Forecast, answers_per_second: float) -> dict[str, object]:
    def ahead(answers: float | None) -> dict[str, float] | None:
        if answers is None:
            return None
        if answers_per_second == 0:
            return {"answers": answers}
        return {"answers": answers, "seconds": answers / answers_per_second}

    return {
        "answers_per_second": answers_per_second,
        "confidence": outlook.FORECAST_CONFIDENCE,
        "first": seen.first,
        "limit": ahead(seen.by_limit),
        "cutoff": {
            "earliest": ahead(seen.earliest),
            "expected": ahead(seen.expected),
            "latest": ahead(seen.latest),
        },
    }
