"""A source of noise that a seed repeats, for benchmarks alone: what is measured is accuracy."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from app.noise.source import WORD_BITS, below_from_words, permutation_from_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

import numpy as np


class SeededNoise:
    """The app's draws from words of a seeded generator in place of the system's."""

    def __init__(self, seed: int) -> None:
        """Start at a seed."""
        self._generator = random.Random(seed)

    def word(self) -> int:
        """Return the next 64 bits."""
        return self._generator.getrandbits(WORD_BITS)

    def words(self, count: int) -> list[int]:
        """Return the next ``count`` words."""
        return [self.word() for _ in range(count)]

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``, as the app makes it of words."""
        return below_from_words(bound, self.words)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return a permutation of ``0 .. count - 1``, as the app makes it of keys."""
        return permutation_from_keys(count, self._keys)

    def secret(self, byte_count: int) -> bytes:
        """Return bytes that nobody should keep a secret with."""
        return self._generator.randbytes(byte_count)

    def _keys(self, count: int) -> NDArray[np.uint64]:
        return np.array(self.words(count), dtype=np.uint64)
