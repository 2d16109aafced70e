"""Predictors as a user writes them: functions of a row, and a class with a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVELS = (25.0, 50.0, 75.0)


def older(row: Mapping[str, Any]) -> str:
    """Give the second class from 50 on; a missing age fails."""
    return "yes" if row["age"] >= LEVELS[1] else "no"


def richer(row: Mapping[str, Any]) -> str:
    """Give the second class to the upper half of incomes."""
    return "yes" if row["income"] >= LEVELS[1] else "no"


def rare(row: Mapping[str, Any]) -> str:
    """Give the second class to the rare group."""
    return "yes" if row["group"] == "rare" else "no"


def never(_row: Mapping[str, Any]) -> str:
    """Give the first class."""
    return "no"


@dataclass(frozen=True)
class Corner:
    """The second class where both numbers are high enough.

    Attributes:
        age: from which on.
        income: from which on.

    """

    age: float
    income: float

    def predict(self, row: Mapping[str, Any]) -> str:
        """Return the label of one row; what is missing is not high enough."""
        numbers = (row["age"], row["income"])
        least = (self.age, self.income)
        high = all(
            isinstance(number, float) and number >= level
            for number, level in zip(numbers, least, strict=True)
        )
        return "yes" if high else "no"

    def describe(self) -> Mapping[str, object]:
        """Return what :meth:`Corners.read` takes."""
        return {"age": self.age, "income": self.income}


class Corners:
    """Nine corners over three levels of two numbers."""

    dimension = 3

    def __init__(self, features: Sequence[Any], classes: Sequence[str]) -> None:
        """Take whatever features there are."""
        del features, classes

    def hypotheses(self, points: Sequence[Mapping[str, Any]]) -> Sequence[Corner]:
        """Return all of them, whatever the points."""
        del points
        return [Corner(age, income) for age in LEVELS for income in LEVELS]

    def read(self, description: Mapping[str, Any]) -> Corner:
        """Return the corner that described itself so."""
        return Corner(float(description["age"]), float(description["income"]))
