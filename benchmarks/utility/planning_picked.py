"""Does plan's forecast, which goes by public numbers, pick the mechanism that answers most?

A case is a class with its k and an epsilon, at shares .1 and .9.  Each mechanism is forecast on
people made up from B's public points, at every T it takes, and the one of the largest expected
part of the best, over the made-up rules, is the pick.  All of them are measured with the votes of
releases: stable answers of a pass over the distinct test vectors; of a noisy vote, how many lose
one label in a hundred to the noise.  *Part* is the pick's expected answers over those of the
mechanism that expects most, which was chosen afterwards.

Expected means over the release's own randomness: the rule that relabels, the split into chunks,
the noise and the order of the queries.  One play of it is noise, by which no pick can be judged: a
play's part scatters by .16 in the case that scatters most, and there one play reads .69 and the
mean of six .83.  So a play is a release drawn anew, with twenty orders, and of ``PLAYS_MIN`` to
``PLAYS_MAX`` plays as many are made as set the mean part three standard errors apart from 1/1.2
(at a scatter of .16 and 24 plays, a tenth); a part that is not apart is printed with a question
mark and counts by its mean.  Most misses scatter by .06 at most and stay: what decides there is no
draw, but the private labels.

Expected: 1/1.2 or more in all cases of cells and in nearly all of trees.  Where trees are on their
cliff, the rule that relabels decides between mechanisms: *likely* is the share of made-up rules
under which the pick is at 1/1.2 of the best.  ``planning_turned.py`` shows for these cases that no
mechanism is at 1/1.2 for all labels that rows of the same public numbers may have.

    python -m benchmarks.utility.planning_picked [--quick] [--only TEXT]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from app.errors import ConfigurationError
from app.planning.mechanisms.planning_table import forecast_answers
from app.planning.trial.forecast import outlasting_noise, parts_of_best
from app.privacy.budget.composition import Mechanism
from app.privacy.noisy_vote import vote_table
from app.privacy.stability.certified import certified_table
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.planning_measured import Measured, calibrations, measure, tried
from benchmarks.utility.planning_tasks import CUTOFFS, cases, tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from app.planning.trial.forecast import Weighed
    from app.privacy.budget.composition import Charge
    from app.settings.settings import Settings
    from benchmarks.utility.planning_measured import Votes
    from benchmarks.utility.planning_tasks import Case

EPSILONS: Final = ("1", "2")
ENOUGH: Final = 1 / 1.2
SEED: Final = 91
PLAYS_MIN: Final = 4
PLAYS_MAX: Final = 24
ERRORS_APART: Final = 3
SIZES: Final = ("k = 400", "k = 1600")
NOISY: Final = "noisy-vote"


def main() -> None:
    """Print a line for each case, and how many picks are good enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one epsilon, trees of two sizes")
    parser.add_argument("--only", default="", help="cases whose printed name has this text")
    arguments = parser.parse_args()
    quick, only = arguments.quick, arguments.only
    print(circumstances())
    print(
        f"{'case':<46}{'pick':<18}{'answers':>9}  {'best':<18}{'answers':>9}{'part':>7}"
        f"{'error':>8}{'plays':>6}{'likely':>8}"
    )
    parts: dict[str, list[float]] = {}
    for task in tasks()[:2]:
        measured = Measured(task)
        for case in cases(task, quick=False):
            if quick and "trees" in case.name and not case.name.endswith(SIZES):
                continue
            for epsilon in EPSILONS[: 1 if quick else None]:
                if only not in _name(case, epsilon):
                    continue
                part = _printed(measured, case, epsilon)
                if part is not None:
                    parts.setdefault(case.name.split(" ", maxsplit=1)[0], []).append(part)
    for kind, found in parts.items():
        enough = sum(part >= ENOUGH for part in found)
        print(f"{kind}: {enough} of {len(found)} at 1/1.2 or more; least {min(found):.3f}")


def _name(case: Case, epsilon: str) -> str:
    return f"{case.task.data}, {case.name}, epsilon {epsilon}"


