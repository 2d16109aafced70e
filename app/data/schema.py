"""The public schema of rows and queries: features, label, and their allowed values.

Everything in the schema is public and fixed before any private row is read. A category is encoded
as a number, its *code*: the index of the category in the feature's list. A *cut* is a threshold c
of a numeric feature or of a date, for the feature test ``x >= c``.
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
    """A numeric feature; values outside its bounds are clipped to the nearest bound.

    Attributes:
        name: the name of the feature's column in the source, and of its value in a posted query.
        lower: the public lower bound, finite, in the feature's own unit.
        upper: the public upper bound, finite, above ``lower``.
        thresholds: public cuts c, for tests ``x >= c``, strictly increasing, within the bounds;
            None if the setting ``bins``, a number of intervals, determines the cuts.
        threshold_shares: a public estimate of the share of people at or above each cut, in [0, 1].

    """

    kind: ClassVar[str] = "numeric"
    name: str
    lower: float
    upper: float
    thresholds: tuple[float, ...] | None = None
    threshold_shares: tuple[float, ...] | None = None

    def cut(self, written: float | str) -> float:
        """Return a cut of this feature as a number, parsed from its text.

        Raises:
            ValueError: the text is not a value of the feature.

        """
        return float(written)

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only; numbers are written by ``repr``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "bounds": [repr(self.lower), repr(self.upper)],
            "thresholds": _canonical_floats(self.thresholds),
            "threshold_shares": _canonical_floats(self.threshold_shares),
        }


@dataclass(frozen=True, kw_only=True)
class DateFeature(NumericFeature):
    """A feature that is a date, encoded as the number of days from 1970-01-01."""

    kind: ClassVar[str] = "date"

    def cut(self, written: float | str) -> float:
        """Return a cut as a number of days, from a date or from a number of days.

        Raises:
            ValueError: the text is not a date.

        """
        day = written if isinstance(written, float) else day_in(written)
        if day is None:
            raise ValueError(NO_DATE)
        return day

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only; dates are written in ISO 8601."""
        return super().canonical() | {
            "bounds": [iso_date(self.lower), iso_date(self.upper)],
            "thresholds": [iso_date(cut) for cut in self.thresholds or ()],
        }


@dataclass(frozen=True, kw_only=True)
class CategoricalFeature:
    """A categorical feature; all strings outside its list count as one further category.

    Attributes:
        name: the name of the feature's column in the source, and of its value in a posted query.
        categories: the public categories, distinct.
        category_shares: a public estimate of the share of people in each category, in [0, 1].

    """

    kind: ClassVar[str] = "categorical"
    name: str
    categories: tuple[str, ...]
    category_shares: tuple[float, ...] | None = None

    def codes(self, missing_tokens: frozenset[str]) -> CategoryCodes:
        """Return a mapping from each category and each text for a missing value to its code.

        Args:
            missing_tokens: the texts that stand for a missing value.

        """
        codes: CategoryCodes = dict.fromkeys((*missing_tokens, None), self.missing_code)
        codes.update({category: code for code, category in enumerate(self.categories)})
        return codes

    @property
    def other_code(self) -> int:
        """Return the code of all strings outside the list, which is the number of categories."""
        return len(self.categories)

    @property
    def missing_code(self) -> int:
        """Return the code of a missing value: the number of listed categories plus one."""
        return len(self.categories) + 1

    def canonical(self) -> dict[str, object]:
        """Return the feature as strings and lists only; numbers are written by ``repr``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "categories": list(self.categories),
            "category_shares": _canonical_floats(self.category_shares),
        }


@dataclass(frozen=True, kw_only=True)
class BooleanFeature(CategoricalFeature):
    """A boolean feature: a categorical feature with the two categories ``false`` and ``true``."""

    kind: ClassVar[str] = "boolean"
    categories: tuple[str, ...] = TRUE_OR_FALSE
    category_shares: tuple[float, ...] | None = (0.5, 0.5)


Feature = NumericFeature | CategoricalFeature


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The label, its classes, and the features in the order in which a query lists its values.

    Attributes:
        label: the name of the label's column.
        classes: the public labels, two or more, distinct; if two labels have equally many votes,
            the first one wins.
        features: one or more features with distinct names, none of which is the label's name.
        missing: strings that stand for a missing value, in addition to the empty string.

    """

    label: str
    classes: tuple[str, ...]
    features: tuple[Feature, ...]
    missing: tuple[str, ...] = ()

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of the features, in the order of the schema."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def feature_indices(self) -> dict[str, int]:
        """Return the index of each feature in the schema, by its name."""
        return {name: index for index, name in enumerate(self.feature_names)}

    @cached_property
    def numeric_flags(self) -> tuple[bool, ...]:
        """Return for each feature whether it is a number; a date does not count as a number."""
        return tuple(feature.kind == NumericFeature.kind for feature in self.features)

    @cached_property
    def missing_tokens(self) -> frozenset[str]:
        """Return every string that stands for a missing value, the empty string included."""
        return frozenset((*self.missing, ""))

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Return the numbers among the texts that stand for a missing value, ascending."""
        return tuple(sorted(finite_numbers(self.missing_tokens)))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether every feature of the schema is a number; a date does not count as a number."""
        return all(self.numeric_flags)

    @cached_property
    def category_codes(self) -> tuple[CategoryCodes | None, ...]:
        """Return the codes of each feature's categories; None for a number or a date."""
        return tuple(
            None if isinstance(feature, NumericFeature) else feature.codes(self.missing_tokens)
            for feature in self.features
        )

    @cached_property
    def other_codes(self) -> tuple[int | None, ...]:
        """Return each feature's code for strings outside its list; None for a number or a date."""
        return tuple(
            None if isinstance(feature, NumericFeature) else feature.other_code
            for feature in self.features
        )

    @cached_property
    def category_names(self) -> tuple[Names | None, ...]:
        """Return the public names of each feature's categories; None for a number or a date."""
        tokens = sorted(self.missing_tokens)
        return tuple(
            None if isinstance(feature, NumericFeature) else Names((*feature.categories, *tokens))
            for feature in self.features
        )

    @cached_property
    def value_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lower and the upper bounds to which encoded values are clipped.

        Returns:
            Two arrays, float64, shape ``(1, features)`` each: arrays of the shape of a single
            encoded vector are compared with it in a fifth of the time.

        """
        bounds = [
            (feature.lower, feature.upper)
            if isinstance(feature, NumericFeature)
            else (0.0, float(feature.missing_code))
            for feature in self.features
        ]
        lower, upper = np.array(bounds, dtype=np.float64).T.copy()[:, np.newaxis]
        return lower, upper

    def canonical(self) -> dict[str, object]:
        """Return the schema as strings, lists and mappings only, for the ledger's first entry."""
        return {
            "label": self.label,
            "classes": list(self.classes),
            "features": [feature.canonical() for feature in self.features],
            "missing": list(self.missing),
        }


def _canonical_floats(numbers: tuple[float, ...] | None) -> list[str]:
    """Return numbers as the shortest strings that read back the same."""
    return [] if numbers is None else [repr(number) for number in numbers]
