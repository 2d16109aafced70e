"""The stability test's table: how many 64-bit words make an answer unstable, by distance.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold.

The price ``ln R`` of an answer is its cost in the privacy proof. By the answer the moment (of order
``alpha``, the Renyi order) of the likelihood ratio of the outputs on two neighbouring data sets
grows at most by the factor ``R``.

Claim: let a mechanism make the answer to a query at distance ``d`` "unstable" if a new uniform
64-bit word is below ``thresholds[min(d, last)]``, ``last`` being the last index of the table, and
otherwise release the label with the most votes; let it stop at unstable answer T. It is (epsilon,
delta_svt + delta_release)-differentially private for any number of adaptive queries under
replacement of one record. Proof (Theorem A): ``app/privacy/stability/proof.md``.

The table's parameters are rationals, fixed before the table is built. Whenever a release opens,
:func:`check` decides from them every condition of the claim, with every rounding on the safe side.
The table is then built from the first threshold on, entry by entry.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError, InvariantError, invariant
from app.privacy.budget.account import Draw, left_for_answers, log_moment
from app.privacy.stability.probability_curve import (
    CurveInequality,
    CurvePoint,
    curve_points,
    estimated_count,
    logit_of,
    point,
)
from app.privacy.stability.profile_parameters import (
    ALPHA_GRID,
    ALPHA_SLOPE,
    EPSILON_KEY,
    RELEASE_DELTA_PER_HIT_MIN,
    RELEASE_PART,
    choose_alpha,
    choose_ln_ratio,
    first_threshold,
    hits_hold,
    refuse_out_of_range,
    release_holds,
    split_delta,
    split_for,
)
from app.privacy.stability.table_inequality import (
    ALPHA_MAX,
    MARGIN,
    WORD_RANGE,
    Entry,
    Inequality,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

HELD_BELOW_THRESHOLD: Final = math.ceil(Fraction(WORD_RANGE, 10**12))
ENTRY_COUNT_MAX: Final = 1 << 16
NEWTON_STEPS_MAX: Final = 32
# With draws: orders looked at, from the least of these slopes at the whole epsilon to more than
# the order that would serve at the answers' own.
ORDERS_TRIED: Final = 24
LEAST_SLOPE: Final = 0.9
HIGHEST_SLOPE: Final = 1.1
WANTED_HIT: Final = 0.01


def _refuse_long_table(curve: CurveInequality, first: Entry) -> None:
    """Refuse by an estimate, before the work is done."""
    count = estimated_count(curve, first_logit=_logit(first))
    if count > ENTRY_COUNT_MAX:
        problem = (
            f"needs a table of about {count:.0f} entries at this cutoff, above {ENTRY_COUNT_MAX}"
        )
        raise ConfigurationError(EPSILON_KEY, problem)


def find_thresholds(
    *, alpha: Fraction, ln_ratio: Fraction, first: int, ln_answer_ratio: Fraction = Fraction(0)
) -> tuple[int, ...]:
    """Return a stability table, built from its first threshold.

    Args:
        alpha: the Renyi order.
        ln_ratio: ``ln R``, the price of an unstable answer.
        first: ``P_0``, the first threshold.
        ln_answer_ratio: the price of a stable answer; equal to ``ln_ratio`` in a table for releases
            that answer each cell once.

    Returns:
        Thresholds ``P_0, P_1, ...``, each the smallest integer below its predecessor for which the
        inequality of Theorem A (``table_inequality.py``) holds whichever of two neighbouring
        thresholds is put first. The last threshold is the first below ``1e-12 * 2**64``.

    Raises:
        ConfigurationError: the table would be too long.

    """
    inequality = Inequality(alpha=alpha, ln_ratio=ln_ratio, ln_answer_ratio=ln_answer_ratio)
    curve = CurveInequality(float(alpha), float(ln_ratio), float(ln_answer_ratio))
    _refuse_long_table(curve, inequality.entry(first))
    return extended(inequality, curve, first)


def extended(inequality: Inequality, curve: CurveInequality, first: int) -> tuple[int, ...]:
    """Return a table in which each threshold is the smallest that the inequality accepts.

    Args:
        inequality: the inequality between two neighbouring thresholds, decided exactly.
        curve: the same inequality in floating point, for a first guess.
        first: ``P_0``, the first threshold.

    """
    entries, step = [inequality.entry(first)], 1.0
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
    below it is not.  A convex function lies above its tangents, so that no integer
    below a tangent's zero is accepted either.  What is open shrinks with every step,
    and halves once Newton's steps have had their turn.
    """
    rejected, accepted, best = 0, previous.hit, previous
    candidate, newton_steps = guess, NEWTON_STEPS_MAX
    while accepted - rejected > 1:
        candidate = min(max(candidate, rejected + 1), accepted - 1)
        entry = inequality.entry_near(candidate, previous)
        excess = inequality.excess(previous, entry)
        if excess.accepted:
            accepted, best = candidate, entry
        else:
            rejected = candidate
        if newton_steps > 0 > excess.slope:
            newton_steps -= 1
            step = excess.value / excess.slope
            below = candidate - math.floor(step - MARGIN / excess.slope) - 1
            rejected = min(max(rejected, below), accepted - 1)
            candidate -= math.floor(step)
        else:
            candidate = (rejected + accepted) // 2
    invariant(best is not previous, "the next threshold exists")
    return best


