"""The public facts about a table: its columns, its label column and its classes.

Nothing here is read from a private row.  A column is known in part at first: a header has
its name, a dictionary its bounds, a public sample its cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["numeric", "categorical", "boolean", "date"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """The public facts about one column of a table.

    Attributes:
        name: of the column in the records.
        kind: None where nothing says it.
        bounds: (lower, upper) of a number, in its own unit, or of a date, in days from
            1970-01-01; None where nothing says it.
        bounds_are_sampled: whether they are the least and the greatest value of a sample.
        categories: of a categorical column, distinct, or of a boolean, false and true; empty
            where nothing says them.
        cuts: of a number or a date, increasing, above the lower bound and at most the upper one.
        cut_shares: public share of people at or above each cut; one for each cut.
        category_shares: public share of people in each category; empty or one for each.
        left_out: why the column is no feature; empty where it is one.

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
        """Whether enough is known of the column to make it a feature, or it is to be left out."""
        has_range = self.kind in {"numeric", "date"} and self.bounds is not None
        return bool(self.left_out or has_range or (self.kind and self.categories))


@dataclass(frozen=True, kw_only=True)
class Table:
    """The public facts about a table of records that a configuration needs.

    Attributes:
        columns: all columns but the label's, described, in the order of a posted list.
        label: column of the label.
        classes: public labels, two or more.
        missing: strings that stand for a missing value.

    """

    columns: tuple[Column, ...]
    label: str
    classes: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[Column, ...]:
        """Return the columns of the table that are features."""
        return tuple(column for column in self.columns if not column.left_out)
