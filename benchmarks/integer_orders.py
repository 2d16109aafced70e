"""What does an integer order cost in the distance at which queries are stable?

Expected: below 1 %, and a gain where T is 1, since the order served is not the best.
Prints, for each budget, the distances at which a query is a hit with probability
1e-2 and 1e-4, at the order served and at both integers around it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

from app.privacy.stability.hit_table import ProfileTable, calibrate, check, find_thresholds
from app.privacy.stability.profile_parameters import choose_ln_ratio
from benchmarks.measuring.circumstances import circumstances

DELTA: Final = Fraction(1, 10**6)
EPSILONS: Final = (Fraction(1, 2), Fraction(1), Fraction(2))
CUTOFFS: Final = (1, 5, 20)


def at_order(table: ProfileTable, order: int) -> ProfileTable:
    """Return the table of the same budget at another order, checked."""
    alpha = Fraction(order)
    ln_ratio = choose_ln_ratio(
        alpha, epsilon=table.epsilon, delta_svt=table.delta_svt, cutoff=table.cutoff
    )
    thresholds = find_thresholds(alpha=alpha, ln_ratio=ln_ratio, first=table.thresholds[0])
    found = replace(table, alpha=alpha, ln_ratio=ln_ratio, thresholds=thresholds)
    check(found)
    return found


def _describe(table: ProfileTable) -> str:
    distances = f"{table.distance_at(1e-2)} / {table.distance_at(1e-4)}"
    return f"{float(table.alpha):7.3f}: {distances:>9}"


def main() -> None:
    """Print a line for each budget."""
    print(circumstances())
    for epsilon in EPSILONS:
        for cutoff in CUTOFFS:
            served = calibrate(epsilon=epsilon, delta=DELTA, cutoff=cutoff)
            below = math.floor(served.alpha)
            tables = (served, at_order(served, below), at_order(served, below + 1))
            line = "   ".join(_describe(table) for table in tables)
            print(f"epsilon {float(epsilon):g}, T {cutoff:2}   {line}", flush=True)


if __name__ == "__main__":
    main()