TABLES_KEPT: Final = 64
"""Tables that a process remembers: by their budget, and as ones that hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileTable:
    """The stability table in use, with the budget that it keeps.

    Attributes:
        epsilon: the answers' share of epsilon; if there are draws, the epsilon of answers and draws
            together.
        delta: the answers' share of delta.
        cutoff: T, the number of unstable answers after which the models stop.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers; empty if shares of epsilon are added up.
        alpha: the order of the Renyi divergence by which the cost of the answers is computed.
        ln_ratio: ``ln R``, the price of one unstable answer.
        delta_release: the part of delta that covers the release of a label that differs between two
            neighbouring data sets.
        delta_svt: the part of delta that covers the unstable answers.
        thresholds: ``P[d]``, the number of 64-bit random words, out of ``2**64``, that make an
            answer at distance ``d`` unstable; the last one also applies to all larger distances.

    """

    epsilon: Fraction
    delta: Fraction
    cutoff: int
    alpha: Fraction
    ln_ratio: Fraction
    delta_release: Fraction
    delta_svt: Fraction
    thresholds: tuple[int, ...]
    draws: tuple[Draw, ...] = ()

    def threshold(self, distance: int) -> int:
        """Return the number of 64-bit words that make an answer unstable at a distance."""
        return self.thresholds[min(distance, len(self.thresholds) - 1)]

    def hit_probability(self, distance: int) -> float:
        """Return the probability that the answer to a query at ``distance`` is unstable."""
        return self.threshold(distance) / WORD_RANGE

    def distance_at(self, probability: float) -> int:
        """Return the smallest distance at which an answer is unstable with at most this chance.

        The distance of a query is the number of votes that may change without changing the leading
        label. The result is the smallest distance with at most ``probability``, or the table's last
        distance if all probabilities in the table are larger.
        """
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
            "cutoff": str(self.cutoff),
            "alpha": str(self.alpha),
            "ln_ratio": str(self.ln_ratio),
            "delta_release": str(self.delta_release),
            "delta_svt": str(self.delta_svt),
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, str | list[str]]) -> ProfileTable:
        """Return the table that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

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
                draws=tuple(Draw.from_plain(draw) for draw in plain.get("draws", ())),
            )
        except (KeyError, ValueError, ZeroDivisionError) as error:
            msg = "the persisted table of thresholds is not one"
            raise InvariantError(msg) from error


def calibrate(
    *,
    epsilon: Fraction,
    delta: Fraction,
    cutoff: int,
    draws: tuple[Draw, ...] = (),
    is_by_cutoff: bool = False,
    hits_max: int | None = None,
) -> ProfileTable:
    """Return the stability table for a budget.

    Args:
        epsilon: the answers' share of epsilon, above 0; if there are draws, the epsilon of answers
            and draws together.
        delta: the answers' share of delta, in (0, 1).
        cutoff: T, the number of unstable answers after which the models stop, at least 1.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.
        is_by_cutoff: whether to choose the Renyi order and the split of delta as for new releases,
            so that the table has the fewest entries at this T; it has no effect if there are draws.
        hits_max: the largest number of unstable answers for which the table's first threshold must
            be valid, if generations (batches of rows) with larger budgets use the table; None for
            ``cutoff``.

    Returns:
        A table that :func:`check` accepts.

    Raises:
        ConfigurationError: the budget is out of range, or its table would be too long.

    """
    return _calibrated(
        epsilon,
        delta,
        cutoff,
        draws,
        hits_max=max(cutoff, hits_max or cutoff),
        is_by_cutoff=is_by_cutoff and not draws,
    )


