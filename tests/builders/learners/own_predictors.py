"""Predictors as a user might write them, good and bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.learning.predictors.own_predictors import PublicFeature, Row

NOT_CALLABLE = 7


def always_yes(_row: Row) -> str:
    """Give the second class."""
    return "yes"


def is_grown_up(row: Row) -> str:
    """Give the second class from 18 on; a missing age fails."""
    return "yes" if row["age"] >= 18 else "no"  # type: ignore[operator]  # fails where it is missing


def lives_in_town(row: Row) -> int:
    """Give numbers, and fail loudly elsewhere."""
    print("a row:", row)  # noqa: T201 -- what is printed must not be heard
    if row["home"] == "town":
        return 1
    raise ValueError(row["home"])


def tries_to_change(row: Row) -> str:
    """Try to change the row for others."""
    row["age"] = 99.0  # type: ignore[index]  # must fail
    return "yes"


@dataclass
class AtLeast:
    """A threshold on age."""

    cut: float

    def predict(self, row: Row) -> str:
        """Compare; a missing age fails."""
        return "yes" if row["age"] >= self.cut else "no"  # type: ignore[operator]  # as above

    def describe(self) -> Mapping[str, object]:
        """Give the cut."""
        return {"cut": self.cut}


class Cuts:
    """Thresholds at 20, 40 and 60, or at the ages of public points."""

    dimension: Any = 1

    def __init__(self, features: Sequence[PublicFeature], classes: Sequence[str]) -> None:
        """Keep what is told."""
        self.told = (features, classes)

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:
        """List the thresholds."""
        ages = [row["age"] for row in points if isinstance(row["age"], float)]
        return [AtLeast(cut) for cut in ages or [20.0, 40.0, 60.0]]

    def read(self, description: Mapping[str, Any]) -> Any:
        """Rebuild a threshold."""
        return AtLeast(description["cut"])


class Steps(Cuts):
    """Thresholds at small numbers, one of them twice."""

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:  # noqa: ARG002 -- the protocol's
        """List the thresholds."""
        return [AtLeast(cut) for cut in (-1.0, 2.0, 4.5, 4.5, 7.0)]


class FailsWhenMade(Cuts):
    """A class that cannot be made."""

    def __init__(self, features: Sequence[PublicFeature], classes: Sequence[str]) -> None:
        """Fail."""
        super().__init__(features, classes)
        raise RuntimeError("three features\nplease")


class Empty(Cuts):
    """A class without a predictor."""

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:  # noqa: ARG002 -- the protocol's
        """List nothing."""
        return []


class Endless(Cuts):
    """A class that is too large to be listed, and says so without being made."""

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:  # noqa: ARG002 -- as above
        """List more than can be."""
        return range(1 << 21)


class Mute(Cuts):
    """A class of something that does not predict."""

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:  # noqa: ARG002 -- as above
        """List numbers."""
        return [1, 2]


class Forgetful(Cuts):
    """A class that rebuilds nothing."""

    def read(self, description: Mapping[str, Any]) -> Any:  # noqa: ARG002 -- as above
        """Return nothing."""
        return None


class WithoutRead:
    """A class that lacks a part of the protocol."""

    dimension = 1

    def __init__(self, features: object, classes: object) -> None:
        """Keep what is told."""
        self.told = (features, classes)

    def hypotheses(self, points: object) -> list[AtLeast]:  # noqa: ARG002 -- as above
        """List one."""
        return [AtLeast(1.0)]


class NegativeDimension(Cuts):
    """A class of a dimension below zero."""

    dimension = -1


@dataclass
class Indescribable(AtLeast):
    """A predictor whose description is given."""

    said: Any = None

    def describe(self) -> Any:
        """Give what was given."""
        return self.said


class Indescribables(Cuts):
    """A class whose one predictor describes itself as ``said``."""

    said: Any = None

    def hypotheses(self, points: Sequence[Row]) -> Sequence[Any]:  # noqa: ARG002 -- as above
        """List one."""
        return [Indescribable(1.0, said=type(self).said)]
