"""The public schema of rows and queries: features, label, and their allowed values.

Everything here is public and fixed before any private row is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from app.data.field_values import NO_DATE, TRUE_OR_FALSE, Names, day_in, finite_numbers, iso_date

if TYPE_CHECKING:
    from numpy.typing import NDArray

    CategoryCodes = dict[float | str | None, int]


@dataclass(frozen=True, kw_only=True)
class NumericFeature:
    """A numeric feature; values outside its bounds are clipped.

    Attributes:
        name: column of the source and key in a posted query.
        lower: public lower bound, finite, in the feature's own unit.
        upper: public upper bound, finite, above ``lower``.
        thresholds: public cuts, strictly increasing, within the bounds; None
            where ``bins`` decides.
        threshold_shares: public share of people at or above each cut, in [0, 1].

    """

    kind: ClassVar[str] = "numeric"
    name: str
    lower: float
    upper: float
    thresholds: tuple[float, ...] | None = None
    threshold_shares: tuple[float, ...] | None = None

    def cut(self, written: float | str) -> float:
        """Return a threshold of this feature as a number, parsed from its text.

        Raises:
            ValueError: it is not written as values of the feature are.

        """
        return float(written)

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only, with floats by ``repr``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "bounds": [repr(self.lower), repr(self.upper)],
            "thresholds": _canonical_floats(self.thresholds),
            "threshold_shares": _canonical_floats(self.threshold_shares),
        }


@dataclass(frozen=True, kw_only=True)
class DateFeature(NumericFeature):
    """A date, encoded as the number of days from 1970-01-01."""

    kind: ClassVar[str] = "date"

    def cut(self, written: float | str) -> float:
        """Return a threshold as a number of days, from a date or from such a number.

        Raises:
            ValueError: it is no date.

        """
        day = written if isinstance(written, float) else day_in(written)
        if day is None:
            raise ValueError(NO_DATE)
        return day

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only, dates in ISO 8601."""
        return super().canonical() | {
            "bounds": [iso_date(self.lower), iso_date(self.upper)],
            "thresholds": [iso_date(cut) for cut in self.thresholds or ()],
        }


@dataclass(frozen=True, kw_only=True)
class CategoricalFeature:
    """A categorical feature; any unlisted string counts as one further category.

    Attributes:
        name: column of the source and key in a posted query.
        categories: public categories, distinct.
        category_shares: public share of people in each category, in [0, 1].

    """

    kind: ClassVar[str] = "categorical"
    name: str
    categories: tuple[str, ...]
    category_shares: tuple[float, ...] | None = None

    def codes(self, missing_tokens: frozenset[str]) -> CategoryCodes:
        """Return the code of every category and of every missing value, by its text."""
        codes: CategoryCodes = dict.fromkeys((*missing_tokens, None), self.missing_code)
        codes.update({category: code for code, category in enumerate(self.categories)})
        return codes

    @property
    def other_code(self) -> int:
        """Return the code of unlisted strings, which is the number of listed categories."""
        return len(self.categories)

    @property
    def missing_code(self) -> int:
        """Return the code of a missing value: one more than the code of unlisted strings."""
        return len(self.categories) + 1

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only, with floats by ``repr``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "categories": list(self.categories),
            "category_shares": _canonical_floats(self.category_shares),
        }


@dataclass(frozen=True, kw_only=True)
class BooleanFeature(CategoricalFeature):
    """A boolean feature: a categorical one with exactly two categories."""

    kind: ClassVar[str] = "boolean"
    categories: tuple[str, ...] = TRUE_OR_FALSE
    category_shares: tuple[float, ...] | None = (0.5, 0.5)


Feature = NumericFeature | CategoricalFeature


@dataclass(frozen=True, kw_only=True)
class Schema:
    """A schema: the label, its classes, and the features in the order of a client's list of values.

    Attributes:
        label: column of the label.
        classes: public labels, two or more, distinct; the order breaks ties.
        features: one or more, names distinct and none the label's.
        missing: strings that stand for a missing value, besides an empty one.

    """

    label: str
    classes: tuple[str, ...]
    features: tuple[Feature, ...]
    missing: tuple[str, ...] = ()

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of the features, in order."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def feature_indices(self) -> dict[str, int]:
        """Return the position of each feature by its name."""
        return {name: index for index, name in enumerate(self.feature_names)}

    @cached_property
    def numeric_flags(self) -> tuple[bool, ...]:
        """Return, for each feature, whether it is numeric; dates are not."""
        return tuple(feature.kind == NumericFeature.kind for feature in self.features)

    @cached_property
    def missing_tokens(self) -> frozenset[str]:
        """Return every string that stands for a missing value, the empty one included."""
        return frozenset((*self.missing, ""))

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Return every number that stands for a missing value of a numeric feature."""
        return tuple(sorted(finite_numbers(self.missing_tokens)))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether every feature of the schema is a number."""
        return all(self.numeric_flags)

    @cached_property
    def category_codes(self) -> tuple[CategoryCodes | None, ...]:
        """Return the codes of each feature's categories; None for a numeric feature."""
        return tuple(
            None if isinstance(feature, NumericFeature) else feature.codes(self.missing_tokens)
            for feature in self.features
        )

    @cached_property
    def other_codes(self) -> tuple[int | None, ...]:
        """Return each feature's code of unlisted strings; None for a numeric feature."""
        return tuple(
            None if isinstance(feature, NumericFeature) else feature.other_code
            for feature in self.features
        )

    @cached_property
    def category_names(self) -> tuple[Names | None, ...]:
        """Return the look-up from names to categories of each feature; None for a numeric one."""
        tokens = sorted(self.missing_tokens)
        return tuple(
            None if isinstance(feature, NumericFeature) else Names((*feature.categories, *tokens))
            for feature in self.features
        )

    @cached_property
    def value_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the bounds to which encoded values are clipped, float64 of shape (d,) each."""
        bounds = [
            (feature.lower, feature.upper)
            if isinstance(feature, NumericFeature)
            else (0.0, float(feature.missing_code))
            for feature in self.features
        ]
        lower, upper = np.array(bounds, dtype=np.float64).T
        return lower, upper

    def canonical(self) -> dict[str, object]:
        """Return the schema as strings, lists and tables only, for the ledger's first entry."""
        return {
            "label": self.label,
            "classes": list(self.classes),
            "features": [feature.canonical() for feature in self.features],
            "missing": list(self.missing),
        }


def _canonical_floats(numbers: tuple[float, ...] | None) -> list[str]:
    """Return numbers as the shortest strings that read back the same."""
    return [] if numbers is None else [repr(number) for number in numbers]
