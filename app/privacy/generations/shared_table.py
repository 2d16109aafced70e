"""One table of unstable answers' probabilities that keeps the budgets of several batches.

A stability table has one threshold for each distance of a query, which is the number of votes that
may change without changing the leading label. An answer is unstable if a random 64-bit integer is
below the threshold. Each budget has an inequality (``app.privacy.stability.table_inequality``),
which limits how far the thresholds of two neighbouring distances may differ.

The table of this module is for generations (batches of rows) with different budgets. Its first
threshold is the largest first threshold that any of the budgets needs. Each later threshold is the
smallest one below its predecessor that *every* budget's inequality accepts. Therefore each
generation keeps its budget (Theorem G, ``app/privacy/generations/accounts_proof.md``). The theorem
would not apply to a table that takes the larger threshold of two tables at each distance, because
two neighbouring thresholds could then come from different tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import invariant
from app.privacy.stability.hit_table import extended
from app.privacy.stability.probability_curve import CurveInequality
from app.privacy.stability.profile_parameters import first_threshold
from app.privacy.stability.table_inequality import Entry, Excess, Inequality

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.privacy.generations.accounts import ProfileAccount


class JointInequality(Inequality):
    """The inequality that a table of probabilities must meet for several budgets at once.

    For each budget it limits how far the probabilities of an unstable answer may differ between two
    neighbouring distances.
    """

    def __init__(self, accounts: Sequence[ProfileAccount]) -> None:
        """Prepare each budget's inequality; logarithms are computed by the first one."""
        invariant(len(accounts) > 0, "a joint table serves one account at least")
        self._each = [
            Inequality(alpha=account.alpha, ln_ratio=account.ln_ratio) for account in accounts
        ]

    def excess(self, previous: Entry, following: Entry) -> Excess:
        """Return the largest violation of any budget's inequality by two neighbouring thresholds.

        The result also has the derivative of this violation by the second threshold.
        """
        found = [inequality.excess(previous, following) for inequality in self._each]
        return max(found, key=lambda excess: excess.value)


def joint_thresholds(accounts: Sequence[ProfileAccount]) -> tuple[int, ...]:
    """Return the thresholds of a stability table that keeps every batch's budget.

    Args:
        accounts: the privacy accounts of all generations that may vote together. Each has the
            budget of a generation, as a cutoff, a Renyi order and the price of an unstable answer.

    """
    inequality = JointInequality(accounts)
    first = max(first_threshold(each.delta_release, each.cutoff) for each in accounts)
    strictest = min(accounts, key=lambda account: account.ln_ratio)
    curve = CurveInequality(float(strictest.alpha), float(strictest.ln_ratio))
    return extended(inequality, curve, first)
