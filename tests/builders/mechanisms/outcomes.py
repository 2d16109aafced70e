"""The exact law of a function of uniform integers, by trying every one of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from app.noise.scripted import ScriptedNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.noise.source import NoiseSource


class _WantsMoreError(Exception):
    """The prescribed integers are used up; the next one has this bound."""

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self.bound = bound


class _Prescribed(ScriptedNoise):
    """A source whose uniform integers are given one by one."""

    def __init__(self, integers: tuple[int, ...]) -> None:
        super().__init__([])
        self._integers = iter(integers)

    def below(self, bound: int) -> int:
        """Return the next prescribed integer, or ask for it."""
        for integer in self._integers:
            return integer
        raise _WantsMoreError(bound)


def exact_law(
    run: Callable[[NoiseSource], bool], *, depth: int
) -> tuple[dict[bool, Fraction], Fraction]:
    """Return the probabilities of both results and what is open after ``depth`` integers.

    Args:
        run: draws uniform integers and decides.
        depth: integers drawn at most.

    """
    decided = {True: Fraction(0), False: Fraction(0)}
    undecided = Fraction(0)
    pending: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while pending:
        integers, probability = pending.pop()
        try:
            decided[run(_Prescribed(integers))] += probability
        except _WantsMoreError as wanted:
            if len(integers) == depth:
                undecided += probability
                continue
            share = probability / wanted.bound
            pending.extend(((*integers, value), share) for value in range(wanted.bound))
    return decided, undecided
