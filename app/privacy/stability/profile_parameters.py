"""The parameters of Theorem A, which proves stability tables private, with their conditions.

A stability table has one threshold for each distance; the distance of a query is the number of
votes that may change without changing the leading label. An answer is unstable if a random 64-bit
integer is below the threshold.

The Renyi order ``alpha`` and ``ln R``, the price of an unstable answer, are rationals that are
fixed before any table is built. By each unstable answer the moment, of order ``alpha``, of the
likelihood ratio of the outputs on two neighbouring data sets grows at most by the factor ``R``.
Delta is split into two parts: one covers the release of labels that differ between two neighbouring
data sets, and one covers the unstable answers. Every condition of the privacy claim is decided with
every rounding on the safe side.

The argument ``taken`` is the part of the budget that is used by the random draws of a relabelling
rule and of a classifier, if these share the privacy budget of the answers.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Final

from app.errors import ConfigurationError
from app.privacy.stability.table_inequality import (
    ALPHA_MAX,
    WORD_RANGE,
    precise_context,
    rounding_error,
    to_decimal,
)

EPSILON_KEY: Final = "privacy.epsilon"
DELTA_KEY: Final = "privacy.delta"
CUTOFF_KEY: Final = "answers.cutoff"
EPSILON_MAX: Final = 1000
ALPHA_SLOPE: Final = Decimal("1.1")
RELEASE_PART: Final = Fraction(1, 10)
SMALLER_RELEASE_PART: Final = Fraction(1, 20)
RELEASE_DELTA_PER_HIT_MIN: Final = Fraction(1, 1 << 60)
# A rational with these denominators is exactly a double and a short exact decimal,
# so that the numbers printed are the numbers that serve.
ALPHA_GRID: Final = 1 << 32
LN_RATIO_GRID: Final = 1 << 40
POWER_DIGITS: Final = 4000


def refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, cutoff: int) -> None:
    """Raise an error if no stability table exists for a budget, and name the setting to change.

    Raises:
        ConfigurationError: the budget is out of range; the error names ``privacy.epsilon``,
            ``privacy.delta`` or ``answers.cutoff``.

    """
    if not 0 < epsilon <= EPSILON_MAX:
        raise ConfigurationError(EPSILON_KEY, f"must be above 0 and at most {EPSILON_MAX}")
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


def split_delta(delta: Fraction, *, part: Fraction = RELEASE_PART) -> tuple[Fraction, Fraction]:
    """Return delta in two parts: for released labels (a tenth) and for unstable answers.

    The first part covers the release of a label that differs between two neighbouring data sets.
    """
    return delta * part, delta * (1 - part)


def split_for(delta: Fraction, cutoff: int) -> Fraction:
    """Return the fraction of delta that pays for released labels: a twentieth, or a tenth.

    It is a tenth only if a twentieth of delta would be too small for this cutoff.

    Args:
        delta: the answers' share of delta.
        cutoff: the cutoff T, the number of unstable answers after which the models stop.

    """
    is_enough = delta * SMALLER_RELEASE_PART / cutoff >= RELEASE_DELTA_PER_HIT_MIN
    return SMALLER_RELEASE_PART if is_enough else RELEASE_PART


def _alpha_excess(epsilon: Fraction, delta_svt: Fraction, slope: Decimal = ALPHA_SLOPE) -> Fraction:
    """Return alpha - 1 before it is put on its grid: 1.1 ln(1/delta_svt) / epsilon."""
    with localcontext(precise_context()):
        return Fraction(slope * -to_decimal(delta_svt).ln() / to_decimal(epsilon))


def choose_alpha(
    epsilon: Fraction, delta_svt: Fraction, *, slope: Decimal = ALPHA_SLOPE
) -> Fraction:
    """Return the Renyi order ``1 + slope ln(1/delta_svt) / epsilon``; any above 1 would be valid.

    By the Renyi divergence of this order the cost of unstable answers is computed.
    """
    steps = round(_alpha_excess(epsilon, delta_svt, slope) * ALPHA_GRID)
    return 1 + Fraction(max(steps, 1), ALPHA_GRID)


def choose_ln_ratio(
    alpha: Fraction,
    *,
    epsilon: Fraction,
    delta_svt: Fraction,
    cutoff: int,
    taken: Fraction = Fraction(0),
) -> Fraction:
    """Return the largest privacy cost of an unstable answer (``ln R``) that delta allows."""
    with localcontext(precise_context()):
        budget = to_decimal(delta_svt).ln() - _ln_delta_at(alpha, epsilon=epsilon, renyi=Decimal(0))
        steps = math.floor((Fraction(budget) - taken) / cutoff * LN_RATIO_GRID)
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


def hits_hold(
    *,
    epsilon: Fraction,
    delta_svt: Fraction,
    alpha: Fraction,
    ln_ratio: Fraction,
    cutoff: int,
    taken: Fraction = Fraction(0),
) -> bool:
    """Return whether the part of delta for unstable answers, ``delta_svt``, is large enough.

    It must cover T unstable answers, T being the cutoff. Rounding never makes the result wrongly
    true.
    """
    with localcontext(precise_context()):
        renyi = to_decimal(ln_ratio * cutoff + taken)
        ln_delta = _ln_delta_at(alpha, epsilon=epsilon, renyi=renyi)
        limit = to_decimal(delta_svt).ln()
        magnitude = renyi + to_decimal(alpha * (epsilon + alpha)) - limit
        return ln_delta + rounding_error(magnitude) <= limit


def release_holds(first: int, delta_release: Fraction, cutoff: int) -> bool:
    """Return whether labels that one record can change are released rarely enough.

    A label that one vote can change is at distance 0, where an answer is unstable with probability
    ``first / 2**64``. The condition is that T such answers are all unstable with probability at
    least ``1 - delta_release``, T being the cutoff. The T-th power of this probability is exact if
    it fits :data:`POWER_DIGITS` digits, and is rounded down otherwise.
    """
    with localcontext(Context(prec=POWER_DIGITS, rounding=ROUND_FLOOR)):
        power, square, rest = Decimal(1), Decimal(first) / WORD_RANGE, cutoff
        while rest:
            power = power * square if rest & 1 else power
            square, rest = square * square, rest >> 1
    return Fraction(power) >= 1 - delta_release


def first_threshold(delta_release: Fraction, cutoff: int) -> int:
    """Return a stability table's first threshold, ``ceil((1 - delta_release)^(1/cutoff) 2^64)``."""
    with localcontext(precise_context()):
        root = (to_decimal(1 - delta_release).ln() / cutoff).exp()
        first = math.ceil(root * WORD_RANGE)
    # The root is right to forty digits beyond the word, so its ceiling is one of these.
    nearby = (first - 1, first, first + 1)
    holding = (near for near in nearby if release_holds(near, delta_release, cutoff))
    return next(holding, WORD_RANGE)
