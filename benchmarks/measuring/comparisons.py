"""Which queries' times are compared: what is public, and, apart from it, what is private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from benchmarks.measuring.margins import Kind
from benchmarks.measuring.medians import difference_of_medians

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from benchmarks.measuring.medians import Difference
    from benchmarks.measuring.stopwatch import Timed


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets of answers whose times must not differ.

    Attributes:
        name: for people.
        is_first: whether an answer is one of the first set.
        is_second: whether it is one of the second.

    """

    name: str
    is_first: Callable[[Timed], bool]
    is_second: Callable[[Timed], bool]

    def samples(self, timed: Iterable[Timed], moment: str) -> tuple[list[float], list[float]]:
        """Return both sets' times until a moment, an attribute of ``Timed``."""
        answers = list(timed)
        first = [getattr(one, moment) for one in answers if self.is_first(one)]
        second = [getattr(one, moment) for one in answers if self.is_second(one)]
        return first, second

    def difference(self, timed: Iterable[Timed], moment: str) -> Difference:
        """Compare the times until a moment, an attribute of ``Timed``."""
        return difference_of_medians(*self.samples(timed, moment))


def _alike(name: str, first: Kind, second: Kind, *, stable: bool) -> Comparison:
    """Compare answers that look alike to a client."""
    return Comparison(
        name,
        lambda one: one.kind is first and one.stable is stable,
        lambda one: one.kind is second and one.stable is stable,
    )


STABLE_UNSTABLE: Final = Comparison(
    "stable, unstable", lambda one: one.stable, lambda one: not one.stable
)
# What differs between the two sets of each of these is private.
AMONG_STABLE: Final = (
    _alike("stable: barely clear, all no", Kind.CLEAR, Kind.UNANIMOUS_NO, stable=True),
    _alike("stable: all no, all yes", Kind.UNANIMOUS_NO, Kind.UNANIMOUS_YES, stable=True),
)
AMONG_UNSTABLE: Final = (
    _alike("unstable: no ahead, yes ahead", Kind.SPLIT_NO, Kind.SPLIT_YES, stable=False),
    _alike("unstable: even, less even", Kind.SPLIT_NO, Kind.NEAR, stable=False),
)
COMPARISONS: Final = (STABLE_UNSTABLE, *AMONG_STABLE, *AMONG_UNSTABLE)
# Of a mechanism whose every answer is stable.
LABELS_ONLY: Final = (
    _alike("even, all no", Kind.SPLIT_NO, Kind.UNANIMOUS_NO, stable=True),
    *AMONG_STABLE,
)
