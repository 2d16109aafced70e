"""What rows and epsilon give a draw from a finite class: its excess error."""

from __future__ import annotations

import math


def excess_error(*, hypothesis_count: int, beta: float, row_count: int, epsilon: float) -> float:
    """Bound the error rate above the best of the class, of a draw from it.

    ``2 (ln|H| + ln(1/beta)) / (n epsilon)``, which a draw of the exponential
    mechanism exceeds with probability at most ``beta``.
    """
    return _errors(hypothesis_count, beta, epsilon) / row_count


def rows_for_excess_error(
    alpha: float, *, hypothesis_count: int, beta: float, epsilon: float
) -> int:
    """Return the least n for which the bound is ``alpha`` or lower."""
    return math.ceil(_errors(hypothesis_count, beta, epsilon) / alpha)


def _errors(hypothesis_count: int, beta: float, epsilon: float) -> float:
    return 2 * (math.log(hypothesis_count) - math.log(beta)) / epsilon
