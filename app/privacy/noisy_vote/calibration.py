"""The least variance of the noisy vote's Gaussian noise, for all its answers together.

In the noisy vote every answer has a label, which random noise may change: the mechanism adds noise
to each label's number of votes, and answers the label with the largest sum. A run is all m answers
together. The lead of a label is its number of votes minus that of the next label.

Claim: let each of ``m`` adaptive queries add discrete Gaussian noise of variance ``s^2`` to counts
that one record moves by a vector of squared length ``v``. The answers are (epsilon,
delta)-differentially private under replacement of one record, if one of two conditions holds. A
record moves one vote from one count to another, so ``v = 2``. (Releases of two labels that earlier
versions opened add noise to one count, so ``v = 1``.)

The first condition is by Renyi divergence: for some order ``alpha > 1`` and
``r = m v / (2 s^2)``::

    exp((alpha-1)(alpha r - epsilon)) (1 - 1/alpha)^(alpha-1) / alpha <= delta

The second condition is on normal noise: ``s^2 > 16``, there are at most 2^40 draws of noise, and
two normal distributions of variance ``s^2 - 16``, whose means have squared distance ``m v``, are
indistinguishable at a slightly smaller epsilon and delta, as
``app.privacy.noisy_gradient.calibration`` decides. The difference pays for rounding the noise to
integers. The second condition needs about a seventh less noise, except if 16 is a large part of
``s^2``.

Proof: ``app/privacy/noisy_vote/proof.md``. The smaller variance of the two conditions is used; the
stored parameters say which condition they satisfy, and :func:`check` tests this condition. The
Renyi order is searched in floating point, where an error costs at most a little noise. It is then
fixed as a rational, and the variance is rounded up and checked exactly, with every rounding on the
safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import numpy as np

from app.errors import ConfigurationError, InvariantError, invariant
from app.privacy.arithmetic import reading
from app.privacy.noisy_gradient.calibration import (
    DRAWS_MAX,
    ROUNDING_VARIANCE,
    covers,
    least_ratio,
    without_rounding,
)
from app.privacy.stability.profile_parameters import (
    ALPHA_GRID,
    DELTA_KEY,
    EPSILON_KEY,
    EPSILON_MAX,
    choose_ln_ratio,
    hits_hold,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# The variance keeps this many leading bits: less than 1e-10 above the smallest, and
# exactly a double.
VARIANCE_BITS: Final = 36
BISECTIONS: Final = 200
LN_EXCESS_BOUND: Final = 60.0


def least_variance(
    *, epsilon: Fraction, delta: Fraction, squared_shift: int
) -> tuple[Fraction, Fraction]:
    """Return the Renyi order, and the least noise variance with which a run keeps its budget.

    Args:
        epsilon: the epsilon of the run, from 1e-6 to 1000.
        delta: the delta of the run, from 1e-200 to 0.5.
        squared_shift: ``v``, the squared distance by which one record moves the counts, summed over
            all answers, at least 1.

    Returns:
        The order, and a variance that exceeds the smallest possible one by at most a billionth of
        it; :func:`variance_covers` accepts the variance.

    """
    alpha = gaussian_order(epsilon, delta)
    # Its ln R for one hit is the largest (alpha - 1) tau of any mechanism.
    divergence = choose_ln_ratio(alpha, epsilon=epsilon, delta_svt=delta, cutoff=1)
    rate = divergence / (alpha * (alpha - 1))
    return alpha, _leading_bits_above(squared_shift / (2 * rate))


def variance_covers(
    *,
    epsilon: Fraction,
    delta: Fraction,
    squared_shift: int,
    alpha: Fraction,
    variance: Fraction,
) -> bool:
    """Return whether a noise variance keeps the budget of a run, in exact arithmetic."""
    rate = squared_shift / (2 * variance)
    return hits_hold(
        epsilon=epsilon,
        delta_svt=delta,
        alpha=alpha,
        ln_ratio=(alpha - 1) * alpha * rate,
        cutoff=1,
    )


@lru_cache(maxsize=256)
def gaussian_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the Renyi order at which the least Gaussian noise keeps a budget.

    With the least noise the left side of the module's first condition has its minimum over alpha at
    this order, and the minimum is ``delta``.
    """
    ln_delta = math.log(delta)
    low, high = -LN_EXCESS_BOUND, LN_EXCESS_BOUND
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _least(middle, float(epsilon)) > ln_delta else (low, middle)
    return 1 + Fraction(max(1, round(Fraction(math.exp(low)) * ALPHA_GRID)), ALPHA_GRID)


