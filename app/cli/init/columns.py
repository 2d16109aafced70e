"""The public facts about a table: its columns, its label column and its classes.

No fact comes from a private row. The facts about a column may be incomplete at first: a header
gives its name, a data dictionary its bounds, a public sample its cuts (the thresholds at which a
feature is tested).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["numeric", "categorical", "boolean", "date"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """The public facts about one column of a table.

    Attributes:
        name: the column's name in the records.
        kind: the kind of feature, such as numeric or categorical; None if it is not known.
        bounds: the lower and upper bound of a number, in its own unit, or of a date, in days since
            1970-01-01; None if they are not known.
        bounds_are_sampled: whether the bounds are the smallest and largest value of a public
            sample.
        categories: the distinct categories of a categorical column, or false and true for a boolean
            one; empty if they are not known.
        cuts: the thresholds at which a number or date is tested, increasing, above the lower bound
            and at most the upper one.
        cut_shares: for each cut, the public fraction of people at or above it.
        category_shares: for each category, the public fraction of people in it; empty if not known.
        left_out: the reason why the column is not used as a feature; empty if it is used.

    """

    name: str
    kind: Kind | None = None
    bounds: tuple[float, float] | None = None
    bounds_are_sampled: bool = False
    categories: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    cut_shares: tuple[float, ...] = ()
    category_shares: tuple[float, ...] = ()
    left_out: str = ""

    @property
    def is_described(self) -> bool:
        """Whether enough is known of the column to use it as a feature, or it is to be left out."""
        has_range = self.kind in {"numeric", "date"} and self.bounds is not None
        return bool(self.left_out or has_range or (self.kind and self.categories))


@dataclass(frozen=True, kw_only=True)
class Table:
    """The public facts about a table of records that a configuration needs.

    Attributes:
        columns: all described columns except the label's, in the order of the features of a query.
        label: the name of the label's column.
        classes: the public labels, two or more.
        missing: the texts that stand for a missing value.

    """

    columns: tuple[Column, ...]
    label: str
    classes: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[Column, ...]:
        """Return the columns of the table that are features."""
        return tuple(column for column in self.columns if not column.left_out)
