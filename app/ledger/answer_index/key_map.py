"""A map in memory that tells where the key of an answer cannot be, without a search or a read.

A new vector's key is in no level of the index, and most searches are for new vectors. The map has a
byte for each *start* of a key, for each level; a start is the first bits of a key, at least as many
as tell its block. If the byte is 0, no block of the level has a key with this start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_KEY_BITS: Final = 64


class KeyMap:
    """Bytes that tell, for each level and each start of a key, whether it may be there."""

    def __init__(self) -> None:
        """Begin without a level."""
        self._levels: dict[int, tuple[int, int]] = {}  # how far keys are shifted, the first byte
        self._marks = bytearray()
        self._all = np.zeros(0, np.bool_)  # the same bytes
        self._shifts = self._firsts = np.zeros(0, np.uint64)  # of every level
        self._deepest_first: list[tuple[int, int, int]] = []  # a level, its shift, its first byte

    def add(self, level: int, start_bits: int, starts: Sequence[int] | NDArray[np.uint64]) -> None:
        """Note the starts of keys that are in a level.

        Args:
            level: the level; a new one is added to the map.
            start_bits: the number of first bits of a key that are its start in this level.
            starts: the starts, as whole numbers; at least one.

        """
        if level not in self._levels:
            self._levels[level] = _KEY_BITS - start_bits, len(self._marks)
            self._marks = self._marks + bytes(1 << start_bits)
            self._all = np.frombuffer(self._marks, np.bool_)
            self._shifts, self._firsts = np.array([*self._levels.values()], np.uint64).T
            levels = sorted(self._levels.items(), reverse=True)
            self._deepest_first = [(number, *places) for number, places in levels]
        shift, first = self._levels[level]
        self._all[first : first + (1 << _KEY_BITS - shift)][starts] = True

    def clear(self, level: int, block: int, block_bits: int) -> None:
        """Note that a block of a level has no key.

        Args:
            level: the level; one that is not in the map has no key.
            block: the number of the block.
            block_bits: the number of first bits of a key that tell its block.

        """
        if level not in self._levels:
            return
        shift, first = self._levels[level]
        size = 1 << _KEY_BITS - shift - block_bits
        first += block * size
        self._marks[first : first + size] = bytes(size)

    def may_have(self, level: int, key: int) -> bool:
        """Return whether a level may have a key, which is given as a whole number."""
        place = self._levels.get(level)
        return place is not None and self._marks[place[1] + (key >> place[0])] == 1

    def levels_of(self, key: int) -> list[int]:
        """Return the levels of the map that may have a key, a whole number, deepest first."""
        marks, found = self._marks, []
        for level, shift, first in self._deepest_first:
            if marks[first + (key >> shift)]:
                found.append(level)
        return found

    def places(self, keys: NDArray[np.uint64]) -> list[tuple[int, int]]:
        """Return each level of the map that may have one of some keys, shape (n,), with the key."""
        found: list[tuple[int, int]] = []
        if self._levels:
            at = (keys[:, None] >> self._shifts) + self._firsts  # (n, levels)
            of_keys, of_levels = np.nonzero(self._all.take(at.view(np.int64)))
            levels = [*self._levels]
            found += zip(
                [levels[level] for level in of_levels.tolist()],
                keys[of_keys].tolist(),
                strict=True,
            )
        return found

    def starts(self, level: int) -> list[int]:
        """Return the starts that were noted for a level, in order."""
        if level not in self._levels:
            return []
        shift, first = self._levels[level]
        noted: list[int] = np.flatnonzero(
            self._all[first : first + (1 << _KEY_BITS - shift)]
        ).tolist()
        return noted
