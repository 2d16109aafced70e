"""Calibration ``profile``: the table of Theorem A, on integers.

Claim: a mechanism that answers a query at distance ``d`` with "unstable" when a
fresh uniform 64-bit word is below ``thresholds[min(d, last)]``, and else with the
plurality label, and that halts at the T-th unstable answer, is (epsilon,
delta_svt + delta_release)-differentially private for any number of adaptive
queries under replacement of one record.  Proof: ``docs/proofs/stability.md``.

Parameters are fixed as rationals before the table is built, and what the claim
needs is checked on those rationals with every rounding going against us:
:func:`check` does so again whenever a release opens.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from app.accounting.profile_curve import CurveInequality, estimated_count, point
from app.accounting.profile_inequality import (
    ALPHA_MAX,
    WORD_RANGE,
    Entry,
    Excess,
    Inequality,
    precise_context,
    rounding_error,
    to_decimal,
)
from app.errors import ConfigurationError, InvariantError, invariant

if TYPE_CHECKING:
    from collections.abc import Mapping

EPSILON_KEY: Final = "privacy.epsilon"
DELTA_KEY: Final = "privacy.delta"
CUTOFF_KEY: Final = "answers.cutoff"
RELEASE_PART: Final = Fraction(1, 10)
RELEASE_DELTA_PER_HIT_MIN: Final = Fraction(1, 1 << 60)
HELD_BELOW_THRESHOLD: Final = math.ceil(Fraction(WORD_RANGE, 10**12))
ENTRY_COUNT_MAX: Final = 1 << 16
# A rational with these denominators is exactly a double and a short exact decimal,
# so that the numbers printed are the numbers that serve.
ALPHA_GRID: Final = 1 << 32
LN_RATIO_GRID: Final = 1 << 40
POWER_DIGITS: Final = 4000
SEARCH_STEPS_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTable:
    """The table that serves, with the budget it was made for.

    Attributes:
        epsilon: share of epsilon that the answers may use.
        delta: share of delta that the answers may use.
        cutoff: unstable answers T until the halt.
        alpha: the Renyi order at which the run is accounted.
        ln_ratio: ``ln R``, the price of one unstable answer.
        delta_release: part of delta for a differing query's label getting out.
        delta_svt: part of delta at which the hits are accounted.
        thresholds: ``P[d]``, hits out of ``2**64`` at distance ``d``; beyond the
            end the last one holds.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    alpha: Fraction
    ln_ratio: Fraction
    delta_release: Fraction
    delta_svt: Fraction
    thresholds: tuple[int, ...]

    def threshold(self, distance: int) -> int:
        """Return the word below which a query at this distance is a hit."""
        return self.thresholds[min(distance, len(self.thresholds) - 1)]

    def hit_probability(self, distance: int) -> float:
        """Return the probability of a hit at this distance, for people."""
        return self.threshold(distance) / WORD_RANGE

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance whose hits are at most this probable.

        Where the table is held above that probability, its last distance.
        """
        wanted = math.floor(Fraction(probability) * WORD_RANGE)
        found = bisect_left(self.thresholds, -wanted, key=lambda threshold: -threshold)
        return min(found, len(self.thresholds) - 1)

    def to_plain(self) -> dict[str, str | list[str]]:
        """Write the table in strings and lists of strings only, without loss."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "cutoff": str(self.cutoff),
            "alpha": str(self.alpha),
            "ln_ratio": str(self.ln_ratio),
            "delta_release": str(self.delta_release),
            "delta_svt": str(self.delta_svt),
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, str | list[str]]) -> ProfileTable:
        """Read what :meth:`to_plain` wrote; :func:`check` says whether it holds.

        Raises:
            InvariantError: where a key is absent or a value is not a number.

        """
        try:
            return cls(
                epsilon=Fraction(str(plain["epsilon"])),
                delta=Fraction(str(plain["delta"])),
                cutoff=int(str(plain["cutoff"])),
                alpha=Fraction(str(plain["alpha"])),
                ln_ratio=Fraction(str(plain["ln_ratio"])),
                delta_release=Fraction(str(plain["delta_release"])),
                delta_svt=Fraction(str(plain["delta_svt"])),
                thresholds=tuple(int(threshold) for threshold in plain["thresholds"]),
            )
        except (KeyError, ValueError, ZeroDivisionError) as error:
            msg = "the persisted table of thresholds is not one"
            raise InvariantError(msg) from error


