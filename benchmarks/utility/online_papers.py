"""What the papers' own constants would need: rows for one row a chunk (NB Algorithm 3)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from app.privacy.paper.paper import paper_parameters, rows_needed
from benchmarks.utility.online_data import test_set
from benchmarks.utility.online_settings import ROW_COUNTS, TARGETS

if TYPE_CHECKING:
    from benchmarks.utility.results import Json

ALPHA = 0.1
BETA = 0.05
DELTA = Fraction(1, 10**6)
# Trees of depth 2 over the example's 36 tests, or of depth 3 over 21: log2 of their number.
DIMENSIONS = {"adult": 19, "skin": 38}


def papers() -> list[Json]:
    """Return the printed k and the rows that it needs, a record a data set and budget."""
    found: list[Json] = []
    for data, epsilon in dict.fromkeys((target.data, target.epsilon) for target in TARGETS):
        count = len(test_set(data).values)
        printed = paper_parameters(
            epsilon=Fraction(epsilon),
            delta=DELTA,
            alpha=ALPHA,
            beta=BETA,
            query_count=count,
            row_count=ROW_COUNTS[data],
            dimension=DIMENSIONS[data],
        )
        found.append(
            {
                "data": data,
                "epsilon": epsilon,
                "queries": count,
                "cutoff": printed.cutoff,
                "ensemble": printed.ensemble_size,
                "rows": rows_needed(epsilon=Fraction(epsilon), ensemble_size=printed.ensemble_size),
            }
        )
    return found
