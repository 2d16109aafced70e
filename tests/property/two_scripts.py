"""Noise whose words and coins do not take from each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.noise.scripted import ScriptedNoise

if TYPE_CHECKING:
    from collections.abc import Iterable


class TwoScripts(ScriptedNoise):
    """Words from one script and uniform integers from another.

    Together the words of all tests come before all coins; what each gets is the same.
    """

    def __init__(self, words: Iterable[int], coins: Iterable[int]) -> None:
        """Play both back from their beginning."""
        super().__init__(words)
        self._coins = ScriptedNoise(coins)

    def below(self, bound: int) -> int:
        """Return the next of the integers."""
        return self._coins.below(bound)
