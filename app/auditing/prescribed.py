"""Laws of noise that draw one given value: they ask a step what it does with it."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.noise.source import NoiseSource

NOTHING: Final = ScriptedNoise([])
"""A source that draws nothing: prescribed laws need none."""


class PrescribedLaplace(DiscreteLaplace):
    """A law that draws the values it was given, in their order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with these values."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Draw these values from now on."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next value."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class PrescribedGaussian(DiscreteGaussian):
    """A law that draws the values it was given, in their order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with these values."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Draw these values from now on."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next value."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value
