"""Scripted noise: laws that draw given values, to observe the response of a step."""

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
    """A law that draws given values, in their order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with these values."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Set the next values."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next value."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class PrescribedGaussian(DiscreteGaussian):
    """A law that draws given values, in their order."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        """Start with these values."""
        super().__init__(Fraction(1))
        self.prescribe(values)

    def prescribe(self, values: Iterable[int]) -> None:
        """Set the next values."""
        object.__setattr__(self, "_values", iter(values))

    def draw(self, noise: NoiseSource) -> int:
        """Return the next value."""
        del noise
        value: int = next(self.__dict__["_values"])
        return value


class ListeningLaplace(PrescribedLaplace):
    """A law that draws one given value, and records the words of its noise sources."""

    def __init__(self, value: int, heard: list[int]) -> None:
        """Draw this value always; words are added to ``heard``."""
        super().__init__(repeat(value))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return the given value."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)


class ListeningGaussian(PrescribedGaussian):
    """The noisy vote's counterpart of :class:`ListeningLaplace`; it draws zeros."""

    def __init__(self, heard: list[int]) -> None:
        """Draw zero always; words are added to ``heard``."""
        super().__init__(repeat(0))
        object.__setattr__(self, "_heard", heard)

    def draw(self, noise: NoiseSource) -> int:
        """Return zero."""
        self.__dict__["_heard"].extend(noise.words(WORDS_HEARD))
        return super().draw(noise)
