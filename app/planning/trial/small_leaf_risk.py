"""The risk that models disagree on tree leaves in which a chunk has only one or two rows.

If a leaf has r rows per chunk on average, a chunk has at least one row in it with probability
``1 - e^-r``. A model gives the leaf the right label if its chunk has a row there, and another label
if not. So models agree on a leaf with many rows per chunk, agree on a wrong label for a leaf with
almost none, and disagree in between. Queries are assumed to reach a leaf as often as rows do. A
leaf is a risk if these queries alone, with full agreement on all other queries, halve the number of
answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from app.planning.mechanisms.planning_table import planned_row
from app.planning.trial.agreement import Agreement
from app.planning.trial.forecast import expected_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.planning.trial.forecast import Forecast, Weighed

# Rows of a leaf in a chunk that are looked at, evenly in their logarithm.
LEAF_ROWS: Final = np.geomspace(1 / 32, 32, 161)
HALF: Final = 0.5
TESTS_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Cliff:
    """The risk that models disagree on small tree leaves, so that few answers are stable.

    Attributes:
        leaf_rows: the smallest and the largest number of rows per chunk of leaves that halve the
            number of answers.
        leaf_shares: the smallest and the largest fraction of people in such leaves.
        tests: the names of a few feature tests (yes-or-no questions such as age >= 40) whose rarer
            answer is true of a fraction of people between the two in ``leaf_shares``.
        labels: the number of labelled answers that the release gives if it has the worst of these
            leaves.
        hypotheses_at_risk: of the made-up labelling rules with which the release was tried, the
            fraction under which it gives fewer than half of the mean number of labelled answers.

    """

    leaf_rows: tuple[float, float]
    leaf_shares: tuple[float, float]
    tests: tuple[str, ...]
    labels: float
    hypotheses_at_risk: float


def find_cliff(
    calibration: Weighed,
    forecast: Forecast,
    *,
    ensemble_size: int,
    chunk_row_count: int,
    limit: int,
    tests: Sequence[tuple[str, float]],
) -> Cliff | None:
    """Return the risk that queries in small tree leaves are unstable; None if there is none.

    Args:
        calibration: the noise parameters for the budget of the answers.
        forecast: the forecast of the release on made-up records.
        ensemble_size: the number k of models.
        chunk_row_count: the number of rows of a chunk.
        limit: the largest number m of answers.
        tests: the names of feature tests (yes-or-no questions such as age >= 40) with the fraction
            of people with the rarer answer.

    """
    shares, labels = _over_leaves(calibration, ensemble_size, chunk_row_count, limit)
    is_bad = (labels[:-1] < HALF * labels[-1]) & (shares < HALF)
    if not is_bad.any():
        return None
    rows = LEAF_ROWS[is_bad]
    low, high = float(shares[is_bad][0]), float(shares[is_bad][-1])
    named = sorted((share, name) for name, share in tests if low <= share <= high)
    return Cliff(
        leaf_rows=(float(rows[0]), float(rows[-1])),
        leaf_shares=(low, high),
        tests=tuple(name for _, name in named[:TESTS_NAMED]),
        labels=float(labels.min()),
        hypotheses_at_risk=float((forecast.labels < HALF * forecast.mean).mean()),
    )


def labels_at_worst(
    calibration: Weighed, *, ensemble_size: int, chunk_row_count: int, limit: int
) -> float:
    """Return the number of labelled answers if queries often reach the most disputed leaf.

    This is the tree leaf on which the models agree least.

    Args:
        calibration: the noise parameters for the budget of the answers.
        ensemble_size: the number k of models.
        chunk_row_count: the number of rows of a chunk.
        limit: the largest number m of answers.

    """
    _, labels = _over_leaves(calibration, ensemble_size, chunk_row_count, limit)
    return float(labels.min())


def _over_leaves(
    calibration: Weighed, ensemble_size: int, chunk_row_count: int, limit: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the share of people in each leaf, and the labels with it; last, without any."""
    shares = np.minimum(LEAF_ROWS / chunk_row_count, HALF)
    leads = np.append(np.abs(1 - 2 * np.exp(-LEAF_ROWS)), 1.0)
    row = planned_row(calibration)
    if row.beside_leaves is not None:
        return shares, row.beside_leaves(calibration, leads, shares, ensemble_size, limit)
    # Each lead is a hypothesis of its own, on one query, among all k learners.
    found = row.forecast(
        calibration, Agreement(leads[:, np.newaxis], ensemble_size), ensemble_size, limit
    )
    cutoff = calibration.cutoff or 0
    unlimited = np.zeros(len(leads)) if found.unlimited is None else found.unlimited
    alone_rates = cutoff / (cutoff + unlimited)
    rates = np.append(shares * alone_rates[:-1] + (1 - shares) * alone_rates[-1], alone_rates[-1:])
    return shares, expected_answers(rates, cutoff=cutoff, limit=limit) * (1 - rates)
