"""Counts of answers over time in this server, at most one per second and limited in number.

The counts begin when this server opened the release, because the ledger's entries carry no times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.errors import invariant

POINTS_MAX: Final = 240
WINDOW_SECONDS_MAX: Final = 300


class Sample(NamedTuple):
    """The numbers of answers and of unstable answers at the end of one second."""

    second: int
    answered: int
    unstable: int


@dataclass(slots=True)
class Pace:
    """The counts of answers over time in this server, and their recent rate per second.

    Attributes:
        began: the counts when this server opened the release.
        points: counts over the whole time since then, at most ``POINTS_MAX`` of them; the more time
            passes, the further they are apart.
        step_seconds: the least time between two of these counts, in seconds.

    """

    began: Sample
    points: list[Sample] = field(init=False)
    step_seconds: int = field(default=1, init=False)
    _recent: deque[Sample] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with the first sample."""
        self.points = [self.began]
        self._recent = deque([self.began], maxlen=WINDOW_SECONDS_MAX + 1)

    @property
    def newest(self) -> Sample:
        """The newest recorded counts of answers by vote."""
        return self._recent[-1]

    def note(self, sample: Sample) -> None:
        """Record counts of answers; later counts within one second replace earlier ones."""
        newest = self.newest
        invariant(sample.second >= newest.second, "time goes on")
        if sample[1:] == newest[1:]:
            return
        if sample.second == newest.second and len(self._recent) > 1:
            self._recent.pop()
        self._recent.append(sample)
        self._keep(sample)
        while len(self.points) > POINTS_MAX:
            self._thin()

    def answers_per_second(self, *, now: int, window_seconds: int) -> float:
        """Return the mean answers per second over ``window_seconds``, or since the start.

        Args:
            now: the present second, on the clock of the recorded counts.
            window_seconds: the length of the window in seconds, at most ``WINDOW_SECONDS_MAX``.

        """
        seconds = min(window_seconds, now - self.began.second)
        return self.answers_since(now - window_seconds) / max(1, seconds)

    def answers_since(self, start: int) -> int:
        """Return the number of recorded answers after the second ``start``."""
        if start < self.began.second:
            since = self.began
        else:
            recent = list(self._recent)
            place = bisect_right(recent, start, key=lambda sample: sample.second) - 1
            since = recent[max(0, place)]
        return self.newest.answered - since.answered

    def _keep(self, sample: Sample) -> None:
        last = self.points[-1]
        is_same_step = sample.second // self.step_seconds == last.second // self.step_seconds
        if is_same_step and len(self.points) > 1:
            self.points[-1] = sample
        else:
            self.points.append(sample)

    def _thin(self) -> None:
        """Double the step; the last counts of a step stand for it, the beginning stays."""
        points, self.step_seconds = self.points, self.step_seconds * 2
        self.points = points[:1]
        for sample in points[1:]:
            self._keep(sample)
