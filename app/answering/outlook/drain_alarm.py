"""An alarm for unexpectedly many unstable answers, which use up the budget; rarely false.

**The hypothesis.** A release may give m answers, of which T (the cutoff) may be unstable. A unit of
the cutoff is one unstable answer. In a release with scores it is one failed stability test (a noisy
test of whether enough models agree), and an answer takes up to two tests. At an average of r = T/m
units per answer, m and T are used up at the same time. The alarm tests the hypothesis that every
answer uses at most r units on average, *given all answers before it*; neither independence of the
answers nor a fixed number of looks is assumed.

**The test.** It is a test by betting. A gambler who bets a fraction ``f`` of a fortune on
instability multiplies the fortune by ``1 + f (x / r - 1)`` with every answer, where x is the number
of units of the cutoff that the answer uses. Under the hypothesis the fortune does not grow on
average, so it is a supermartingale, and the probability that it ever reaches 1/a in the release's
life is at most a (Ville's inequality). The fortune is divided beforehand among bets of several
sizes ``f``, and among several beginnings: one at the start, and others after later unstable
answers, so that a burst of unstable answers after a long quiet time is detected too. A beginning is
a stopping time, and the division of the fortune does not depend on the answers, so the sum of the
fortunes is also a supermartingale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from numpy.typing import NDArray

FALSE_ALARM_PROBABILITY: Final = 0.01
"""Of an alarm, ever, in a release whose answers keep to T/m."""

BET_COUNT: Final = 12
BET_LARGEST: Final = 0.9
BEGINNINGS_MAX: Final = 256


class DrainAlarm:
    """A sequential test of whether a release's unstable answers are too frequent (a betting test).

    Attributes:
        pace: r = T/m, the units of the cutoff T that an answer may use on average, where m is the
            number of answers that the release may give.
        raised_at: the number of the answer at which the alarm was first raised; None if it never
            was.

    """

    def __init__(self, *, cutoff: int, limit: int) -> None:
        """Watch a release of ``limit`` answers, of which ``cutoff`` may be unstable.

        Args:
            cutoff: the cutoff T, the number of unstable answers that the release may give; below
                ``limit``.
            limit: the number m of answers that the release may give.

        """
        invariant(0 < cutoff < limit, "fewer unstable answers than answers end the run")
        self.pace: Final = cutoff / limit
        self.raised_at: int | None = None
        self._answered = 0
        self._hits = 0
        # A bet of f pays best where f is about the excess of the true rate over r.
        smallest = min(self.pace, BET_LARGEST)
        self._bets = np.geomspace(smallest, BET_LARGEST, BET_COUNT)
        self._hits_between = -(-cutoff // BEGINNINGS_MAX)
        self._logs: NDArray[np.float64] = np.zeros((1, BET_COUNT))

    @property
    def fortune(self) -> float:
        """The present value of a betting fortune that began at 1.

        The fortune grows with every answer that uses units of the cutoff and shrinks with every
        other answer; the alarm is raised while the fortune is large.
        """
        numbers = np.arange(1, len(self._logs) + 1)
        weights = 1 / (numbers * (numbers + 1))
        idle = 1 / (len(self._logs) + 1)  # what awaits a later beginning
        with np.errstate(over="ignore"):
            grown = np.exp(self._logs).mean(axis=1)
        return float(weights @ grown + idle)

    @property
    def is_raised(self) -> bool:
        """Whether the alarm is raised now; it ends after a long run of stable answers."""
        return self.fortune * FALSE_ALARM_PROBABILITY >= 1

    def note_stable(self, count: int) -> None:
        """Count ``count`` further answers that used no unit of the cutoff."""
        self._answered += count
        self._logs = self._logs + count * np.log1p(-self._bets)

    def note_hit(self, units: int) -> None:
        """Count one further answer that used units of the cutoff, such as an unstable answer.

        Args:
            units: the number of these units: 1, or 2 for an answer with scores of which both
                stability tests failed.

        """
        self._answered += 1
        self._hits += 1
        self._logs = self._logs + np.log1p(self._bets * (units / self.pace - 1))
        if self.raised_at is None and self.is_raised:
            self.raised_at = self._answered
        if self._hits % self._hits_between == 0 and len(self._logs) < BEGINNINGS_MAX:
            self._logs = np.vstack([self._logs, np.zeros((1, BET_COUNT))])
