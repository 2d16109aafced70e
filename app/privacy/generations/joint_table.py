"""One table of unstable answers' probabilities that keeps the budgets of several batches.

A table for classes of generations with different budgets begins at the largest of their first
thresholds and goes on greedily, each entry the smallest below the one before that *every*
inequality accepts.  It is sound by Theorem G, since each class's inequality holds for all its
pairs: ``app/privacy/generations/accounts_proof.md``.  The larger of two tables, entry by entry, is
not: where one table lies above another, its steps are accepted by its own inequality only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import invariant
from app.privacy.stability.hit_table import extended
from app.privacy.stability.probability_curve import CurveInequality
from app.privacy.stability.profile_parameters import first_threshold
from app.privacy.stability.threshold_inequality import Entry, Excess, Inequality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.privacy.generations.accounts import ProfileAccount


class JointInequality(Inequality):
    """The inequality that a table of probabilities must meet for several budgets at once."""

    def __init__(self, accounts: Sequence[ProfileAccount]) -> None:
        """Prepare the inequality of every batch's budget, with logarithms by the first one."""
        invariant(len(accounts) > 0, "a joint table serves one account at least")
        self._each = [
            Inequality(alpha=account.alpha, ln_ratio=account.ln_ratio) for account in accounts
        ]

    def excess(self, previous: Entry, following: Entry) -> Excess:
        """Return the largest violation of the inequality over all budgets, with its slope."""
        found = [inequality.excess(previous, following) for inequality in self._each]
        return max(found, key=lambda excess: excess.value)


def joint_thresholds(accounts: Sequence[ProfileAccount]) -> tuple[int, ...]:
    """Return the thresholds of a stability table that keeps every batch's budget.

    Args:
        accounts: of the classes of generations that may be active together; each one's cutoff,
            order and price are kept.

    """
    inequality = JointInequality(accounts)
    first = max(first_threshold(each.delta_release, each.cutoff) for each in accounts)
    strictest = min(accounts, key=lambda account: account.ln_ratio)
    curve = CurveInequality(float(strictest.alpha), float(strictest.ln_ratio))
    return extended(inequality, curve, first)
