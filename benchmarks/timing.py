"""Does the time of an answer tell more than the answer does?

Real releases are asked fresh queries, one at a time, on votes that are split, barely
clear or unanimous, in random order.  Expected: the medians of the time from `VOTE` to
the durable `COMMIT` differ by a few microseconds at most, and over HTTP by less than
50; with estimators whose own time tells their votes, by milliseconds without padding
and by as little as the others with it.  The detection limit is the smallest difference
for which such a sample's interval leaves zero out 99 times in 100.

    python benchmarks/timing.py [--queries N] [--http-queries N] [--variant-queries N]
        [--folder FOLDER]

With `--queries 100000` it takes a quarter of an hour where a commit takes 3 ms.
"""

from __future__ import annotations

import argparse
import logging
import math
import tempfile
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from app.answering.answer_query import QueryAnswerer
from app.main import open_from_settings
from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.system import SystemNoise
from app.release.terms.answer_time_padding import padding_seconds
from benchmarks.measuring.circumstances import circumstances
from benchmarks.measuring.comparisons import (
    AMONG_STABLE,
    COMPARISONS,
    LABELS_ONLY,
    Comparison,
)
from benchmarks.measuring.margins import (
    STABLE,
    Kind,
    MarginsRelease,
    find_margins,
    votes_needed,
)
from benchmarks.measuring.medians import difference_of_medians
from benchmarks.measuring.posting import time_posts
from benchmarks.measuring.stopwatch import NANO, shuffled, time_queries
from tests.builders.server.server_process import serving

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.measuring.stopwatch import Timed

DECIDED: Final = ("decided", "to COMMIT")
COMMITTED: Final = ("committed", "to the end of COMMIT")
REPLIED: Final = ("committed", "to the reply's last byte")
# A query that is split may be answered all the same, and none may meet the cutoff.
SPARE_SHARE: Final = 1.2
# Of each of three kinds, since one of those that are split is answered now and then.
EACH_SHARE: Final = 0.36
ONE_THRESHOLD_CUTOFF: Final = 40
NOISY_ANSWERS: Final = 100_000
NOISY_SIZE: Final = 300
ESTIMATOR_CUTOFF: Final = 10
NOISE_DRAWS: Final = 50_000
PADDING_MILLISECONDS: Final = 30
HEADING: Final = (
    f"{'':44}{'first':>9} {'second':>9} {'differ':>7}   {'interval':<19}   {'limit':>6}"
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration that is measured.

    Attributes:
        name: for people.
        changes: settings that beat the configuration, as `section__key`.
        cutoff: T; None leaves room for every query that is split.
        size: k; None for as many as the cutoff needs.
        kinds: that are asked.
        comparisons: of their answers.

    """

    name: str
    changes: Mapping[str, str] = field(default_factory=dict)
    cutoff: int | None = None
    size: int | None = None
    kinds: Sequence[Kind] = tuple(Kind)
    comparisons: Sequence[Comparison] = COMPARISONS

    def release(self, folder: Path, count: int) -> MarginsRelease:
        """Return its release with room for `count` unstable answers."""
        cutoff = self.cutoff or int(SPARE_SHARE * count) + 10
        return MarginsRelease(
            Path(tempfile.mkdtemp(dir=folder)),
            size=self.size or votes_needed(cutoff),
            cutoff=cutoff,
            changes={f"CONCLAVE_{name}".upper(): value for name, value in self.changes.items()},
        )


SVT: Final = {"privacy__calibration": "svt"}
SLOW: Final = {"learner__estimator": "benchmarks.measuring.slow_estimator:SlowWhereYes"}
MAIN: Final = Variant("stability test, packed trees")
VARIANTS: Final = (
    Variant("an unstable answer with a coin's label", {"answers__unstable": "coin"}),
    Variant("learners by halving", {"learner__rule": "halving"}),
    Variant("enumerated learners, of intervals", {"hypotheses__class": "intervals"}),
    Variant("sparse vector, refreshed", SVT),
    Variant(
        "sparse vector, one threshold",
        SVT,
        ONE_THRESHOLD_CUTOFF,
        kinds=STABLE,
        comparisons=AMONG_STABLE,
    ),
    Variant(
        "noisy vote",
        {"answers__mechanism": "noisy-vote", "answers__queries": str(NOISY_ANSWERS)},
        size=NOISY_SIZE,
        kinds=(Kind.SPLIT_NO, *STABLE),
        comparisons=LABELS_ONLY,
    ),
)
ESTIMATORS: Final = tuple(
    Variant(
        f"estimators that are slow where they vote yes, padding {milliseconds} ms",
        {**SLOW, "answers__reply_padding_milliseconds": str(milliseconds)},
        ESTIMATOR_CUTOFF,
        kinds=STABLE,
        comparisons=AMONG_STABLE,
    )
    for milliseconds in (0, PADDING_MILLISECONDS)
)


def main() -> None:
    """Print the difference of medians of every comparison, in process and over HTTP."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument(
        "--queries", type=int, default=1_000, help="stable, and as many unstable"
    )
    arguments.add_argument("--http-queries", type=int, default=1_000, help="the same over HTTP")
    arguments.add_argument("--variant-queries", type=int, default=300, help="in each variant")
    arguments.add_argument("--folder", type=Path, help="on the disk to measure")
    chosen = arguments.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    print(circumstances())
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        _measure(MAIN, folder, chosen.queries)
        for variant in (*VARIANTS, *ESTIMATORS):
            _measure(variant, folder, chosen.variant_queries)
        _measure_noise()
        _measure_over_http(folder, chosen.http_queries)


