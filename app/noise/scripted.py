"""A noise source for unit tests, which returns given 64-bit words and fails after the last."""

from __future__ import annotations

import struct
from hashlib import sha256
from itertools import count as count_from
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from app.errors import invariant
from app.noise.source import WORD_BITS, WORD_BOUND, below_from_words, permutation_from_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

_WORD_BYTES = WORD_BITS // 8


def seeded_words(seed: int) -> Iterator[int]:
    """Yield an endless, reproducible stream of 64-bit words: hashes of a seed and a counter."""
    for block in count_from():  # pragma: no branch -- it never ends
        yield from struct.unpack("<4Q", sha256(f"{seed}:{block}".encode()).digest())


class ScriptedNoise:
    """A noise source for unit tests, which returns given words in their order.

    No server uses it.

    Args:
        words: 64-bit words in the order in which they are returned; may be endless, for example
            :func:`seeded_words`.

    """

    def __init__(self, words: Iterable[int]) -> None:
        """Start at the first of the given words."""
        self._words = iter(words)
        self.drawn_count = 0

    def word(self) -> int:
        """Return the next of the given random words."""
        return self.words(1)[0]

    def words(self, count: int) -> list[int]:
        """Return the next ``count`` of the given random words.

        Raises:
            InvariantError: fewer than ``count`` words are left, or one of them is not a 64-bit
                word.

        """
        drawn = list(islice(self._words, count))
        invariant(len(drawn) == count, "the scripted noise has ended")
        are_words = not drawn or (min(drawn) >= 0 and max(drawn) < WORD_BOUND)
        invariant(are_words, "a scripted word is not 64 bits")
        self.drawn_count += count
        return drawn

    def below(self, bound: int) -> int:
        """Return an integer in ``[0, bound)``, made from the given words by rejection sampling."""
        return below_from_words(bound, self.words)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Return the permutation that sorts the next ``count`` of the given random words."""
        return permutation_from_keys(
            count, lambda needed: np.array(self.words(needed), dtype=np.uint64)
        )

    def secret(self, byte_count: int) -> bytes:
        """Return ``byte_count`` bytes of the given random words in little-endian order."""
        words = self.words(-(-byte_count // _WORD_BYTES))
        return b"".join(word.to_bytes(_WORD_BYTES, "little") for word in words)[:byte_count]
