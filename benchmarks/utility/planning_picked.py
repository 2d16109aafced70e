"""Does plan's forecast, which goes by public numbers, pick the mechanism that answers most?

A case is a class with its k and an epsilon, at shares .1 and .9.  Each mechanism is forecast on
people made up from B's public points, at every T it takes, and the one of the largest expected
part of the best, over the made-up rules, is the pick.  All of them are measured with the votes of
a release: stable answers of a pass over the distinct test vectors, the mean of twenty orders; of a
noisy vote, how many lose one label in a hundred to the noise.  *Part* is the pick's answers over
those of the best, which was chosen afterwards.

Expected: 1/1.2 or more in all cases of cells and in nearly all of trees.  Where trees are on their
cliff, the rule that relabelled decides between mechanisms, and it is drawn from the private rows:
*likely* is the share of made-up rules under which the pick is at 1/1.2 of the best.

    python -m benchmarks.utility.planning_picked [--quick]
"""

from __future__ import annotations

import argparse
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
    from collections.abc import Iterator

    from app.planning.trial.forecast import Weighed
    from app.privacy.budget.composition import Charge
    from benchmarks.utility.planning_measured import Votes
    from benchmarks.utility.planning_tasks import Case

EPSILONS: Final = ("1", "2")
ENOUGH: Final = 1 / 1.2
SEED: Final = 91
SIZES: Final = ("k = 400", "k = 1600")
NOISY: Final = "noisy-vote"


def main() -> None:
    """Print a line for each case, and how many picks are good enough."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one epsilon, trees of two sizes")
    quick = parser.parse_args().quick
    print(circumstances())
    print(
        f"{'case':<44}{'pick':<18}{'answers':>9}  {'best':<18}{'answers':>9}{'part':>7}"
        f"{'likely':>8}"
    )
    parts: dict[str, list[float]] = {}
    for task in tasks()[:2]:
        measured = Measured(task)
        for case in cases(task, quick=False):
            if quick and "trees" in case.name and not case.name.endswith(SIZES):
                continue
            for epsilon in EPSILONS[: 1 if quick else None]:
                part = _printed(measured, case, epsilon)
                if part is not None:
                    parts.setdefault(case.name.split(" ", maxsplit=1)[0], []).append(part)
    for kind, found in parts.items():
        enough = sum(part >= ENOUGH for part in found)
        print(f"{kind}: {enough} of {len(found)} at 1/1.2 or more; least {min(found):.3f}")


def _printed(measured: Measured, case: Case, epsilon: str) -> float | None:
    """Compare one case, print it, and return the pick's part of the best; None if none answers."""
    settings = measured.settings(case, epsilon, cutoff=20)
    size, limit = int(settings.answers.ensemble), len(measured.vectors)
    agreement = tried(settings, measured.rows.count, measured.points)
    if agreement is None:
        return None
    charge = configure(settings).charges[Mechanism.ANSWERS]
    votes = measured.votes(settings, SEED)
    forecasts, given = {}, {}
    for name, calibration in _all(charge, limit):
        forecasts[name] = forecast_answers(calibration, agreement, ensemble_size=size, limit=limit)
        given[name] = _measured(calibration, votes, limit)
    parts = dict(zip(forecasts, parts_of_best([*forecasts.values()]), strict=True))
    pick, best = max(parts, key=parts.__getitem__), max(given, key=given.__getitem__)
    labels = np.stack([each.labels for each in forecasts.values()])
    likely = float((forecasts[pick].labels >= ENOUGH * labels.max(axis=0)).mean())
    if given[best] < 1:
        return None
    part = given[pick] / given[best]
    where = f"{case.task.data}, {case.name}, epsilon {epsilon}"
    print(
        f"{where:<44}{pick:<18}{given[pick]:>9,.0f}  {best:<18}{given[best]:>9,.0f}{part:>7.3f}"
        f"{likely:>8.2f}",
        flush=True,
    )
    return part


def _all(charge: Charge, limit: int) -> Iterator[tuple[str, Weighed]]:
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


def _measured(calibration: Weighed, votes: Votes, limit: int) -> float:
    """Return the stable answers of a release by one mechanism."""
    if isinstance(calibration, vote_table.QuickVoteTable):
        leads = np.asarray(2.0 * votes.distances[np.newaxis] + 1.0, dtype=np.float64)
        weights = np.full_like(leads, 1 / limit)
        return float(outlasting_noise(calibration, leads, weights, limit=limit)[0])
    labels = measure(calibration, votes.distances, seed=SEED)["labels"]  # type: ignore[arg-type]  # a test of stability
    return float(labels)  # type: ignore[arg-type]  # a number


if __name__ == "__main__":
    main()
