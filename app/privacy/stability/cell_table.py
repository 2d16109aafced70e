"""A stability table if each public cell is answered once, so that a record changes two answers.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold. If each public cell is answered once, every vector in it gets the
same recorded answer, so one record can change at most two answers.

A decision is the answer given for one cell. Its price ``ln R`` is its cost in the privacy proof: by
a decision with different votes on two neighbouring data sets, the moment (of order ``alpha``, the
Renyi order) of the likelihood ratio of the outputs grows at most by the factor ``R``.

Claim: of any number of adaptive decisions, let at most ``DECISIONS_MOVED`` have different votes on
neighbouring data sets. Let a mechanism make a decision at distance ``d`` "unstable" if a new
uniform 64-bit word is below ``thresholds[min(d, last)]``, ``last`` being the last index of the
table, and otherwise release the label with the most votes. It is then (epsilon, delta_svt +
delta_release)-differentially private, without a cutoff. Proof: ``app/privacy/stability/proof.md``,
*Counted decisions*.

The claim requires that each cell is decided once and its answer reused; if a cell were decided
twice, it would count as two decisions. The table is used by releases that decide each public cell
once (``answers.replayed_by``), whose first ledger entry says so (``answers.rule``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, invariant
from app.privacy.arithmetic import reading
from app.privacy.budget.account import Draw, left_for_answers, log_moment
from app.privacy.stability.hit_table import (
    ENTRY_COUNT_MAX,
    TABLES_KEPT,
    check_pairs,
    find_thresholds,
    order_of,
)
from app.privacy.stability.profile_parameters import (
    EPSILON_KEY,
    RELEASE_DELTA_PER_HIT_MIN,
    choose_ln_ratio,
    first_threshold,
    hits_hold,
    refuse_out_of_range,
    release_holds,
)
from app.privacy.stability.table_inequality import ALPHA_MAX, WORD_RANGE, Inequality

if TYPE_CHECKING:
    from collections.abc import Mapping

DECISIONS_MOVED: Final = 2
"""Decisions that a replaced record moves where each public cell is decided once: of the cell
that it leaves, and of the one that it comes to."""

DECISION_SLOPE: Final = Decimal("1.5")
DECISION_RELEASE_PART: Final = Fraction(2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTable:
    """The stability table if each public cell is answered once, with the budget that it keeps.

    Attributes:
        epsilon: the answers' share of epsilon; if there are draws, the epsilon of answers and draws
            together.
        delta: the answers' share of delta.
        decisions: the number of decisions that one record may change.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers; empty if shares of epsilon are added up.
        alpha: the order of the Renyi divergence by which the cost of the decisions is computed.
        ln_ratio: ``ln R``, the price of one decision that differs between neighbours.
        delta_release: the part of delta that covers the release of a label that differs between two
            neighbouring data sets.
        delta_svt: the part of delta that covers the decisions.
        thresholds: ``P[d]``, the number of 64-bit random words, out of ``2**64``, that make an
            answer at distance ``d`` unstable; the last one also applies to all larger distances.

    """

    epsilon: Fraction
    delta: Fraction
    decisions: int
    alpha: Fraction
    ln_ratio: Fraction
    delta_release: Fraction
    delta_svt: Fraction
    thresholds: tuple[int, ...]
    draws: tuple[Draw, ...] = ()

    @property
    def cutoff(self) -> None:
        """None, since unstable answers are not limited if each public cell is answered once."""
        return

    def hit_probability(self, distance: int) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable."""
        return self.thresholds[min(distance, len(self.thresholds) - 1)] / WORD_RANGE

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance."""
        wanted = math.floor(Fraction(probability) * WORD_RANGE)
        found = bisect_left(self.thresholds, -wanted, key=lambda threshold: -threshold)
        return min(found, len(self.thresholds) - 1)

    def to_plain(self) -> dict[str, str | list[str]]:
        """Return the table as strings and lists of strings, without loss of precision."""
        draws = {"draws": [draw.to_plain() for draw in self.draws]} if self.draws else {}
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            **draws,
            "decisions": str(self.decisions),
            "alpha": str(self.alpha),
            "ln_ratio": str(self.ln_ratio),
            "delta_release": str(self.delta_release),
            "delta_svt": str(self.delta_svt),
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, str | list[str]]) -> DecisionTable:
        """Return the table that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        with reading("table of decisions"):
            return cls(
                epsilon=Fraction(str(plain["epsilon"])),
                delta=Fraction(str(plain["delta"])),
                decisions=int(str(plain["decisions"])),
                alpha=Fraction(str(plain["alpha"])),
                ln_ratio=Fraction(str(plain["ln_ratio"])),
                delta_release=Fraction(str(plain["delta_release"])),
                delta_svt=Fraction(str(plain["delta_svt"])),
                thresholds=tuple(int(threshold) for threshold in plain["thresholds"]),
                draws=tuple(Draw.from_plain(draw) for draw in plain.get("draws", ())),
            )


