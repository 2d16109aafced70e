"""The one door through which randomness enters the mechanisms.

A mechanism is a pure function of its parameters, its state, a private value
and a :class:`NoiseSource`; production passes
:class:`~app.noise.system.SystemNoise`, tests pass a scripted double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORD_BITS = 64
WORD_BOUND = 1 << WORD_BITS


class NoiseSource(Protocol):
    """Independent, uniform draws; every method consumes fresh randomness."""

    def word(self) -> int:
        """Return a uniform integer in ``[0, 2**64)``."""
        ...

    def words(self, count: int) -> list[int]:
        """Return ``count`` independent uniform integers in ``[0, 2**64)``."""
        ...

    def below(self, bound: int) -> int:
        """Return a uniform integer in ``[0, bound)``, exactly, for any ``bound >= 1``."""
        ...

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return an exactly uniform permutation of ``0 .. count - 1``, shape ``(count,)``."""
        ...

    def secret(self, byte_count: int) -> bytes:
        """Return ``byte_count`` uniform bytes to be kept as a secret."""
        ...
