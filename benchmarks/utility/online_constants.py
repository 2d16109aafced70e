"""How many votes each calibration needs, and what Theorem A's free parameters would save."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from app.privacy.sparse_vector import calibration as svt
from app.privacy.stability import hit_table as profile
from app.privacy.stability.probability_curve import curve_points, logit_of, point

if TYPE_CHECKING:
    from benchmarks.utility.results import Json

EPSILON = Fraction(9, 10)
DELTA = Fraction(1, 10**6)
CUTOFFS = (1, 2, 5, 10, 20, 50)
PROBABILITY = 1e-4
# alpha = 1 + slope ln(1/delta_svt) / epsilon; the app's slope is 1.1 and its part a tenth.
SLOPES = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4)
RELEASE_PARTS = (0.01, 0.03, 0.1, 0.3)
ENTRY_COUNT_MAX = 8000


def constants() -> list[Json]:
    """Return, a record a cutoff, the distance at which one answer in 10,000 is unstable."""
    found: list[Json] = []
    for cutoff in CUTOFFS:
        table = profile.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=cutoff)
        sparse = svt.calibrate(epsilon=EPSILON, delta=DELTA, cutoff=cutoff)
        found.append(
            {
                "cutoff": cutoff,
                "profile": table.distance_at(PROBABILITY),
                "svt": sparse.distance_at(PROBABILITY),
                "best_order": min(_distance(cutoff, slope, 0.1) for slope in SLOPES),
                "best_split": min(_distance(cutoff, 1.1, part) for part in RELEASE_PARTS),
            }
        )
    return found


def _distance(cutoff: int, slope: float, release_part: float) -> int:
    """Return the profile's distance with other free parameters of Theorem A, over the reals."""
    delta_svt = float(DELTA) * (1 - release_part)
    excess = slope * -math.log(delta_svt) / float(EPSILON)
    budget = excess * float(EPSILON) + math.log(delta_svt)
    budget += excess * math.log1p(1 / excess) + math.log1p(excess)
    answer = -math.expm1(math.log1p(-float(DELTA) * release_part) / cutoff)
    logits = curve_points(
        alpha=1 + excess,
        ln_ratio=budget / cutoff,
        first_logit=-logit_of(answer),
        count_max=ENTRY_COUNT_MAX,
    )
    return sum(point(logit).hit > PROBABILITY for logit in logits)
