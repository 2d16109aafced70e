"""Exact samples from the discrete Gaussian distribution of any rational variance.

``P(Y = y)`` is proportional to ``exp(-y^2 / (2 variance))`` for every integer ``y``. The method is
Algorithm 3 of Canonne, Kamath and Steinke (2020), a rejection sampler: it draws from a discrete
Laplace distribution and keeps the draw with a probability that is computed exactly. The arithmetic
uses integers only, so the distribution is exact.

``variance`` is the parameter in the formula; the variance of ``Y`` is at most this parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, Final

from app.errors import invariant
from app.noise.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from app.noise.source import NoiseSource

# A draw is kept with probability above 1/3, so so many in vain have probability
# below 2**-292: they can only mean a source that is broken.
ATTEMPTS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """A discrete Gaussian distribution of a given variance, from which samples are drawn.

    Attributes:
        variance: the parameter of the distribution, above 0.

    """

    variance: Fraction
    _proposal: DiscreteLaplace = field(init=False, repr=False, compare=False)
    _spread: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the discrete Laplace distribution from which candidates are drawn."""
        invariant(self.variance > 0, "a variance is above zero")
        spread = isqrt(self.variance.numerator // self.variance.denominator) + 1
        object.__setattr__(self, "_spread", spread)
        object.__setattr__(self, "_proposal", DiscreteLaplace(Fraction(spread)))

    def draw(self, noise: NoiseSource) -> int:
        """Return an integer y drawn with probability proportional to ``exp(-y^2/(2 variance))``."""
        for _ in range(ATTEMPTS_MAX):
            proposed = self._proposal.draw(noise)
            if self._kept(abs(proposed), noise):
                return proposed
        invariant(holds=False, claim="the noise source keeps a draw at last")
        return 0  # pragma: no cover -- the line above always raises

    def _kept(self, magnitude: int, noise: NoiseSource) -> bool:
        """Toss a coin of probability ``exp(-(magnitude - variance/spread)^2 / (2 variance))``."""
        # On one denominator: n/d is the variance, t the spread, and the exponent is
        # (magnitude d t - n)^2 / (2 n d t^2).
        variance, spread = self.variance, self._spread
        offset = magnitude * variance.denominator * spread - variance.numerator
        whole = 2 * variance.numerator * variance.denominator * spread * spread
        return bernoulli_exponential(offset * offset, whole, noise)


def bernoulli_exponential(numerator: int, denominator: int, noise: NoiseSource) -> bool:
    """Return True with a probability of exactly ``exp(-numerator / denominator)``.

    The method is Algorithm 1 of Canonne, Kamath and Steinke (2020).

    Args:
        numerator: at least 0.
        denominator: at least 1.
        noise: the source of randomness.

    """
    invariant(numerator >= 0 < denominator, "an exponent is a rational, and not negative")
    units, rest = divmod(numerator, denominator)
    for _ in range(units):  # ends at the first coin that falls the other way
        if not _bernoulli_exponential_of_part(1, 1, noise):
            return False
    return _bernoulli_exponential_of_part(rest, denominator, noise)


def _bernoulli_exponential_of_part(numerator: int, denominator: int, noise: NoiseSource) -> bool:
    """Toss a coin of probability ``exp(-g)`` for ``g`` in [0, 1].

    The run of coins with probabilities ``g, g/2, g/3, ...`` has even length with
    probability ``1 - g + g^2/2 - ...``.
    """
    length = 1
    while noise.below(denominator * length) < numerator:
        length += 1
    return length % 2 == 1