def _least(ln_excess: float, epsilon: float) -> float:
    """Return the least ln delta over all orders, where it is at ``1 + e^ln_excess``."""
    excess = math.exp(ln_excess)
    cost = epsilon + math.log1p(1 / excess)
    return -excess * excess * cost / (1 + 2 * excess) - math.log1p(excess)


def _leading_bits_above(value: Fraction) -> Fraction:
    """Round up to :data:`VARIANCE_BITS` leading bits, at least."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    grid = Fraction(2) ** (exponent - VARIANCE_BITS)
    return math.ceil(value / grid) * grid


BINARY: Final = 2
CALIBRATIONS_KEPT: Final = 256
WANTED_LOSS: Final = 0.01
ANSWERS_MAX: Final = 10**18
# A law is summed out to so many deviations, at so many points a deviation at most.
DEVIATIONS_SUMMED: Final = 12
POINTS_A_DEVIATION: Final = 1000
ANSWERS_KEY: Final = "answers.queries"
EPSILON_MIN: Final = Fraction(1, 10**6)
DELTA_MIN: Final = Fraction(1, 10**200)
DELTA_MAX: Final = Fraction(1, 2)


@runtime_checkable
class VoteCalibration(Protocol):
    """The interface of the noisy vote's parameters: how often noise changes the winning label."""

    def lead_at(self, probability: float, /) -> int:
        """Return the smallest lead, in votes, that noise overturns with at most this chance."""
        ...

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return, for each lead, the chance that a run's noise changes the label of an answer."""
        ...

    def answers_within(self, lead: int, /) -> int:
        """Return the largest number of answers for which this lead is large enough.

        At this number noise changes at most 1 in 100 labels with this lead.
        """
        ...


def voted(calibration: object) -> VoteCalibration:
    """Return the given parameters if they are a noisy vote's; otherwise raise an error.

    Raises:
        InvariantError: the parameters belong to another mechanism.

    """
    if not isinstance(calibration, VoteCalibration):
        raise InvariantError("a noisy vote loses by the lead of its plurality")
    return calibration


@dataclass(frozen=True, slots=True)
class _Law:
    """The discrete Gaussian law, as far as it can be seen, and its tails.

    A wide law is looked at in units of several votes, which changes a probability by less
    than a millionth of it.

    Attributes:
        unit: votes from one value to the next.
        weights: of the values from ``-reach`` to ``reach``.
        tails: probability of each value or a larger one.

    """

    unit: float
    weights: Floats
    tails: Floats

    @classmethod
    def of(cls, variance: float) -> _Law:
        """Return the tabulated discrete Gaussian distribution of a variance."""
        return _law(variance)

    @property
    def reach(self) -> int:
        """The largest tabulated value."""
        return len(self.weights) // 2

    def tail(self, value: int) -> float:
        """Return the probability of a nonnegative value or a larger one."""
        place = self.reach + math.floor(value / self.unit)
        return float(self.tails[place]) if place < len(self.tails) else 0.0

    def outdone(self, lead: int, *, others: int) -> float:
        """Return the probability that one of some smaller counts overtakes the largest one."""
        shift = math.floor(lead / self.unit)
        above = np.zeros_like(self.tails)
        if shift < len(above):
            above[: len(above) - shift] = self.tails[shift:]
        none = others * np.log1p(-np.minimum(above, 1 - 1e-16))
        return float(self.weights @ -np.expm1(none))


