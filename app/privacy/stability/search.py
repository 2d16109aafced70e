"""The search for Theorem A's table: from the first threshold, entry by entry."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from app.errors import ConfigurationError, invariant
from app.privacy.stability.curve import CurveInequality, estimated_count, point
from app.privacy.stability.inequality import WORD_RANGE, Entry, Inequality
from app.privacy.stability.profile_parameters import EPSILON_KEY

HELD_BELOW_THRESHOLD: Final = math.ceil(Fraction(WORD_RANGE, 10**12))
ENTRY_COUNT_MAX: Final = 1 << 16
NEWTON_STEPS_MAX: Final = 32


def _refuse_long_table(curve: CurveInequality, first: Entry) -> None:
    """Refuse by an estimate, before the work is done."""
    count = estimated_count(alpha=curve.alpha, ln_ratio=curve.ln_ratio, first_logit=_logit(first))
    if count > ENTRY_COUNT_MAX:
        problem = (
            f"needs a table of about {count:.0f} entries at this cutoff, above {ENTRY_COUNT_MAX}"
        )
        raise ConfigurationError(EPSILON_KEY, problem)


def find_thresholds(*, alpha: Fraction, ln_ratio: Fraction, first: int) -> tuple[int, ...]:
    """Extend a table from its first threshold until it is held constant.

    Args:
        alpha: the Renyi order.
        ln_ratio: ``ln R``.
        first: ``P_0``.

    Returns:
        ``P_0, P_1, ...``, each the smallest integer below the one before for which
        the inequality holds in both orders; the last is the first below
        ``1e-12 * 2**64``.

    Raises:
        ConfigurationError: where the table would be too long.

    """
    inequality = Inequality(alpha=alpha, ln_ratio=ln_ratio)
    curve = CurveInequality(float(alpha), float(ln_ratio))
    entries = [inequality.entry(first)]
    _refuse_long_table(curve, entries[0])
    step = 1.0
    while entries[-1].hit >= HELD_BELOW_THRESHOLD:
        invariant(len(entries) < 2 * ENTRY_COUNT_MAX, "the table ends")
        guess = curve.following_logit(_logit(entries[-1]), step=step)
        step = 1.1 * (_logit(entries[-1]) - guess)
        entries.append(_following_entry(inequality, entries[-1], guess=_nearest_integer(guess)))
    return tuple(entry.hit for entry in entries)


def _logit(entry: Entry) -> float:
    return float(entry.ln_hit - entry.ln_answer)


def _nearest_integer(logit: float) -> int:
    """Return the nearest threshold, rounding the smaller of the two probabilities."""
    nearest = point(logit)
    if nearest.hit < nearest.answer:
        return round(nearest.hit * WORD_RANGE)
    return WORD_RANGE - round(nearest.answer * WORD_RANGE)


def _following_entry(inequality: Inequality, previous: Entry, *, guess: int) -> Entry:
    """Find the smallest integer below ``previous`` that the inequality accepts.

    Both left sides are convex in ``Q`` and accepted at ``Q = P``, so the accepted
    integers are an interval that ends there: the answer is accepted, and the integer
    below it is not.  What is open shrinks with every step, and halves once Newton's
    steps have had their turn.
    """
    rejected, accepted, best = 0, previous.hit, previous
    candidate, newton_steps = guess, NEWTON_STEPS_MAX
    while accepted - rejected > 1:
        candidate = min(max(candidate, rejected + 1), accepted - 1)
        entry = inequality.entry(candidate)
        excess = inequality.excess(previous, entry)
        if excess.accepted:
            accepted, best = candidate, entry
        else:
            rejected = candidate
        if newton_steps > 0 > excess.slope:
            newton_steps -= 1
            candidate -= math.floor(excess.value / excess.slope)
        else:
            candidate = (rejected + accepted) // 2
    invariant(best is not previous, "the next threshold exists")
    return best
