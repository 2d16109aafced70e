"""Draws in a process and in two that it forks; prints what each of the three drew.

Run by the tests of the noise source, in a process of one thread::

    python -m tests.builders.mechanisms.forked SOURCE
"""

from __future__ import annotations

import json
import os
import struct
import sys
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from app.noise.discrete_gaussian import DiscreteGaussian
from app.noise.discrete_laplace import DiscreteLaplace
from app.noise.source import below_from_words, permutation_from_keys
from app.noise.system import SystemNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from app.noise.source import NoiseSource

CHILDREN = 2
WORDS = 64
WIDE = Fraction(10**15)
BUFFER_BYTES = 1 << 16


class BufferedNoise(SystemNoise):
    """A planted fault: words wait in memory, and a fork copies them."""

    def __init__(self) -> None:
        """Fill the buffer."""
        self._waiting = os.urandom(BUFFER_BYTES)

    def words(self, count: int) -> list[int]:
        """Return words that were drawn before, and no other process should have."""
        taken, self._waiting = self._waiting[: 8 * count], self._waiting[8 * count :]
        return list(struct.unpack(f"<{count}Q", taken))

    def word(self) -> int:
        """Return one of them."""
        return self.words(1)[0]

    def below(self, bound: int) -> int:
        """Return an integer made of them."""
        return below_from_words(bound, self.words)

    def secret(self, byte_count: int) -> bytes:
        """Return a secret made of them."""
        return np.array(self.words(byte_count // 8), dtype=np.uint64).tobytes()


class SharedGenerator(SystemNoise):
    """A planted fault: numpy's generator orders the keys, in the same state in every child."""

    def __init__(self) -> None:
        """Seed it once, from the operating system."""
        self._generator = np.random.default_rng()

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return an order of keys that every child draws alike."""
        return permutation_from_keys(
            count, lambda needed: self._generator.integers(2**64, size=needed, dtype=np.uint64)
        )


SOURCES: dict[str, Callable[[], NoiseSource]] = {
    "system": SystemNoise,
    "buffered": BufferedNoise,
    "shared-generator": SharedGenerator,
}


def drawn(noise: NoiseSource) -> dict[str, list[str]]:
    """Return draws of every kind, each of which is different but for a probability below 1e-15."""
    laplace, gaussian = DiscreteLaplace(WIDE), DiscreteGaussian(WIDE**2)
    return {
        "words": [str(word) for word in noise.words(WORDS)],
        "word": [str(noise.word()) for _ in range(WORDS)],
        "below": [str(noise.below(10**30)) for _ in range(WORDS)],
        "permutation": [str(noise.permutation(64).tolist()) for _ in range(4)],
        "secret": [noise.secret(32).hex()],
        "laplace": [str([laplace.draw(noise) for _ in range(4)])],
        "gaussian": [str([gaussian.draw(noise) for _ in range(4)])],
    }


def main() -> None:
    """Draw in this process, fork, and draw in all of them."""
    noise = SOURCES[sys.argv[1]]()
    drawn(noise)  # as a server that has opened its release
    results = []
    for _ in range(CHILDREN):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, json.dumps(drawn(noise)).encode())
            os._exit(0)
        os.close(writing)
        os.wait()
        with os.fdopen(reading) as pipe:
            results.append(json.load(pipe))
    results.append(drawn(noise))
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
