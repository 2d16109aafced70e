"""Scripted noise distributions that return given values, to observe a mechanism's response.

A random word is a random 64-bit number.
"""

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


class _Prescribed:
    """A distribution that returns given values in order."""

    def prescribe(self, values: Iterable[int]) -> None:
        """Set the next values to return."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next given value."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class PrescribedLaplace(_Prescribed, DiscreteLaplace):
    """A Laplace distribution that returns given values in order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with the values to return."""
        super().__init__(Fraction(1))
        self.prescribe(values)


class PrescribedGaussian(_Prescribed, DiscreteGaussian):
    """A Gaussian distribution that returns given values in order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with the values to return."""
        super().__init__(Fraction(1))
        self.prescribe(values)


class ListeningLaplace(PrescribedLaplace):
    """A Laplace distribution that returns one value, and records the random words it was given."""

    def __init__(self, value: int, heard: list[int]) -> None:
        """Set the value of every draw; the given random words are appended to ``heard``."""
        super().__init__(repeat(value))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return the given value, after recording the 64-bit random words that a draw reads."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)


class ListeningGaussian(PrescribedGaussian):
    """A Gaussian distribution that returns zeros, and records the random words it was given."""

    def __init__(self, heard: list[int]) -> None:
        """Set zero as the value of every draw; random words are appended to ``heard``."""
        super().__init__(repeat(0))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return zero, after recording the 64-bit random words that a draw reads."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)