def _measure(variant: Variant, folder: Path, count: int) -> None:
    """Measure one configuration in this process, with `count` queries of each outcome."""
    release = variant.release(folder, count)
    settings, noise = release.write(), SystemNoise()
    opened = open_from_settings(settings, noise=noise)
    padding = padding_seconds(settings, opened.ensemble_size)
    answerer = QueryAnswerer(opened, noise, padding_seconds=padding)
    timed = time_queries(answerer, find_margins(opened), _order(variant, count))
    opened.ledger.close()
    _print(variant, release, timed, (DECIDED, COMMITTED))


def _measure_noise() -> None:
    """Measure draws of noise by what is drawn, which the answer that follows partly tells."""
    print(
        "\ndraws of noise: small ones (up to half a deviation or scale), large ones (from 1.5 on)"
    )
    print(HEADING.replace(" " * len("a draw"), "a draw", 1))
    noise = SystemNoise()
    for law, width in ((DiscreteLaplace(Fraction(20)), 20), (DiscreteGaussian(Fraction(400)), 20)):
        drawn = [_timed_draw(law, noise) for _ in range(NOISE_DRAWS)]
        small = [seconds for value, seconds in drawn if abs(value) <= width / 2]
        large = [seconds for value, seconds in drawn if abs(value) >= 1.5 * width]
        print(f"  {type(law).__name__:<42}{difference_of_medians(small, large)}")


def _timed_draw(law: DiscreteLaplace | DiscreteGaussian, noise: SystemNoise) -> tuple[int, float]:
    started = time.perf_counter_ns()
    value = law.draw(noise)
    return value, (time.perf_counter_ns() - started) * NANO


def _measure_over_http(folder: Path, count: int) -> None:
    """Measure a server process of its own, whose votes were looked at before it started."""
    release = MAIN.release(folder, count)
    opened = open_from_settings(release.write(), noise=SystemNoise())
    margins = find_margins(opened)
    opened.ledger.close()
    with serving(release.config) as process:
        timed = time_posts(process.address, margins, _order(MAIN, count))
    _print(MAIN, release, timed, (REPLIED,))


def _order(variant: Variant, count: int) -> list[Kind]:
    """Return a variant's kinds, three for `count` answers of an outcome, in random order."""
    return shuffled(variant.kinds, math.ceil(EACH_SHARE * count))


def _print(
    variant: Variant,
    release: MarginsRelease,
    timed: Sequence[Timed],
    moments: Iterable[tuple[str, str]],
) -> None:
    hits = sum(not one.stable for one in timed)
    print(f"\n{variant.name}: k = {release.size}, T = {release.cutoff}")
    print(f"{len(timed):,} queries, {hits:,} of them unstable; microseconds")
    for moment, name in moments:
        print(HEADING.replace(" " * len(name), name, 1))
        for comparison in variant.comparisons:
            print(f"  {comparison.name:<42}{comparison.difference(timed, moment)}", flush=True)


if __name__ == "__main__":
    main()
