"""User-written predictors, each called on one row at a time.

A predictor is a function from a row to a label. It gets one row at a time, in the form in which a
client would send it. Its prediction must depend on this row only: the predictor must be
deterministic and must not keep anything from one row to the next.

If a predictor raises an exception or returns an unknown label, its prediction is class 0, and no
message is shown. An error of the machine, such as too little memory, is raised instead.
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

    from app.learning.enumerated.hypothesis_list import Description, Encoded

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
    """A feature of the public schema, in the form that user-written predictors get.

    Attributes:
        name: the name of the feature, its key in a row.
        bounds: the lower and the upper bound of a numeric feature; None for a categorical one.
        categories: the listed categories; None for a numeric feature.

    """

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check that the feature is either numeric or categorical."""
        invariant((self.bounds is None) != (self.categories is None), "a feature has one kind")

    @property
    def other(self) -> str:
        """The string that replaces every value outside the listed categories.

        It is "other". If a listed category has this name, underscores are put before "other" until
        the string differs from every listed category.
        """
        name = "other"
        while name in (self.categories or ()):
            name = f"_{name}"
        return name

    def value(self, encoded: float) -> Value:
        """Return the value that an encoded number stands for; None if the value is missing."""
        if isnan(encoded):
            return None
        if self.categories is None:
            return encoded
        code = int(encoded)
        if code < len(self.categories):
            return self.categories[code]
        return self.other if code == len(self.categories) else None

    def posted(self, value: Value, *, missing: frozenset[str]) -> Value:
        """Return a value from a request in the form that a predictor gets.

        A number is clipped to its bounds, a category outside the list becomes :attr:`other`, and a
        missing value becomes None.

        Args:
            value: the value of this feature in the request.
            missing: strings that stand for a missing value.

        """
        if self.bounds is not None:
            lower, upper = self.bounds
            return min(max(value, lower), upper) if isinstance(value, float) else None
        if value in (self.categories or ()):
            return value
        return None if value is None or value in missing else self.other


class Predictor(Protocol):
    """One predictor (a function from a row to a label) of a user-written class."""

    def predict(self, row: Row) -> object:
        """Return the name of the predicted class; the integer 1 stands for the name "1".

        Args:
            row: one value per feature, by the feature's name.

        """
        ...

    def describe(self) -> Mapping[str, object]:
        """Return plain values, to be published, from which the predictor can be made again.

        Allowed values are strings, numbers, booleans, None, lists, and mappings with strings as
        keys.
        """
        ...


@dataclass(frozen=True, slots=True)
class DescribedPredictor:
    """A predictor with its description, which is already checked.

    Attributes:
        predictor: the predictor.
        description: the plain values that describe the predictor, in the form in which JSON returns
            them.

    """

    predictor: Predictor
    description: Description


@dataclass(frozen=True, slots=True)
class Labels:
    """The names of the classes, and the look-up of a predictor's output among them.

    Attributes:
        classes: the names of the classes, in the order of the class indices.

    """

    classes: tuple[str, ...]

    def predicted(self, predictor: Predictor, row: Row) -> int:
        """Return the class index of a predictor's output for a row; class 0 if the predictor fails.

        Raises:
            MachineError: the machine caused the failure, for example by too little memory.

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
        kind: the name of the class: ``finite`` or an import path.
        features: the public features, in the order of the schema.
        labels: the names of the classes.
        predictors: the predictors with their descriptions.

    """

    def __init__(
        self,
        kind: str,
        features: Sequence[PublicFeature],
        labels: Labels,
        predictors: Sequence[DescribedPredictor],
    ) -> None:
        """Store the class's name, its features, its labels and its predictors."""
        invariant(len(labels.classes) <= CLASS_COUNT_MAX, "a label fits sixteen bits")
        self.kind = kind
        self._features = tuple(features)
        self._labels = labels
        self._predictors = tuple(predictors)

    @property
    def class_count(self) -> int:
        """The number of labels."""
        return len(self._labels.classes)

    @cached_property
    def public_frequencies(self) -> NDArray[np.float64]:
        """The assumed share of rows with label 1 for each predictor, which is one half."""
        return np.full(len(self), 0.5)

    def __len__(self) -> int:
        """Return the number of predictors."""
        return len(self._predictors)

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values unchanged, since predictors need no further encoding."""
        return values

    def predict(self, encoded: Encoded) -> NDArray[np.uint16]:
        """Return the label of every predictor on every row, shape ``(predictors, rows)``.

        Args:
            encoded: feature values encoded by the public schema, shape ``(rows, features)``.

        """
        values = encoded.astype(np.float64, copy=False)
        labels = np.empty((len(self), len(values)), dtype=LABELS_TYPE)
        for start in range(0, len(values), ROWS_PER_BLOCK):
            rows = self.rows(values[start : start + ROWS_PER_BLOCK])
            labels[:, start : start + ROWS_PER_BLOCK] = self._called(rows, self._predictors)
        return labels

    def error_counts(self, encoded: Encoded, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return every predictor's exact number of errors on the rows, shape ``(predictors,)``.

        The numbers are secret. A predictor is called only once for rows with equal values.

        Args:
            encoded: feature values encoded by the public schema, shape ``(rows, features)``.
            labels: class indices, shape ``(rows,)``.

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
        """Return the description that the predictor at ``index`` gives of itself."""
        return self._predictors[index].description

    def rows(self, values: NDArray[np.float64]) -> list[Row]:
        """Return rows in the read-only form that predictors get.

        Args:
            values: feature values encoded by the public schema, shape ``(rows, features)``.

        """
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
    """Return one row, encoded by the public schema, in the form that predictors get."""
    return MappingProxyType(
        {
            feature.name: feature.value(value)
            for feature, value in zip(features, encoded, strict=True)
        }
    )


def posted_row(
    features: Sequence[PublicFeature], posted: Sequence[Value], *, missing: frozenset[str]
) -> Row:
    """Return a row from a request in the form that predictors get.

    Args:
        features: the public features, in the order of the schema.
        posted: the already checked value of each feature.
        missing: strings that stand for a missing value.

    """
    return MappingProxyType(
        {
            feature.name: feature.posted(value, missing=missing)
            for feature, value in zip(features, posted, strict=True)
        }
    )