def calibrate(
    *,
    epsilon: Fraction,
    delta: Fraction,
    decisions: int = DECISIONS_MOVED,
    draws: tuple[Draw, ...] = (),
) -> DecisionTable:
    """Return the stability table for a budget, given how many answers one record can change.

    Args:
        epsilon: the answers' share of epsilon, above 0; if there are draws, the epsilon of answers
            and draws together.
        delta: the answers' share of delta, in (0, 1).
        decisions: the number of answers that one record can change, at least 1.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.

    Returns:
        A table that :func:`check` accepts.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    return _calibrated(epsilon, delta, decisions, draws)


@lru_cache(maxsize=TABLES_KEPT)
def _calibrated(
    epsilon: Fraction, delta: Fraction, decisions: int, draws: tuple[Draw, ...]
) -> DecisionTable:
    """Build a table once a process: planning and opening ask for the same one."""
    refuse_out_of_range(epsilon=left_for_answers(epsilon, draws), delta=delta, cutoff=decisions)
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=decisions)
    delta_release = delta * DECISION_RELEASE_PART
    delta_svt = delta - delta_release
    alpha = order_of(
        epsilon=epsilon,
        delta_svt=delta_svt,
        cutoff=decisions,
        draws=draws,
        slope=DECISION_SLOPE,
        is_answer_priced=True,
    )
    if alpha > ALPHA_MAX:
        raise ConfigurationError(EPSILON_KEY, "is too small for a table of decisions")
    ln_ratio = choose_ln_ratio(
        alpha,
        epsilon=epsilon,
        delta_svt=delta_svt,
        cutoff=decisions,
        taken=log_moment(draws, alpha),
    )
    return DecisionTable(
        epsilon=epsilon,
        delta=delta,
        decisions=decisions,
        alpha=alpha,
        ln_ratio=ln_ratio,
        delta_release=delta_release,
        delta_svt=delta_svt,
        thresholds=find_thresholds(
            alpha=alpha,
            ln_ratio=ln_ratio,
            first=first_threshold(delta_release, decisions),
            ln_answer_ratio=ln_ratio,
        ),
        draws=draws,
    )


def check(table: DecisionTable) -> None:
    """Raise an error unless the table keeps the privacy claim.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    _check(table)


@lru_cache(maxsize=TABLES_KEPT)
def _check(table: DecisionTable) -> None:
    """Decide about every value of a table, once a process for each that holds."""
    invariant(table.decisions >= 1, "at least one decision may differ")
    invariant(table.epsilon > 0, "epsilon is above zero")
    invariant(table.delta_release > 0 < table.delta_svt, "both parts of delta are above zero")
    within = table.delta_release + table.delta_svt <= table.delta < 1
    invariant(within, "both parts stay within delta")
    each = table.delta_release / table.decisions
    invariant(each >= RELEASE_DELTA_PER_HIT_MIN, "delta_release is 2^-60 a decision at least")
    within = 0 < len(table.thresholds) <= 2 * ENTRY_COUNT_MAX
    invariant(within, "the table has entries, and not too many")
    inside = all(0 < threshold < WORD_RANGE for threshold in table.thresholds)
    invariant(inside, "thresholds lie strictly inside a word")
    first = table.thresholds[0]
    holds = release_holds(first, table.delta_release, table.decisions)
    invariant(holds, "p_0 keeps differing labels in")
    covered = hits_hold(
        epsilon=table.epsilon,
        delta_svt=table.delta_svt,
        alpha=table.alpha,
        ln_ratio=table.ln_ratio,
        cutoff=table.decisions,
        taken=log_moment(table.draws, table.alpha),
    )
    invariant(covered, "delta_svt covers the decisions that differ, and the draws of their account")
    inequality = Inequality(
        alpha=table.alpha, ln_ratio=table.ln_ratio, ln_answer_ratio=table.ln_ratio
    )
    check_pairs(inequality, table.thresholds)