@lru_cache(maxsize=16)
def _law(variance: float) -> _Law:
    unit = max(1.0, math.sqrt(variance) / POINTS_A_DEVIATION)
    narrow = variance / unit**2
    reach = math.ceil(DEVIATIONS_SUMMED * math.sqrt(narrow)) + 2
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(values**2) / (2 * narrow))
    weights /= weights.sum()
    return _Law(unit, weights, np.cumsum(weights[::-1])[::-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyVoteCalibration:
    """The noise of the noisy vote on counts, with the budget that it keeps.

    Attributes:
        epsilon: the answers' share of epsilon.
        delta: the answers' share of delta.
        answer_limit: m, the number of answers after which the models stop.
        class_count: the number L of labels.
        alpha: the order of the Renyi divergence by which the cost of the answers is computed; None
            if they are accounted as normal noise.
        variance: ``s^2``, the variance of the noise, in squared votes.

    """

    epsilon: Fraction
    delta: Fraction
    answer_limit: int
    class_count: int
    alpha: Fraction | None
    variance: Fraction

    @property
    def cutoff(self) -> None:
        """None, since the noisy vote has no unstable answers to limit."""
        return

    def lead_at(self, probability: float, /) -> int:
        """Return the smallest lead, in votes, that noise overturns with at most this probability.

        All other labels are assumed to be behind the leading label by exactly this lead and to win
        ties, which is the worst case.

        Args:
            probability: the largest probability that another label is answered, in (0, 1).

        """
        law = _Law.of(float(self.variance))
        low, high = 0, 1
        while self._loses(law, high) > probability:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._loses(law, middle) <= probability else (middle, high)
        return high

    def lost(self, leads: Floats, /, *, answers: int) -> Floats:
        """Return, for each lead, the chance that a run's noise changes the label of an answer.

        The result is an approximation for planning, by the normal distribution and against one
        other label.

        Args:
            leads: the leads of the label with the most votes, in votes.
            answers: the number m of answers.

        """
        from scipy.special import erfc  # noqa: PLC0415 -- slow to load, and no server asks this

        # Twice one count's noise, or the difference of two counts'.
        factor = 2.0 if self.class_count == BINARY else 2.0**0.5
        width = factor * self._variance_of(answers) ** 0.5
        return np.asarray(erfc(leads / (width * 2.0**0.5)) / 2)

    def answers_within(self, lead: int, /) -> int:
        """Return the largest number of answers for which this lead is large enough.

        At this number noise changes at most 1 in 100 labels with this lead.
        """
        low, high = 0, 1
        while self._outweighs(lead, high) and high < ANSWERS_MAX:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._outweighs(lead, middle) else (low, middle)
        return low

    def _outweighs(self, lead: int, answers: int) -> bool:
        return self._loses(_Law.of(self._variance_of(answers)), lead) <= WANTED_LOSS

    def _variance_of(self, answers: int) -> float:
        """Return the variance of another number of answers; what is not rounding is linear."""
        rounding = ROUNDING_VARIANCE if self.alpha is None else 0
        return rounding + float(self.variance - rounding) * answers / self.answer_limit

    def _loses(self, law: _Law, lead: int) -> float:
        """Return how often another label wins against a plurality with this lead."""
        if self.class_count == BINARY:
            return law.tail((lead + 1) // 2)
        return law.outdone(lead, others=self.class_count - 1)

    def to_plain(self) -> dict[str, str]:
        """Return the noise parameters as strings, without loss; an unused Renyi order is absent."""
        named = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: str(value) for name, value in named.items() if value is not None}

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> NoisyVoteCalibration:
        """Return the calibration that :meth:`to_plain` wrote; :func:`check` verifies it.

        Raises:
            InvariantError: a parameter is missing, or its value is not a number.

        """
        with reading("parameters of the noisy vote"):
            return cls(
                epsilon=Fraction(plain["epsilon"]),
                delta=Fraction(plain["delta"]),
                answer_limit=int(plain["answer_limit"]),
                class_count=int(plain["class_count"]),
                alpha=Fraction(plain["alpha"]) if "alpha" in plain else None,
                variance=Fraction(plain["variance"]),
            )


def calibrate(
    *, epsilon: Fraction, delta: Fraction, answer_limit: int, class_count: int
) -> NoisyVoteCalibration:
    """Return the smallest noise variance with which the vote keeps a budget.

    Args:
        epsilon: the answers' share of epsilon, from 1e-6 to 1000.
        delta: the answers' share of delta, from 1e-200 to 0.5.
        answer_limit: m, the number of answers after which the models stop, at least 1.
        class_count: the number L of labels, at least 2.

    Returns:
        The noise parameters with the smaller of the variances that the module's two conditions
        need; :func:`check` accepts them.

    Raises:
        ConfigurationError: the budget is out of range.

    """
    return _calibrated(epsilon, delta, answer_limit, class_count)


@lru_cache(maxsize=CALIBRATIONS_KEPT)
def _calibrated(
    epsilon: Fraction, delta: Fraction, answer_limit: int, class_count: int
) -> NoisyVoteCalibration:
    """Find a variance once a process: planning and opening ask for the same one."""
    refuse_out_of_range(epsilon=epsilon, delta=delta, answer_limit=answer_limit)
    shift = answer_limit * _squared_shift(class_count)
    order, variance = least_variance(epsilon=epsilon, delta=delta, squared_shift=shift)
    alpha: Fraction | None = order
    if answer_limit * class_count <= DRAWS_MAX and variance > ROUNDING_VARIANCE:
        share, failure = without_rounding(epsilon, delta)
        ratio = least_ratio(epsilon=share, delta=failure, squared_shift=shift)
        if ratio + ROUNDING_VARIANCE < variance:
            alpha, variance = None, ratio + ROUNDING_VARIANCE
    return NoisyVoteCalibration(
        epsilon=epsilon,
        delta=delta,
        answer_limit=answer_limit,
        class_count=class_count,
        alpha=alpha,
        variance=variance,
    )


def check(calibration: NoisyVoteCalibration) -> None:
    """Raise an error unless the noise keeps the privacy claim, before it is used.

    Raises:
        InvariantError: a condition of the privacy claim does not hold.

    """
    invariant(calibration.epsilon > 0, "epsilon is above zero")
    invariant(0 < calibration.delta < 1, "delta lies between zero and one")
    invariant(calibration.answer_limit >= 1, "there is an answer")
    invariant(calibration.class_count >= BINARY, "there are two or more classes")
    invariant(calibration.alpha is None or calibration.alpha > 1, "the order is above one")
    invariant(calibration.variance > 0, "the variance is above zero")
    covered = _covers_as_normal if calibration.alpha is None else _covers_at_its_order
    invariant(covered(calibration), "the variance covers every answer")


def _covers_at_its_order(calibration: NoisyVoteCalibration) -> bool:
    return calibration.alpha is not None and variance_covers(
        epsilon=calibration.epsilon,
        delta=calibration.delta,
        squared_shift=calibration.answer_limit * _squared_shift(calibration.class_count),
        alpha=calibration.alpha,
        variance=calibration.variance,
    )


def _covers_as_normal(calibration: NoisyVoteCalibration) -> bool:
    """Tell whether normal noise of this variance less 16 would cover every answer."""
    draws = calibration.answer_limit * calibration.class_count
    epsilon, delta = without_rounding(calibration.epsilon, calibration.delta)
    ratio = calibration.variance - ROUNDING_VARIANCE
    if draws > DRAWS_MAX or ratio <= 0 or epsilon <= 0:
        return False
    return covers(
        epsilon=epsilon,
        delta=delta,
        squared_shift=calibration.answer_limit * _squared_shift(calibration.class_count),
        variance_ratio=ratio,
    )


def _squared_shift(class_count: int) -> int:
    """Return how far one vote moves the counts that get noise, squared."""
    return 1 if class_count == BINARY else 2


def refuse_out_of_range(*, epsilon: Fraction, delta: Fraction, answer_limit: int) -> None:
    """Raise an error for a budget that no variance can keep, and name the setting to change."""
    if not EPSILON_MIN <= epsilon <= EPSILON_MAX:
        raise ConfigurationError(EPSILON_KEY, f"must be from 0.000001 to {EPSILON_MAX}")
    if not DELTA_MIN <= delta <= DELTA_MAX:
        raise ConfigurationError(DELTA_KEY, "must be from 1e-200 to 0.5")
    if answer_limit < 1:
        raise ConfigurationError(ANSWERS_KEY, "must be at least 1")
