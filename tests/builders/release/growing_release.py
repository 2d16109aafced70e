"""A small release that grows: its clock and its noise are the test's, its ledger is real.

It is the small release of :mod:`tests.builders.release.small_release` with ``[generations]``.
Where votes are asked for, each generation's learners give way to ``VotesByMargin``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.answering.generations.generations_answerer import LivingAnswerer
from app.ledger.entries.generations import generations_of
from app.noise.scripted import ScriptedNoise
from app.release.generations.appending import append_generation
from app.release.generations.generations_opening import open_living
from app.release.generations.tick import Ticker
from app.release.progress import no_progress
from tests.builders.release.small_release import (
    RowAnswerer,
    SmallRelease,
    VotesByMargin,
    private_rows,
    seeded_noise,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from app.ledger.ledger import Ledger
    from app.release.generations.generations_release import LivingRelease

GROWS: Final = {
    "generations__quorum": "1",
    "generations__tick": "1min",
    "privacy__shares__answers": "0.9",
    "privacy__shares__classifier": "0",
    "answers__after": "halt",
}
MINUTE: Final = 60
START: Final = 1000 * MINUTE


class GrowingAnswerer(RowAnswerer, LivingAnswerer):
    """An answerer of generations that takes queries row by row too."""


@dataclass
class GrowingRelease:
    """A folder with a release that grows, and the clock by which it does.

    Attributes:
        folder: where configuration and ledger are.
        changes: settings by ``section__key``, beside those that let it grow.
        now: seconds since 1970.
        ledger_url: where the ledger is; a file in the folder unless it is named.

    """

    folder: Path
    changes: Mapping[str, str] = field(default_factory=dict)
    now: float = START
    ledger_url: str = ""

    @property
    def small(self) -> SmallRelease:
        """The same folder and settings, for what is alike in a fixed release."""
        return SmallRelease(self.folder, {**GROWS, **self.changes}, self.ledger_url)

    def ticker(self, ledger: Ledger) -> Ticker:
        """Return what makes ticks by this clock."""
        configuration = self.small.configuration()
        return Ticker(configuration, ledger, seeded_noise(5), lambda: self.now)

    def open(self, ledger: Ledger | None = None) -> LivingRelease:
        """Open or continue the release, its first generation on the usual rows."""
        ledger = ledger or self.small.ledger()
        return open_living(
            self.small.configuration(),
            ledger=ledger,
            rows=private_rows,
            noise=seeded_noise(3),
            progress=no_progress,
            ticker=self.ticker(ledger),
        )

    def append(self, ledger: Ledger, *, seed: int = 8) -> int | None:
        """Append a generation of other rows; return its number."""
        return append_generation(
            self.small.configuration(),
            ledger=ledger,
            rows=private_rows(seed=seed),
            noise=seeded_noise(seed),
            period=self.ticker(ledger).period,
        ).number

    def pass_periods(self, answerer: LivingAnswerer, count: int = 1) -> None:
        """Let so many periods pass, with a fit and a tick in each, and votes by margin after."""
        ticker = self.ticker(answerer.release.ledger)
        for _ in range(count):
            self.now += MINUTE
            answerer.follow()
            ticker.fit_waiting()
            answerer.tick(ticker)
        vote_by_margin(answerer.living)

    def answerer(
        self, words: Iterable[int] = (), *, ledger: Ledger | None = None, generations: int = 1
    ) -> GrowingAnswerer:
        """Open the release with so many generations that vote, by margin, and scripted words."""
        release = self.open(ledger)
        vote_by_margin(release)
        answerer = GrowingAnswerer(release, ScriptedNoise(words))
        for number in range(len(generations_of(release.state.generations).all), generations):
            self.append(release.ledger, seed=10 + number)
        if generations > 1:
            self.pass_periods(answerer, 2)
        return answerer


def vote_by_margin(release: LivingRelease) -> None:
    """Let each generation's learners give way to 100 votes by margin."""
    for number, (tick, ensemble) in release.private_fitted.items():
        if not isinstance(ensemble, VotesByMargin):
            release.private_fitted[number] = tick, VotesByMargin()
