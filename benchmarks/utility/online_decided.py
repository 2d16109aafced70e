"""How many questions do cells answer that are each decided once, at epsilon 1, and how right?

Rows are relabelled at a tenth of epsilon, on Adult at three too, and two decisions have the rest
of one account, by the table that serves a new release, or by the noisy vote's.  Every distinct test
vector is asked: a cell is decided by the first, and gives what came out to all.  *Answered* counts
vectors with a label, *unstable* is the probability that a vector's cell has none, over releases,
*right* the share of all test rows that are given their own label, of those with one.  Nothing
ends, so there is no E: what is answered once is answered for ever.

Finer partitions than benchmark B's are tried as well, and on Adult a second order of tests, with
large gains and occupations early: five orders were tried on the benchmark's own rows, by the
majority of each cell, before that one was kept.

Expected: every distinct vector of Adult at .845 and of Skin at .98.

``python -m benchmarks.utility.online`` runs it with the rest; by itself it is measured anew in the
kept results of that part.

    python -m benchmarks.utility.online_decided [--quick] [--only adult|skin]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

import numpy as np

from app.learning.ensemble import cells_of
from app.privacy.noisy_vote.cell_vote_table import calibrate_table
from app.privacy.stability.cell_table import calibrate
from app.release.terms.accounting import account
from app.release.terms.configuration import configure
from benchmarks.measuring.circumstances import circumstances
from benchmarks.utility.online_data import data_folder, loaded, test_set
from benchmarks.utility.online_settings import CELLS, PUBLIC_ROWS, cell_changes, settings_of
from benchmarks.utility.online_votes import Votes, draw_votes
from benchmarks.utility.page import write
from benchmarks.utility.results import as_text, path_of, read
from examples.public_cells import cells_in_order, public_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.privacy.budget.account import Account
    from benchmarks.utility.online_data import QuerySet
    from benchmarks.utility.online_settings import Setting
    from benchmarks.utility.results import Json

EPSILON: Final = "1"
RELEASES: Final = 3
FINER: Final = {"adult": (0.006, 0.005, 0.004, 0.003), "skin": (0.0015, 0.001, 0.0007, 0.0005)}
SECOND_ORDER: Final = (
    "capital_gain >= 7000",
    "capital_loss >= 1800",
    "marital_status = Married-civ-spouse",
    "education_num >= 13",
    "occupation = Exec-managerial",
    "occupation = Prof-specialty",
    "age >= 30",
    "education_num >= 10",
    "education_num >= 9",
    "hours_per_week >= 35",
    "occupation = Farming-fishing",
    "occupation = Other-service",
    "occupation = Sales",
    "occupation = Tech-support",
    "age >= 36",
    "age >= 60",
)
SECOND_SHARES: Final = (0.015, 0.006, 0.004, 0.003)
MORE_TO_RELABEL: Final = {
    "CONCLAVE_PRIVACY__SHARES__RELABEL": "0.3",
    "CONCLAVE_PRIVACY__SHARES__ANSWERS": "0.7",
}
MANY_CELLS: Final = 60
WORDS: Final = 2.0**64


def main() -> None:
    """Print a line for each partition and mechanism, and keep all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", choices=("adult", "skin"))
    parser.add_argument("--quick", action="store_true", help="one release; keeps nothing")
    arguments = parser.parse_args()
    print(circumstances())
    found = decided(1 if arguments.quick else RELEASES, only=arguments.only)
    online = read("online")
    if online is None or arguments.quick or arguments.only is not None:
        return
    path = path_of("online")
    path.write_text(as_text({**online, **found}), encoding="utf-8")
    write("online")


def decided(release_count: int, *, only: str | None = None) -> dict[str, Json]:
    """Return a record of each partition and mechanism, and where they were measured."""
    print(
        f"{'setting':<36}{'cells':>6} {'mechanism':<11}{'answered':>16}{'unstable':>10}{'right':>9}"
    )
    rows: list[Json] = []
    for data in ("adult", "skin"):
        if only in (None, data):
            for setting in _settings(data):
                rows += _measured(setting, release_count)
    return {"decided": rows, "decided_on": circumstances()}


def _settings(data: str) -> list[Setting]:
    """Return benchmark B's partitions, finer ones, and Adult's with more of epsilon to relabel."""
    found = [each for each in settings_of(data, EPSILON) if each.method == "cells"]
    first = found[0]
    for share in FINER[data]:
        changes = {**first.changes, **cell_changes(data, share)}
        found.append(replace(first, name=f"cells of {share:g}", changes=changes))
    if data == "adult":
        rows = public_rows(data_folder() / data / "test.csv", count=PUBLIC_ROWS[data])
        for share in SECOND_SHARES:
            cells = cells_in_order(rows, SECOND_ORDER, least_share=share)
            changes = {**first.changes, **cell_changes(data, share), CELLS: json.dumps(cells)}
            found.append(replace(first, name=f"second order of {share:g}", changes=changes))
    more = [
        replace(each, name=f"{each.name}, .3", changes={**each.changes, **MORE_TO_RELABEL})
        for each in found
        if data == "adult" and ("second" in each.name or each.cell_count > MANY_CELLS)
    ]
    return found + more


def _measured(setting: Setting, release_count: int) -> list[Json]:
    """Return what a partition gives by each mechanism, and print a line of each."""
    tests = test_set(setting.data)
    settings = loaded(setting.data, setting.changes)
    places = cells_of(configure(settings).hypotheses).places(tests.values)
    joint = account(settings)
    if joint is None:
        raise SystemExit(f"{setting.name} has no account of relabelling and answers")
    drawn = [draw_votes(setting, release=number) for number in range(release_count)]
    generator = np.random.default_rng(1)
    rows: list[Json] = []
    for mechanism, decide in (("profile", _by_profile), ("noisy vote", _by_noisy_vote)):
        found = [_asked(votes, decide(votes, joint), tests, places, generator) for votes in drawn]
        answered, unstable, right = (fmean(each) for each in zip(*found, strict=True))
        rows.append(
            {
                "data": setting.data,
                "setting": setting.name,
                "cell_count": setting.cell_count,
                "relabel": str(settings.privacy.shares.relabel),
                "mechanism": mechanism,
                "answered": round(answered),
                "asked": len(tests.values),
                "unstable": float(f"{unstable:.2g}"),
                "right": round(right, 4),
            }
        )
        print(
            f"{setting.data} {setting.name:<30}{setting.cell_count:>6} {mechanism:<11}"
            f"{answered:>9.0f} / {len(tests.values):<6}{unstable:>8.1e}{right:>9.4f}",
            flush=True,
        )
    return rows


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