def calibrate(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> ProfileTable:
    """Build the table of Theorem A for a budget.

    Args:
        epsilon: share of epsilon for the answers, above 0.
        delta: share of delta for the answers, in (0, 1).
        cutoff: unstable answers T until the halt, at least 1.

    Returns:
        A table that :func:`check` accepts.

    Raises:
        ConfigurationError: where the budget is out of range or its table too long.

    """
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    delta_release, delta_svt = split_delta(delta)
    alpha = _choose_alpha(epsilon, delta_svt)
    ln_ratio = _choose_ln_ratio(alpha, epsilon=epsilon, delta_svt=delta_svt, cutoff=cutoff)
    inequality = Inequality(alpha=alpha, ln_ratio=ln_ratio)
    first = inequality.entry(_first_threshold(delta_release, cutoff))
    curve = CurveInequality(float(alpha), float(ln_ratio))
    _refuse_long_table(curve, first)
    return ProfileTable(
        epsilon=epsilon,
        delta=delta,
        cutoff=cutoff,
        alpha=alpha,
        ln_ratio=ln_ratio,
        delta_release=delta_release,
        delta_svt=delta_svt,
        thresholds=_thresholds(inequality, curve, first),
    )


def check(table: ProfileTable) -> None:
    """Assert everything that the claim needs of a table, before it serves.

    Raises:
        InvariantError: at the first thing that does not hold.

    """
    invariant(table.cutoff >= 1, "the cutoff is at least one")
    invariant(table.epsilon > 0, "epsilon is above zero")
    invariant(
        table.delta_release + table.delta_svt <= table.delta < 1, "both parts stay within delta"
    )
    invariant(
        0 < len(table.thresholds) <= 2 * ENTRY_COUNT_MAX, "the table has entries, and not too many"
    )
    first = table.thresholds[0]
    inside = all(0 < threshold < WORD_RANGE for threshold in table.thresholds)
    invariant(inside, "thresholds lie strictly inside a word")
    invariant(
        _release_holds(first, table.delta_release, table.cutoff), "p_0 keeps differing labels in"
    )
    invariant(_hits_hold(table), "delta_svt covers the cutoff's hits")
    _check_pairs(table)


def refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """Refuse a budget for which there is no table, naming what to change.

    Raises:
        ConfigurationError: naming ``privacy.epsilon``, ``privacy.delta`` or
            ``answers.cutoff``.

    """
    if epsilon <= 0:
        raise ConfigurationError(EPSILON_KEY, "must be above 0")
    if not 0 < delta < 1:
        raise ConfigurationError(DELTA_KEY, "must lie between 0 and 1, both excluded")
    if cutoff < 1:
        raise ConfigurationError(CUTOFF_KEY, "must be at least 1")
    if delta * RELEASE_PART / cutoff < RELEASE_DELTA_PER_HIT_MIN:
        problem = (
            "is too small for this cutoff: a tenth of it over the cutoff must be at least 2^-60"
        )
        raise ConfigurationError(DELTA_KEY, problem)
    if _alpha_excess(epsilon, delta - delta * RELEASE_PART) > ALPHA_MAX - 1:
        raise ConfigurationError(EPSILON_KEY, "is too small for calibration profile")


def split_delta(delta: Fraction) -> tuple[Fraction, Fraction]:
    """Split delta into ``(delta_release, delta_svt)``, a tenth and nine tenths."""
    return delta * RELEASE_PART, delta * (1 - RELEASE_PART)


def _alpha_excess(epsilon: Fraction, delta_svt: Fraction) -> Fraction:
    """Return alpha - 1 before it is put on its grid: 1.1 ln(1/delta_svt) / epsilon."""
    with localcontext(precise_context()):
        return Fraction(Decimal("1.1") * -to_decimal(delta_svt).ln() / to_decimal(epsilon))


def _choose_alpha(epsilon: Fraction, delta_svt: Fraction) -> Fraction:
    """Put alpha on its grid; any value above 1 is valid, this one is near the best."""
    steps = round(_alpha_excess(epsilon, delta_svt) * ALPHA_GRID)
    return 1 + Fraction(max(steps, 1), ALPHA_GRID)


def _choose_ln_ratio(
    alpha: Fraction, *, epsilon: Fraction, delta_svt: Fraction, cutoff: int
) -> Fraction:
    """Return the largest ``ln R`` on its grid at which the hits cost delta_svt."""
    with localcontext(precise_context()):
        budget = to_decimal(delta_svt).ln() - _ln_delta_at(alpha, epsilon=epsilon, renyi=Decimal(0))
        steps = math.floor(Fraction(budget) / cutoff * LN_RATIO_GRID)
    if steps < 1:
        raise ConfigurationError(CUTOFF_KEY, "is too large for this epsilon and delta")
    return Fraction(steps, LN_RATIO_GRID)


def _ln_delta_at(alpha: Fraction, *, epsilon: Fraction, renyi: Decimal) -> Decimal:
    """Logarithm of the delta of a Renyi divergence, in the current decimal context.

    Canonne, Kamath, Steinke (2020), Proposition 12:
    ``exp((alpha-1)(tau-epsilon)) (1-1/alpha)^(alpha-1) / alpha``, where ``renyi`` is
    ``(alpha-1) tau``, here ``T ln R``.
    """
    order = to_decimal(alpha)
    excess = to_decimal(alpha - 1)
    return renyi - excess * to_decimal(epsilon) + excess * (excess / order).ln() - order.ln()


def _hits_hold(table: ProfileTable) -> bool:
    """Whether delta_svt covers the run, every rounding going against us."""
    with localcontext(precise_context()):
        renyi = to_decimal(table.ln_ratio * table.cutoff)
        ln_delta = _ln_delta_at(table.alpha, epsilon=table.epsilon, renyi=renyi)
        limit = to_decimal(table.delta_svt).ln()
        magnitude = renyi + to_decimal(table.alpha * (table.epsilon + table.alpha)) - limit
        return ln_delta + rounding_error(magnitude) <= limit


def _release_holds(first: int, delta_release: Fraction, cutoff: int) -> bool:
    """Whether ``1 - (first / 2^64)^cutoff <= delta_release``.

    The power is exact while it fits :data:`POWER_DIGITS`, and rounded down beyond.
    """
    with localcontext(Context(prec=POWER_DIGITS, rounding=ROUND_FLOOR)):
        power, square, rest = Decimal(1), Decimal(first) / WORD_RANGE, cutoff
        while rest:
            power = power * square if rest & 1 else power
            square, rest = square * square, rest >> 1
    return Fraction(power) >= 1 - delta_release


def _first_threshold(delta_release: Fraction, cutoff: int) -> int:
    """Return ``P_0 = ceil((1 - delta_release)^(1/T) 2^64)``."""
    with localcontext(precise_context()):
        root = (to_decimal(1 - delta_release).ln() / cutoff).exp()
        first = math.ceil(root * WORD_RANGE)
    while not _release_holds(first, delta_release, cutoff):
        first += 1
    while _release_holds(first - 1, delta_release, cutoff):
        first -= 1
    return first


def _refuse_long_table(curve: CurveInequality, first: Entry) -> None:
    count = estimated_count(alpha=curve.alpha, ln_ratio=curve.ln_ratio, first_logit=_logit(first))
    if count > ENTRY_COUNT_MAX:
        problem = (
            f"needs a table of about {count:.0f} entries at this cutoff, above {ENTRY_COUNT_MAX}"
        )
        raise ConfigurationError(EPSILON_KEY, problem)


def _thresholds(inequality: Inequality, curve: CurveInequality, first: Entry) -> tuple[int, ...]:
    """Extend the table until it is held constant."""
    entries = [first]
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
    below it is not.  Newton's steps stay inside what is still open.
    """
    rejected, accepted, best = 0, previous.hit, previous
    candidate = guess
    for _ in range(SEARCH_STEPS_MAX):
        candidate = min(max(candidate, rejected + 1), accepted - 1)
        entry = inequality.entry(candidate)
        excess = inequality.excess(previous, entry)
        if excess.accepted:
            accepted, best = candidate, entry
        else:
            rejected = candidate
        if accepted - rejected == 1:
            break
        candidate = _newton(candidate, excess, middle=(rejected + accepted) // 2)
    invariant(
        accepted - rejected == 1 and best is not previous, "the next threshold exists and is found"
    )
    return best


def _newton(candidate: int, excess: Excess, *, middle: int) -> int:
    """Newton's next integer, rounded up; the middle where the slope points away."""
    if excess.slope >= 0:
        return middle
    return candidate - math.floor(excess.value / excess.slope)


def _check_pairs(table: ProfileTable) -> None:
    """Check the inequality for every adjacent pair, in both orders."""
    inequality = Inequality(alpha=table.alpha, ln_ratio=table.ln_ratio)
    entries = [inequality.entry(threshold) for threshold in table.thresholds]
    for previous, following in pairwise(entries):
        invariant(following.hit <= previous.hit, "thresholds do not rise")
        invariant(inequality.excess(previous, following).accepted, "neighbours' hits stay within R")