@lru_cache(maxsize=TABLES_KEPT)
def _calibrated(
    epsilon: Fraction,
    delta: Fraction,
    cutoff: int,
    draws: tuple[Draw, ...],
    *,
    hits_max: int,
    is_by_cutoff: bool,
) -> ProfileTable:
    """Build a table once a process: planning and opening ask for the same one."""
    refuse_out_of_range(epsilon=left_for_answers(epsilon, draws), delta=delta, cutoff=cutoff)
    refuse_out_of_range(epsilon=epsilon, delta=delta, cutoff=cutoff)
    part = split_for(delta, cutoff) if is_by_cutoff else RELEASE_PART
    delta_release, delta_svt = split_delta(delta, part=part)
    alpha = order_of(
        epsilon=epsilon,
        delta_svt=delta_svt,
        cutoff=cutoff,
        draws=draws,
        is_by_cutoff=is_by_cutoff,
    )
    ln_ratio = choose_ln_ratio(
        alpha,
        epsilon=epsilon,
        delta_svt=delta_svt,
        cutoff=cutoff,
        taken=log_moment(draws, alpha),
    )
    first = first_threshold(delta_release, hits_max)
    return ProfileTable(
        epsilon=epsilon,
        delta=delta,
        cutoff=cutoff,
        alpha=alpha,
        ln_ratio=ln_ratio,
        delta_release=delta_release,
        delta_svt=delta_svt,
        thresholds=find_thresholds(alpha=alpha, ln_ratio=ln_ratio, first=first),
        draws=draws,
    )


def order_of(
    *,
    epsilon: Fraction,
    delta_svt: Fraction,
    cutoff: int,
    draws: tuple[Draw, ...],
    slope: Decimal = ALPHA_SLOPE,
    is_answer_priced: bool = False,
    is_by_cutoff: bool = False,
) -> Fraction:
    """Return the Renyi order for which a table is computed; any order above 1 is valid.

    With draws, or with ``is_by_cutoff``, the result is the one of :data:`ORDERS_TRIED` orders at
    which the table needs the fewest entries until an unstable answer has probability 1/100, by an
    estimate in floating point. A draw costs more at a higher order.

    Args:
        epsilon: the epsilon of the answers; if there are draws, of answers and draws together.
        delta_svt: the part of delta that covers the unstable answers.
        cutoff: the cutoff T or, if each public cell is answered once, the number of answers that
            one record may change.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.
        slope: without draws and without ``is_by_cutoff``, alpha - 1 is this number times
            ``ln(1/delta_svt) / epsilon``; otherwise the largest order that is tried grows with it.
        is_answer_priced: whether a stable answer has the price of an unstable one.
        is_by_cutoff: whether to seek the order even if there are no draws.

    """
    if not draws and not is_by_cutoff:
        return choose_alpha(epsilon, delta_svt, slope=slope)
    own = left_for_answers(epsilon, draws)
    order, shortest = choose_alpha(own, delta_svt, slope=slope), math.inf
    highest, first_logit = order - 1, -logit_of(float(delta_svt * RELEASE_PART) / cutoff)
    lowest = LEAST_SLOPE * -math.log(delta_svt) / float(epsilon)
    ratio = HIGHEST_SLOPE * float(highest) / lowest
    for step in range(ORDERS_TRIED):
        excess = lowest * ratio ** (step / (ORDERS_TRIED - 1))
        tried = min(1 + Fraction(max(1, round(excess * ALPHA_GRID)), ALPHA_GRID), ALPHA_MAX)
        ln_ratio = _ln_ratio(
            tried, epsilon=float(epsilon), delta_svt=float(delta_svt), cutoff=cutoff, draws=draws
        )
        if ln_ratio <= 0:
            continue
        curve = CurveInequality(float(tried), ln_ratio, ln_ratio if is_answer_priced else 0.0)
        length = estimated_count(curve, first_logit=first_logit, down_to=WANTED_HIT)
        if length < shortest:
            order, shortest = tried, length
    return order


def _ln_ratio(
    alpha: Fraction, *, epsilon: float, delta_svt: float, cutoff: int, draws: tuple[Draw, ...]
) -> float:
    """Return ``ln R`` in doubles."""
    excess = float(alpha - 1)
    budget = excess * epsilon + math.log(delta_svt) + excess * math.log1p(1 / excess)
    return (budget + math.log1p(excess) - float(log_moment(draws, alpha))) / cutoff


