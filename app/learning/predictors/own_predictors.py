"""User-written predictors, each called on one row at a time.

A predictor sees one row, as it might have been posted, and nothing else, so
that its prediction is a function of the row: it must be deterministic and keep
nothing from one row to the next.  An exception, and a label that is none of the
classes, are class 0, and nobody hears of them; a failure of the machine is neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias

import numpy as np

from app.errors import invariant
from app.learning.chunks import raise_if_machine_failed, silence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.learning.lists.hypothesis_list import Description, Encoded

Value: TypeAlias = float | str | None
Row: TypeAlias = Mapping[str, Value]
"""A value a feature, by name: a clipped number, a category, or None where it is missing."""

FALLBACK_LABEL: Final = 0
LABELS_TYPE: Final = np.uint16
CLASS_COUNT_MAX: Final = 1 << 16
# Rows that are kept as mappings, and predictors whose labels on them are kept.
ROWS_PER_BLOCK: Final = 2048
PREDICTORS_PER_BLOCK: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFeature:
    """A feature of the public schema, in the form in which predictors see it.

    Attributes:
        name: its key in a row.
        bounds: lower and upper bound of a number; None for a category.
        categories: the listed categories; None for a number.

    """

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a feature that is both or neither kind."""
        invariant((self.bounds is None) != (self.categories is None), "a feature has one kind")

    @property
    def other(self) -> str:
        """The string that stands for every string outside the listed categories.

        It is "other", with as many underscores before it as keep it apart
        from the categories.
        """
        name = "other"
        while name in (self.categories or ()):
            name = f"_{name}"
        return name

    def value(self, encoded: float) -> Value:
        """Return the value that an encoded number stands for."""
        if isnan(encoded):
            return None
        if self.categories is None:
            return encoded
        code = int(encoded)
        if code < len(self.categories):
            return self.categories[code]
        return self.other if code == len(self.categories) else None

    def posted(self, value: Value, *, missing: frozenset[str]) -> Value:
        """Return a request's value in the form in which a predictor would see it in a row."""
        if self.bounds is not None:
            lower, upper = self.bounds
            return min(max(value, lower), upper) if isinstance(value, float) else None
        if value in (self.categories or ()):
            return value
        return None if value is None or value in missing else self.other


class Predictor(Protocol):
    """One predictor (a function from a row to a label) of a user-written class."""

    def predict(self, row: Row) -> object:
        """Return the predicted class's name; a whole number stands for its digits as a name."""
        ...

    def describe(self) -> Mapping[str, object]:
        """Return plain values (text, numbers, lists) from which the predictor can be rebuilt.

        They are published with it: strings, numbers, booleans, None, lists
        and mappings with strings as keys.
        """
        ...


@dataclass(frozen=True, slots=True)
class DescribedPredictor:
    """A predictor with its description, checked when its class was made.

    Attributes:
        predictor: what is called.
        description: plain values, as they would come back from JSON.

    """

    predictor: Predictor
    description: Description


@dataclass(frozen=True, slots=True)
class Labels:
    """The class names, and their look-up by a predictor's output.

    Attributes:
        classes: public labels, in order.

    """

    classes: tuple[str, ...]

    def predicted(self, predictor: Predictor, row: Row) -> int:
        """Return the class index of a predictor's output for a row; class 0 if it fails.

        Raises:
            MachineError: the machine failed, and not the predictor.

        """
        try:
            return self.classes.index(_name(predictor.predict(row)))
        except Exception as error:  # noqa: BLE001 -- any failure is class 0, whatever its kind
            failed = [error]
        raise_if_machine_failed(failed)
        return FALLBACK_LABEL


def _name(said: object) -> str:
    """Return a label as a name; a whole number is its digits, and nothing else is one."""
    if isinstance(said, str):
        return said
    is_whole = isinstance(said, Integral) and not isinstance(said, bool)
    return str(int(said)) if is_whole and isinstance(said, Integral) else ""


