"""How many questions do cells answer that are each decided once, at epsilon 1, and how right?

Rows are relabelled at a tenth of epsilon and two decisions have the rest of one account, by the
table that serves a new release, or by the noisy vote's.  Every distinct test vector is asked: a
cell is decided by the first, and gives what came out to all.  *Answered* counts vectors with a
label, *unstable* is the probability that a vector's cell has none, over releases, *right* the
share of all test rows that are given their own label, of those with one.  Nothing ends, so there
is no E: what is answered once is answered for ever.

Expected: every distinct vector of Adult at .845 and of Skin at .98.

    python -m benchmarks.decided_cells [--releases 3] [--only adult|skin] [--finer]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.ensemble import cells_of
from app.privacy.noisy_vote.decision_votes import calibrate_table
from app.privacy.stability.decision_table import calibrate
from app.release.terms.accounting import account
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.online_data import loaded, test_set
from benchmarks.utility.online_settings import cell_changes, settings_of
from benchmarks.utility.online_votes import Votes, draw_votes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.budget.account import Account
    from benchmarks.utility.online_data import QuerySet
    from benchmarks.utility.online_settings import Setting

EPSILON: Final = "1"
FINER: Final = {"adult": (0.006, 0.005, 0.004, 0.003), "skin": (0.0015, 0.001, 0.0007, 0.0005)}
WORDS: Final = 2.0**64


def main() -> None:
    """Print a line for each partition and mechanism."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--only", choices=("adult", "skin"))
    parser.add_argument("--finer", action="store_true", help="finer partitions than benchmark B's")
    arguments = parser.parse_args()
    print(circumstances())
    print(
        f"{'setting':<28}{'cells':>6} {'mechanism':<11}{'answered':>16}{'unstable':>10}{'right':>9}"
    )
    for data in ("adult", "skin"):
        if arguments.only in (None, data):
            listed = _finer(data) if arguments.finer else settings_of(data, EPSILON)
            for setting in listed:
                if setting.method == "cells":
                    _print(setting, arguments.releases)


def _finer(data: str) -> list[Setting]:
    """Return partitions whose cells have fewer public rows than any of benchmark B's."""
    first = next(each for each in settings_of(data, EPSILON) if each.method == "cells")
    return [
        replace(first, name=f"cells of {share:g}", changes={**first.changes, **more})
        for share in FINER[data]
        for more in (cell_changes(data, share),)
    ]


def _print(setting: Setting, release_count: int) -> None:
    tests = test_set(setting.data)
    settings = loaded(setting.data, setting.changes)
    places = cells_of(configure(settings).hypotheses).places(tests.values)
    joint = account(settings)
    if joint is None:
        raise SystemExit(f"{setting.name} has no account of relabelling and answers")
    drawn = [draw_votes(setting, release=number) for number in range(release_count)]
    generator = np.random.default_rng(1)
    for mechanism, decide in (("profile", _by_profile), ("noisy vote", _by_noisy_vote)):
        found = [_asked(votes, decide(votes, joint), tests, places, generator) for votes in drawn]
        answered, unstable, right = (fmean(each) for each in zip(*found, strict=True))
        print(
            f"{setting.data} {setting.name:<22}{setting.cell_count:>6} {mechanism:<11}"
            f"{answered:>9.0f} / {len(tests.values):<6}{unstable:>8.1e}{right:>9.4f}",
            flush=True,
        )


def _by_profile(votes: Votes, joint: Account) -> tuple[NDArray[np.float64], bool]:
    """Return the probability that a vector's cell is unstable, and that such have no label."""
    table = calibrate(epsilon=joint.epsilon, delta=votes.answers.delta, draws=joint.draws)
    hits = np.array(table.thresholds, dtype=np.float64) / WORDS
    return hits[np.minimum(votes.distance, len(hits) - 1)], False


def _by_noisy_vote(votes: Votes, joint: Account) -> tuple[NDArray[np.float64], bool]:
    """Return the probability that a cell gets the label of fewer votes, and that all have one."""
    table = calibrate_table(epsilon=joint.epsilon, delta=votes.answers.delta, draws=joint.draws)
    # Distance d and a plurality of the first label is a lead of 2 d or 2 d + 1 votes.
    leads = np.minimum(2 * votes.distance, votes.ensemble_size)
    return np.asarray(table.lost(leads.astype(np.float64), answers=1)), True


def _asked(
    votes: Votes,
    decided: tuple[NDArray[np.float64], bool],
    tests: QuerySet,
    places: NDArray[np.int32],
    generator: np.random.Generator,
) -> tuple[float, float, float]:
    """Decide every cell once, and score what its vectors are given."""
    unstable, is_other = decided
    is_lost = generator.random(int(places.max()) + 1)[places] < unstable
    counts = tests.label_counts
    label = np.where(is_lost & is_other, 1 - votes.plurality, votes.plurality)
    given = np.ones(len(label), dtype=bool) if is_other else ~is_lost
    right = counts[np.arange(len(label)), label][given].sum() / max(1, counts[given].sum())
    return float(given.sum()), float(unstable.mean()), float(right)


if __name__ == "__main__":
    main()