def check(table: ProfileTable) -> None:
    """Raise an error unless the table keeps the privacy claim, before it is used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    _check(table)


@lru_cache(maxsize=TABLES_KEPT)
def _check(table: ProfileTable) -> None:
    """Decide about every value of a table, once a process for each that holds."""
    _check_shape(table)
    inequality = Inequality(alpha=table.alpha, ln_ratio=table.ln_ratio)
    first = table.thresholds[0]
    invariant(
        release_holds(first, table.delta_release, table.cutoff), "p_0 keeps differing labels in"
    )
    covered = hits_hold(
        epsilon=table.epsilon,
        delta_svt=table.delta_svt,
        alpha=table.alpha,
        ln_ratio=table.ln_ratio,
        cutoff=table.cutoff,
        taken=log_moment(table.draws, table.alpha),
    )
    invariant(covered, "delta_svt covers the cutoff's hits, and the draws of their account")
    check_pairs(inequality, table.thresholds)


def real_valued_hit_probability(
    *,
    epsilon: float,
    delta: float,
    cutoff: int,
    draws: tuple[Draw, ...] = (),
    count_max: int = ENTRY_COUNT_MAX,
    slope: float | None = float(ALPHA_SLOPE),
    release_part: float = float(RELEASE_PART),
    is_answer_priced: bool = False,
) -> tuple[CurvePoint, ...]:
    """Return the stability table's probabilities as real numbers, to compare with the integers.

    Args:
        epsilon: the answers' share of epsilon, above 0; if there are draws, the epsilon of answers
            and draws together.
        delta: the answers' share of delta, in (0, 1).
        cutoff: the cutoff T, at least 1.
        draws: the draws of a relabelling rule and of a classifier whose cost is computed jointly
            with that of the answers.
        count_max: the number of entries after which the computation is given up.
        slope: alpha - 1 is proportional to this number, where alpha is the Renyi order; None to
            seek the best order.
        release_part: the fraction of delta that covers the release of a label that differs between
            two neighbouring data sets.
        is_answer_priced: whether a stable answer has the price of an unstable one.

    """
    delta_svt = delta * (1 - release_part)
    own_slope = float(ALPHA_SLOPE) if slope is None else slope
    excess = own_slope * -math.log(delta_svt) / epsilon
    alpha = 1.0 + excess
    budget = excess * epsilon + math.log(delta_svt) + excess * math.log1p(1 / excess)
    complement = -math.expm1(math.log1p(-delta * release_part) / cutoff)
    ln_ratio = (budget + math.log(alpha)) / cutoff
    if draws or slope is None:
        whole, rest = Fraction(epsilon), Fraction(delta_svt)
        order = order_of(
            epsilon=whole,
            delta_svt=rest,
            cutoff=cutoff,
            draws=draws,
            slope=Decimal(own_slope),
            is_answer_priced=is_answer_priced,
            is_by_cutoff=slope is None,
        )
        alpha = float(order)
        ln_ratio = _ln_ratio(
            order, epsilon=epsilon, delta_svt=delta_svt, cutoff=cutoff, draws=draws
        )
    logits = curve_points(
        alpha=alpha,
        ln_ratio=ln_ratio,
        first_logit=-logit_of(complement),
        count_max=count_max,
        ln_answer_ratio=ln_ratio if is_answer_priced else 0.0,
    )
    return tuple(point(logit) for logit in logits)


def _check_shape(table: ProfileTable) -> None:
    """Check the ranges of everything in the table."""
    invariant(table.cutoff >= 1, "the cutoff is at least one")
    invariant(table.epsilon > 0, "epsilon is above zero")
    invariant(table.delta_release > 0 < table.delta_svt, "both parts of delta are above zero")
    each = table.delta_release / table.cutoff
    invariant(each >= RELEASE_DELTA_PER_HIT_MIN, "delta_release is 2^-60 a hit at least")
    within = table.delta_release + table.delta_svt <= table.delta < 1
    invariant(within, "both parts stay within delta")
    within = 0 < len(table.thresholds) <= 2 * ENTRY_COUNT_MAX
    invariant(within, "the table has entries, and not too many")
    inside = all(0 < threshold < WORD_RANGE for threshold in table.thresholds)
    invariant(inside, "thresholds lie strictly inside a word")


def check_pairs(inequality: Inequality, thresholds: tuple[int, ...]) -> None:
    """Raise an error unless all neighbouring thresholds of a table meet the inequality."""
    entries = [inequality.entry(threshold) for threshold in thresholds]
    for previous, following in pairwise(entries):
        invariant(following.hit <= previous.hit, "thresholds do not rise")
        held = inequality.excess(previous, following).accepted
        invariant(held, "neighbours' hits stay within R")
