"""How long does it take to forget a person, from the request to the tick, with 1600 learners?

Expected: a few hundred milliseconds, most of them for reading and writing the generation's slots;
of the learners one is fitted.  Fitting all 1600 anew, which comes to the same bytes, takes seconds
more.  Under a minute and 200 MB.

    python -m benchmarks.forgotten_person [--rows 128000] [--persons 32000] [--size 1600]
        [--erasures 7] [--depth 2]

A release of one generation of trees over 98 public tests, with relabelling, in SQLite.  Each time
one person is forgotten and a tick is made; then all learners are fitted on what the slots hold, and
the stored state is compared, byte for byte.  Times are of the processor, medians, and the clock's
beside them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import InvariantError
from app.ledger.entries.generations import generations_of
from app.main import open_from_settings, ticker_of
from app.noise.system import SystemNoise
from app.release.generations.fitting import fit_slots
from app.release.generations.generations_release import LivingRelease
from app.release.generations.slots import read_slots
from app.release.generations.waiting_requests import erasures_of, take_down
from app.release.progress import no_progress
from app.settings.settings import load_settings
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.findings import Finding, median_ratio, tell
from benchmarks.measuring.many_rows import write_configuration, write_rows_of_persons

if TYPE_CHECKING:
    from app.release.generations.tick import Ticker

DAY: Final = 86_400
SECONDS_MAX: Final = 1.0
GROWS: Final = """\
[generations]
[privacy.shares]
relabel = 0.1
answers = 0.9
classifier = 0
[answers]
after = "halt"
on_cutoff = "halt"
"""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What one erasure took, in seconds of the processor and of the clock.

    Attributes:
        fitted: from the request to the learners that wait for the tick.
        ticked: the tick itself.
        anew: all learners fitted on the same slots.

    """

    fitted: tuple[float, float]
    ticked: tuple[float, float]
    anew: tuple[float, float]


class Stopwatch:
    """Seconds of the processor and of the clock since it was made."""

    def __init__(self) -> None:
        """Start."""
        self._start = time.process_time(), time.monotonic()

    @property
    def seconds(self) -> tuple[float, float]:
        """Both."""
        return time.process_time() - self._start[0], time.monotonic() - self._start[1]


def main() -> None:
    """Print what erasures took, and whether the state is what a whole fit makes."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name, default in (("rows", 128_000), ("persons", 32_000), ("size", 1600)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    arguments.add_argument("--erasures", type=int, default=7)
    arguments.add_argument("--depth", type=int, default=2)
    chosen = arguments.parse_args()
    print(circumstances())
    with tempfile.TemporaryDirectory() as place:
        found = _measured(Path(place), chosen)
    fitted, ticked, anew = (
        [getattr(each, name) for each in found] for name in ("fitted", "ticked", "anew")
    )
    together = [one[1] + two[1] for one, two in zip(fitted, ticked, strict=True)]
    print(
        f"fitted after {_median(fitted)}, the tick {_median(ticked)}, all learners anew "
        f"{_median(anew)} (processor, clock); the same bytes {len(found)} times of {len(found)}"
    )
    tell(
        Finding(
            question=f"forgetting a person, k = {chosen.size}, depth {chosen.depth}: the clock",
            ours=f"{median(together):.2f} s",
            peer="",
            ratio=median(together),
            at_most=SECONDS_MAX,
        )
    )
    tell(
        Finding(
            question="the chunk alone against all learners anew: the processor",
            ours=f"{median(one for one, _ in fitted):.3f} s",
            peer=f"all {median(one for one, _ in anew):.3f} s",
            ratio=median_ratio([(one[0], two[0]) for one, two in zip(fitted, anew, strict=True)]),
        )
    )


def _median(seconds: list[tuple[float, float]]) -> str:
    processor, clock = (median(side) for side in zip(*seconds, strict=True))
    return f"{processor:.3f} s, {clock:.3f} s"


def _measured(folder: Path, chosen: argparse.Namespace) -> list[Forgotten]:
    """Open a release, and forget persons one by one."""
    rows, now = folder / "rows.csv", [20_000.0 * DAY]
    write_rows_of_persons(rows, chosen.rows, persons=chosen.persons)
    config = write_configuration(folder, rows, size=chosen.size, persons=chosen.persons)
    head, _, tail = config.read_text().partition("[answers]\n")
    head = head.replace("depth = 2", f"depth = {chosen.depth}")
    config.write_text(head + GROWS + tail)
    noise = SystemNoise()
    release = open_from_settings(
        load_settings(config, {}), noise=noise, even_if_hopeless=True, clock=lambda: now[0]
    )
    ticker = ticker_of(release, noise, lambda: now[0])
    if not isinstance(release, LivingRelease) or ticker is None:
        raise InvariantError("the release takes generations")
    found = []
    for person in np.random.default_rng(4).integers(0, chosen.persons, chosen.erasures).tolist():
        now[0] += DAY
        found.append(_forgotten(release, ticker, f"person-{person:07}"))
    return found


def _forgotten(release: LivingRelease, ticker: Ticker, person: str) -> Forgotten:
    """Forget a person, and compare the state with that of a whole fit."""
    ledger = release.ledger
    take_down(ledger, erasures_of(ledger, [person]))
    watch = Stopwatch()
    ticker.fit_waiting()
    fitted = watch.seconds
    watch = Stopwatch()
    ticker.tick(release)
    ticked = watch.seconds
    (generation,) = generations_of(release.state.generations).all
    slots = read_slots(ledger, generation)
    if slots.given_labels is None or slots.is_filled.all():
        raise InvariantError("somebody is forgotten")
    watch = Stopwatch()
    ensemble = fit_slots(
        release.configuration,
        slots,
        slots.given_labels,
        size=generation.chunks,
        progress=no_progress,
    )
    anew = watch.seconds
    if slots.ensemble != ensemble.to_bytes():
        raise InvariantError("a chunk alone comes out as among all")
    return Forgotten(fitted, ticked, anew)


if __name__ == "__main__":
    main()
