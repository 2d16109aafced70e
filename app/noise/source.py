"""The interface through which all randomness enters the privacy mechanisms.

A mechanism is a pure function of its parameters, its state, a private value and a
:class:`NoiseSource`. A server passes :class:`~app.noise.system.SystemNoise`; unit tests pass a
source with given words.

Every source makes integers below a bound, and permutations, from 64-bit random words by the same
two functions of this module. Both functions use rejection sampling, so their results are exactly
uniform if the words are uniform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

WORD_BITS = 64
WORD_BOUND = 1 << WORD_BITS


class NoiseSource(Protocol):
    """The interface of a source of independent, uniform random numbers."""

    def word(self) -> int:
        """Return a uniform random integer in ``[0, 2**64)``, called a word."""
        ...

    def words(self, count: int) -> list[int]:
        """Return ``count`` independent uniform integers in ``[0, 2**64)``."""
        ...

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``, exactly uniform, for any ``bound >= 1``."""
        ...

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return an exactly uniform permutation of ``0 .. count - 1``, shape ``(count,)``."""
        ...

    def secret(self, byte_count: int) -> bytes:
        """Return ``byte_count`` uniform random bytes, for use as a secret."""
        ...


# A rejection has probability below 1/2, so a run this long has probability
# below 2**-256: it can only mean a source that is broken, or a script that is
# too short on purpose.
REJECTIONS_MAX = 256


def below_from_words(bound: int, words: Callable[[int], list[int]]) -> int:
    """Return a uniform integer in ``[0, bound)`` by rejection sampling from random words.

    Args:
        bound: exclusive upper bound, at least 1, of any size.
        words: a function that returns a given number of new uniform 64-bit words.

    Returns:
        The first drawn integer that is below ``bound``. Every draw has exactly as many bits as
        ``bound - 1``.

    Raises:
        InvariantError: ``bound`` is below 1, or none of 256 drawn integers is below it.

    """
    invariant(bound >= 1, "a uniform draw needs a bound of at least 1")
    bit_count = (bound - 1).bit_length()
    word_count = -(-bit_count // WORD_BITS)
    for _ in range(REJECTIONS_MAX):
        candidate = 0
        for word in words(word_count):
            candidate = (candidate << WORD_BITS) | word
        candidate >>= word_count * WORD_BITS - bit_count
        if candidate < bound:
            return candidate
    invariant(holds=False, claim="the noise source rejects without end")
    return 0  # pragma: no cover -- the line above always raises


def permutation_from_keys(
    count: int, keys: Callable[[int], NDArray[np.uint64]]
) -> NDArray[np.int64]:
    """Return an exactly uniform permutation: the order that sorts distinct random keys.

    Independent uniform keys that are all distinct come in each order with the same probability. If
    two keys are equal, all keys are drawn again.

    Args:
        count: the number of positions to permute, at least 0.
        keys: a function that returns a given number of new uniform 64-bit keys.

    Returns:
        The positions ``0 .. count - 1`` in random order, shape ``(count,)``.

    Raises:
        InvariantError: the keys were drawn 256 times, and two of them were equal each time.

    """
    for _ in range(REJECTIONS_MAX):
        drawn = keys(count)
        order = np.argsort(drawn, kind="stable")
        ordered = drawn[order]
        if not bool(np.any(ordered[1:] == ordered[:-1])):
            return order.astype(np.int64, copy=False)
    invariant(holds=False, claim="the noise source repeats its keys without end")
    return np.zeros(0, dtype=np.int64)  # pragma: no cover -- the line above always raises
