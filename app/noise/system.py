"""The noise source that serves a release: the operating system's random generator.

A word is a uniform random 64-bit integer.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from app.noise.source import WORD_BITS, below_from_words, permutation_from_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

_WORD_BYTES = WORD_BITS // 8


class SystemNoise:
    """A noise source that calls ``os.urandom`` for every draw.

    It keeps no buffer of random bytes: bytes that wait in memory could be used twice by a forked
    process or a second thread. For a batch of draws, :func:`drawn_ahead` fetches the words
    together, and discards the words that the batch does not use.
    """

    def word(self) -> int:
        """Return a uniform integer in ``[0, 2**64)``."""
        return int.from_bytes(os.urandom(_WORD_BYTES), "little")

    def words(self, count: int) -> list[int]:
        """Return ``count`` independent uniform integers in ``[0, 2**64)``."""
        return list(struct.unpack(f"<{count}Q", os.urandom(count * _WORD_BYTES)))

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``, exactly uniform, for any ``bound >= 1``."""
        return below_from_words(bound, self.words)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return an exactly uniform permutation of ``0 .. count - 1``, shape ``(count,)``."""
        return permutation_from_keys(count, _keys)

    def secret(self, byte_count: int) -> bytes:
        """Return ``byte_count`` uniform random bytes, for use as a secret."""
        return os.urandom(byte_count)


class DrawnAhead(SystemNoise):
    """A noise source that fetches the random words of a batch of draws by one system call.

    When these words are used up, each further word takes a system call of its own. Integers,
    permutations and secrets are drawn as :class:`SystemNoise` draws them.
    """

    def __init__(self, count: int) -> None:
        """Store the number of words, which are drawn when the first word is needed."""
        self._count = count
        self._left: list[int] = []

    def word(self) -> int:
        """Return a random 64-bit word; no word is returned twice."""
        if self._count:
            self._left, self._count = super().words(self._count), 0
        return self._left.pop() if self._left else super().word()


def drawn_ahead(noise: NoiseSource, count: int) -> NoiseSource:
    """Return a noise source for a batch of draws, which fetches its words by one system call.

    Args:
        noise: the source of randomness. If it is not a :class:`SystemNoise`, it is returned
            unchanged.
        count: the number of random words to fetch at once.

    """
    return DrawnAhead(count) if type(noise) is SystemNoise else noise


def _keys(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(count * _WORD_BYTES), dtype=np.uint64)