class Predictors:
    """A list of user-written predictors as a hypothesis class.

    Args:
        kind: the class that they are of, ``finite`` or an import path.
        features: the public features, in schema order.
        labels: the classes.
        predictors: the predictors, described.

    """

    def __init__(
        self,
        kind: str,
        features: Sequence[PublicFeature],
        labels: Labels,
        predictors: Sequence[DescribedPredictor],
    ) -> None:
        """Store the public parts."""
        invariant(len(labels.classes) <= CLASS_COUNT_MAX, "a label fits sixteen bits")
        self.kind = kind
        self._features = tuple(features)
        self._labels = labels
        self._predictors = tuple(predictors)

    @property
    def class_count(self) -> int:
        """The number of labels, L."""
        return len(self._labels.classes)

    @cached_property
    def public_frequencies(self) -> NDArray[np.float64]:
        """The assumed frequency of label 1 for each predictor: one half, as it is unknown."""
        return np.full(len(self), 0.5)

    def __len__(self) -> int:
        """Return the number of predictors."""
        return len(self._predictors)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows unchanged, since predictors need no encoding."""
        return values

    def predict(self, encoded: Encoded) -> NDArray[np.uint16]:
        """Return the output of every predictor on every row, shape ``(N, n)``."""
        values = encoded.astype(np.float64, copy=False)
        labels = np.empty((len(self), len(values)), dtype=LABELS_TYPE)
        for start in range(0, len(values), ROWS_PER_BLOCK):
            rows = self.rows(values[start : start + ROWS_PER_BLOCK])
            labels[:, start : start + ROWS_PER_BLOCK] = self._called(rows, self._predictors)
        return labels

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact number of errors of every predictor on the rows, shape ``(N,)``. Secret.

        Rows with the same values are asked about once.
        """
        values = encoded.astype(np.float64, copy=False)
        distinct, inverse = np.unique(values, axis=0, return_inverse=True)
        counts = np.zeros((len(distinct), self.class_count), dtype=np.int64)
        np.add.at(counts, (inverse.reshape(-1), labels), 1)
        right = np.zeros(len(self), dtype=np.int64)
        for start in range(0, len(distinct), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            right += self._right_counts(self.rows(distinct[block]), counts[block])
        return len(labels) - right

    def take(self, indices: NDArray[np.int64]) -> Self:
        """Return the predictors at ``indices``, in that order."""
        chosen = [self._predictors[index] for index in indices.tolist()]
        return type(self)(self.kind, self._features, self._labels, chosen)

    def describe(self, index: int) -> Description:
        """Return a predictor's description of itself."""
        return self._predictors[index].description

    def rows(self, values: NDArray[np.float64]) -> list[Row]:
        """Return encoded rows in the read-only form that predictors receive."""
        return [row_of(self._features, row) for row in values.tolist()]

    def _right_counts(self, rows: Sequence[Row], counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count what predictors get right, given the number of each row's labels, ``(n, L)``."""
        right = np.empty(len(self), dtype=np.int64)
        for start in range(0, len(self), PREDICTORS_PER_BLOCK):
            block = slice(start, start + PREDICTORS_PER_BLOCK)
            labels = self._called(rows, self._predictors[block])
            right[block] = counts[np.arange(len(rows)), labels].sum(axis=1)
        return right

    def _called(
        self, rows: Sequence[Row], predictors: Sequence[DescribedPredictor]
    ) -> NDArray[np.uint16]:
        """Return the labels of predictors on rows, shape ``(N, n)``."""
        predicted = self._labels.predicted
        with silence():
            labels = [
                [predicted(described.predictor, row) for row in rows] for described in predictors
            ]
        return np.array(labels, dtype=LABELS_TYPE).reshape(len(predictors), len(rows))


def row_of(features: Sequence[PublicFeature], encoded: Sequence[float]) -> Row:
    """Return one encoded row in the form that predictors receive."""
    return MappingProxyType(
        {
            feature.name: feature.value(value)
            for feature, value in zip(features, encoded, strict=True)
        }
    )


def posted_row(
    features: Sequence[PublicFeature], posted: Sequence[Value], *, missing: frozenset[str]
) -> Row:
    """Return a row from a request in the form that predictors receive.

    Args:
        features: the public features, in schema order.
        posted: a checked value of each.
        missing: strings that stand for a missing value.

    """
    return MappingProxyType(
        {
            feature.name: feature.posted(value, missing=missing)
            for feature, value in zip(features, posted, strict=True)
        }
    )
