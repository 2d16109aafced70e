r"""A hypothesis class of one's own: staircases over two numbers.

Somebody is in the second class where one number is high enough for the other:
a boundary that falls from left to right, as it does wherever more of either
never hurts.  Trees and halfspaces hold such boundaries only roughly.

The class goes by the protocol in ``docs/hypotheses.md``; the configuration is
``examples/staircases.toml``.  Made-up rows to try it on:

    python examples/staircases.py > examples/staircases.csv
    conclave serve --config examples/staircases.toml
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from app.hypotheses.predictors import PublicFeature, Row

BINS = 5
ROW_COUNT = 6000
# From which income on, the savings that the made-up people need.
NEEDED = ((0.0, 80.0), (40.0, 60.0), (60.0, 20.0))


@dataclass(frozen=True)
class Staircase:
    """The second class where the second number's bin reaches the height of the first's.

    Attributes:
        names: the two features.
        classes: the two labels.
        cuts: where the bins of each feature begin, but for the first.
        heights: for each bin of the first feature, the first bin of the second
            that is in the second class; it never rises.

    """

    names: tuple[str, str]
    classes: tuple[str, str]
    cuts: tuple[tuple[float, ...], tuple[float, ...]]
    heights: tuple[int, ...]

    def predict(self, row: Row) -> str:
        """Return the label of one row; a missing number is in the lowest bin."""
        column, level = (
            bisect_right(cuts, value) if isinstance(value := row[name], float) else 0
            for name, cuts in zip(self.names, self.cuts, strict=True)
        )
        return self.classes[level >= self.heights[column]]

    def describe(self) -> Mapping[str, object]:
        """Return what :meth:`Staircases.read` takes; it is published."""
        return {"cuts": self.cuts, "heights": self.heights}


class Staircases:
    """Every staircase over a grid of two features: 252 of them over five bins by five.

    Args:
        features: the public features; exactly two, both numbers.
        classes: the labels; exactly two.

    """

    # A staircase can give any labels to cells of which none is above and right of
    # another, and over five bins by five such cells are at most five.
    dimension = BINS

    def __init__(self, features: Sequence[PublicFeature], classes: Sequence[str]) -> None:
        """Refuse what staircases are not made for, before any row is read."""
        if [feature.bounds is None for feature in features] != [False, False]:
            raise ValueError("staircases take two numeric features")
        first, second = classes
        self._classes = (first, second)
        self._features = features

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Staircase]:
        """Return all staircases over equal bins, or over bins of the public points."""
        first, second = (_cuts(feature, points) for feature in self._features)
        rising = combinations_with_replacement(range(len(second) + 2), len(first) + 1)
        return [self._staircase((first, second), heights[::-1]) for heights in rising]

    def read(self, description: Mapping[str, Any]) -> Staircase:
        """Return the staircase that described itself so."""
        first, second = (tuple(map(float, cuts)) for cuts in description["cuts"])
        return self._staircase((first, second), tuple(map(int, description["heights"])))

    def _staircase(
        self, cuts: tuple[tuple[float, ...], tuple[float, ...]], heights: tuple[int, ...]
    ) -> Staircase:
        first, second = self._features
        return Staircase((first.name, second.name), self._classes, cuts, heights)


def _cuts(feature: PublicFeature, points: Sequence[Row]) -> tuple[float, ...]:
    """Return cuts that part the public points evenly, or the bounds where there are none."""
    values = sorted(value for row in points if isinstance(value := row[feature.name], float))
    if len(values) < BINS:
        lower, upper = feature.bounds or (0.0, 1.0)
        return tuple(lower + (upper - lower) * index / BINS for index in range(1, BINS))
    return tuple(sorted({values[len(values) * index // BINS] for index in range(1, BINS)}))


def rows(count: int = ROW_COUNT) -> Iterator[tuple[float, float, str]]:
    """Yield made-up people, spread evenly by two irrational steps; no generator is needed."""
    for number in range(1, count + 1):
        income = round(100 * (number * 0.7548776662 % 1), 1)
        savings = round(100 * (number * 0.5698402910 % 1), 1)
        needed = min(least for start, least in NEEDED if income >= start)
        yield income, savings, "approved" if savings >= needed else "declined"


if __name__ == "__main__":
    print("income,savings,decision")  # noqa: T201 -- the rows go to a file
    for income, savings, decision in rows():
        print(f"{income},{savings},{decision}")  # noqa: T201 -- as above
