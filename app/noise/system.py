"""The production source: the operating system's generator, and nothing else."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from app.noise.derivation import below_from_words, permutation_from_keys
from app.noise.source import WORD_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD_BYTES = WORD_BITS // 8


class SystemNoise:
    """Draws from ``os.urandom`` on every call.

    Nothing is buffered on purpose: randomness that waits in memory could be
    used twice by a forked process or a second thread, and a call costs half
    a microsecond.
    """

    def word(self) -> int:
        """Return a uniform integer in ``[0, 2**64)``."""
        return int.from_bytes(os.urandom(_WORD_BYTES), "little")

    def words(self, count: int) -> list[int]:
        """Return ``count`` independent uniform integers in ``[0, 2**64)``."""
        return list(struct.unpack(f"<{count}Q", os.urandom(count * _WORD_BYTES)))

    def below(self, bound: int) -> int:
        """Return a uniform integer in ``[0, bound)``, exactly, for any ``bound >= 1``."""
        return below_from_words(bound, self.words)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return an exactly uniform permutation of ``0 .. count - 1``."""
        return permutation_from_keys(count, _keys)

    def secret(self, byte_count: int) -> bytes:
        """Return ``byte_count`` uniform bytes to be kept as a secret."""
        return os.urandom(byte_count)


def _keys(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(count * _WORD_BYTES), dtype=np.uint64)
