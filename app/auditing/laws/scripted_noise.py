"""Noise distributions that return given values, to observe how a mechanism responds."""

from __future__ import annotations

from fractions import Fraction
from itertools import repeat
from typing import TYPE_CHECKING, Final

from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.scripted import ScriptedNoise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.noise.source import NoiseSource

NOTHING: Final = ScriptedNoise([])
"""A source that draws nothing: prescribed laws need none."""
WORDS_HEARD: Final = 2


class PrescribedLaplace(DiscreteLaplace):
    """A Laplace noise distribution that returns given values in order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with the values to return."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Set the next values that this noise distribution returns."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next given value as the noise."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class PrescribedGaussian(DiscreteGaussian):
    """A Gaussian noise distribution that returns given values in order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with the values to return."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Set the next values that this noise distribution returns."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next given values as the noise."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class ListeningLaplace(PrescribedLaplace):
    """A Laplace noise distribution that returns one value, and records the random words it got."""

    def __init__(self, value: int, heard: list[int]) -> None:
        """Set the value of every draw; the given random words are appended to ``heard``."""
        super().__init__(repeat(value))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return the given value as the noise."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)


class ListeningGaussian(PrescribedGaussian):
    """A Gaussian noise distribution that returns zeros, and records the random words it got."""

    def __init__(self, heard: list[int]) -> None:
        """Set zero as the value of every draw; random words are appended to ``heard``."""
        super().__init__(repeat(0))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return zeros as the noise."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)