def _printed(measured: Measured, case: Case, epsilon: str) -> float | None:
    """Compare one case, print it, and return the pick's part of the best; None if none answers."""
    settings = measured.settings(case, epsilon, cutoff=20)
    size, limit = int(settings.answers.ensemble), len(measured.vectors)
    agreement = tried(settings, measured.rows.count, measured.points)
    if agreement is None:
        return None
    charge = configure(settings).charges[Mechanism.ANSWERS]
    named = dict(mechanisms(charge, limit))
    forecasts = {
        name: forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
        for name, calibration in named.items()
    }
    parts = dict(zip(forecasts, parts_of_best([*forecasts.values()]), strict=True))
    pick = max(parts, key=parts.__getitem__)
    labels = np.stack([each.labels for each in forecasts.values()])
    likely = float((forecasts[pick].labels >= ENOUGH * labels.max(axis=0)).mean())
    chosen, names, plays = [*named].index(pick), [*named], Plays(measured, settings, named)
    while plays.is_open(chosen):
        plays.play()
    given = plays.means()
    best = int(given.argmax())
    if given[best] < 1:
        return None
    part, error = plays.part(chosen)
    print(
        f"{_name(case, epsilon):<46}{pick:<18}{given[chosen]:>9,.0f}  "
        f"{names[best]:<18}{given[best]:>9,.0f}"
        f"{part:>7.3f}{error:>7.3f}{'?' if plays.is_near(chosen) else ' '}{len(plays.given):>6}"
        f"{likely:>8.2f}",
        flush=True,
    )
    return part


@dataclass
class Plays:
    """Releases of one case, each drawn anew, with the stable answers of each mechanism.

    Attributes:
        measured: the rows and queries.
        settings: of the case.
        named: the mechanisms.
        given: answers of each mechanism, a play a line.

    """

    measured: Measured
    settings: Settings
    named: Mapping[str, Weighed]
    given: list[list[float]] = field(default_factory=list)

    def play(self) -> None:
        """Draw a release and measure every mechanism with its votes."""
        seed, limit = SEED + len(self.given), len(self.measured.vectors)
        votes = self.measured.votes(self.settings, seed)
        self.given.append([_measured(each, votes, limit, seed) for each in self.named.values()])

    def means(self) -> NDArray[np.float64]:
        """Return each mechanism's mean answers."""
        means: NDArray[np.float64] = np.mean(self.given, axis=0)
        return means

    def part(self, chosen: int) -> tuple[float, float]:
        """Return a mechanism's part of the largest mean, with the standard error of the ratio."""
        return self._ratio(chosen, int(self.means().argmax()))

    def is_near(self, chosen: int) -> bool:
        """Return whether a mechanism's part is too near to 1/1.2 for so many plays.

        It is compared with the best of the others, which has an error where it is the best itself.
        """
        others = self.means()
        others[chosen] = -1.0
        ratio, error = self._ratio(chosen, int(others.argmax()))
        return error > 0 and abs(ratio - ENOUGH) < ERRORS_APART * error

    def _ratio(self, chosen: int, other: int) -> tuple[float, float]:
        """Return the ratio of two mechanisms' means, with its standard error."""
        given, means = np.array(self.given), self.means()
        if means[other] <= 0:
            return 1.0, 0.0
        ratio = float(means[chosen] / means[other])
        scatter = float((given[:, chosen] - ratio * given[:, other]).std(ddof=1))
        return ratio, scatter / float(means[other]) / math.sqrt(len(given))

    def is_open(self, chosen: int) -> bool:
        """Return whether a further play is wanted."""
        count = len(self.given)
        return count < PLAYS_MIN or (count < PLAYS_MAX and self.is_near(chosen))


def mechanisms(charge: Charge, limit: int) -> Iterator[tuple[str, Weighed]]:
    """Yield each mechanism at each T, by name."""
    epsilon, delta = charge.epsilon, charge.delta
    for cutoff in CUTOFFS:
        for name, calibration in calibrations(charge, cutoff):
            yield f"{name}, T = {cutoff}", calibration
        if cutoff <= certified_table.CERTIFIED_CUTOFF_MAX:
            made = certified_table.approximate(epsilon=epsilon, delta=delta, cutoff=cutoff)
            yield f"certified, T = {cutoff}", made
    try:
        yield NOISY, vote_table.quick(epsilon=epsilon, delta=delta, answer_limit=limit)
    except ConfigurationError:
        return


def _measured(calibration: Weighed, votes: Votes, limit: int, seed: int) -> float:
    """Return the stable answers of a release by one mechanism."""
    if isinstance(calibration, vote_table.QuickVoteTable):
        leads = np.asarray(2.0 * votes.distances[np.newaxis] + 1.0, dtype=np.float64)
        weights = np.full_like(leads, 1 / limit)
        return float(outlasting_noise(calibration, leads, weights, limit=limit)[0])
    labels = measure(calibration, votes.distances, seed=seed)["labels"]  # type: ignore[arg-type]  # a test of stability
    return float(labels)  # type: ignore[arg-type]  # a number


if __name__ == "__main__":
    main()
