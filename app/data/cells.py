"""One column of cells to float64, validating every cell.

Text is read by the rules of a CSV; each distinct text is checked once and
remembered, since most columns repeat their values; the memory of a column is
bounded.  Numbers of a typed source take the same path at once, as an array.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from app.data.schema import CategoricalFeature, NumericFeature
from app.data.spelling import CellError, spelled
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from app.data.schema import Feature, Schema

    Cells: TypeAlias = Sequence[str] | NDArray[np.float64]
    """Texts as in a CSV; or numbers of a numeric feature, NaN where one is missing."""

REMEMBERED_CELLS_MAX = 65_536
DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# Every character of a decimal number and of the blanks about it, and what joins cells:
# a cell that holds a comma of its own is no number to `float` either.
JOINT = ","
NOT_OF_NUMBERS = re.compile(r"[^0-9+\-.eE \t,]", re.ASCII)
NOT_FINITE = "is not a finite number"


class ColumnReader(Protocol):
    """Reads the cells of one column."""

    @property
    def names(self) -> Collection[str]:
        """The public texts that a cell may be: categories, classes, missing ones."""
        ...

    def read(self, cell: str) -> float:
        """Return a cell's encoding.

        Raises:
            CellError: the cell does not fit the column.

        """
        ...


class SourceColumn(dict[str, float]):
    """A column of the source, which looks every distinct text up once.

    Attributes:
        name: of the column in the source.
        reader: what checks a text that is not remembered.

    """

    def __init__(self, name: str, reader: ColumnReader) -> None:
        """Start with nothing remembered."""
        super().__init__()
        self.name = name
        self.reader = reader
        self._repeats = True

    def __missing__(self, cell: str) -> float:
        """Check a text and remember it."""
        encoded = self.reader.read(cell)
        self[cell] = encoded
        return encoded

    @property
    def takes_numbers(self) -> bool:
        """Whether numbers may come as an array, without their text."""
        return isinstance(self.reader, NumericColumn)

    def spell(self, value: object) -> str:
        """Return a typed value as the text that a CSV would hold.

        Raises:
            CellError: a value of a type that no CSV holds.

        """
        return spelled(value, self.reader.names)

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """Encode a block of cells, float64 of shape (len(cells),).

        Raises:
            CellError: some cell does not fit; which one is for the caller.

        """
        if isinstance(cells, np.ndarray):
            return self._numeric().read_numbers(cells)
        numbers = None if self._repeats else self._numeric().read_texts(cells)
        return self._looked_up(cells) if numbers is None else numbers

    def _looked_up(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Look every text up; numbers that hardly repeat are read together from then on."""
        if len(self) > REMEMBERED_CELLS_MAX:
            self.clear()
        known = len(self)
        encoded = np.fromiter(map(self.__getitem__, cells), dtype=np.float64, count=len(cells))
        self._repeats = not self.takes_numbers or 2 * (len(self) - known) <= len(cells)
        return encoded

    def check(self, cell: str | float) -> None:
        """Check one cell.

        Raises:
            CellError: it does not fit.

        """
        if isinstance(cell, str):
            self.reader.read(cell)
        elif math.isinf(cell):
            raise CellError(NOT_FINITE)

    def _numeric(self) -> NumericColumn:
        """Return the reader of a numeric feature."""
        invariant(isinstance(self.reader, NumericColumn), "numbers belong to a numeric feature")
        return self.reader  # type: ignore[return-value]  # checked above


class NumericColumn:
    """Cells of a numeric feature: decimal numbers, clipped to the bounds."""

    def __init__(self, feature: NumericFeature, missing_tokens: frozenset[str]) -> None:
        """Keep the public bounds and what stands for a missing value."""
        self._lower, self._upper = feature.lower, feature.upper
        self.names = missing_tokens
        numbers = [float(token) for token in missing_tokens if DECIMAL_NUMBER.fullmatch(token)]
        self._missing_numbers = [number for number in numbers if math.isfinite(number)]

    def read(self, cell: str) -> float:
        """Return a clipped number, or NaN for a missing one."""
        if cell in self.names:
            return math.nan
        if not DECIMAL_NUMBER.fullmatch(cell.strip(" \t")):
            raise CellError("is not a number")
        number = float(cell)
        if not math.isfinite(number):
            raise CellError(NOT_FINITE)
        # Adding 0.0 turns -0.0 into 0.0, as in a posted vector.
        return min(max(number, self._lower), self._upper) + 0.0

    def read_texts(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Return what :meth:`read` returns of many cells at once.

        Returns:
            Shape ``(len(cells),)``; None where some cell may be no number, or is not
            finite, and must be read alone.

        """
        some_missing = not self.names.isdisjoint(cells)
        present = [cell for cell in cells if cell not in self.names] if some_missing else cells
        # Of these characters `float` takes the same as the pattern of one cell.
        if NOT_OF_NUMBERS.search(JOINT.join(present)):
            return None
        try:
            numbers = np.fromiter(map(float, present), dtype=np.float64, count=len(present))
        except ValueError:
            return None
        if not np.isfinite(numbers).all():
            return None
        clipped: NDArray[np.float64] = np.clip(numbers, self._lower, self._upper) + 0.0
        if not some_missing:
            return clipped
        encoded = np.full(len(cells), math.nan)
        encoded[[cell not in self.names for cell in cells]] = clipped
        return encoded

    def read_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return clipped numbers, and one NaN, always the same, for every missing one."""
        if np.isinf(numbers).any():
            raise CellError(NOT_FINITE)
        clipped: NDArray[np.float64] = np.clip(numbers, self._lower, self._upper) + 0.0
        clipped[np.isnan(numbers) | np.isin(numbers, self._missing_numbers)] = math.nan
        return clipped


class CategoricalColumn:
    """Cells of a categorical feature: any text."""

    def __init__(self, feature: CategoricalFeature, missing_tokens: frozenset[str]) -> None:
        """Keep the public codes."""
        self._codes = feature.codes(missing_tokens)
        self._other_code = feature.other_code
        self.names = frozenset((*feature.categories, *missing_tokens))

    def read(self, cell: str) -> float:
        """Return the code of a category, of a missing one or of any other text."""
        code = self._codes.get(cell)
        if code is not None:
            return code
        _require_unicode(cell)
        return self._other_code


class LabelColumn:
    """Cells of the label: one of the classes."""

    def __init__(self, classes: Sequence[str]) -> None:
        """Keep the index of each class."""
        self._indices = {label: index for index, label in enumerate(classes)}

    @property
    def names(self) -> Collection[str]:
        """The classes."""
        return self._indices

    def read(self, cell: str) -> float:
        """Return the index of a class."""
        index = self._indices.get(cell)
        if index is None:
            raise CellError("is not one of data.classes")
        return index


def source_columns(schema: Schema) -> list[SourceColumn]:
    """Return a fresh column for each feature, and one for the label, the last."""
    columns = [
        SourceColumn(feature.name, _column_reader(feature, schema)) for feature in schema.features
    ]
    return [*columns, SourceColumn(schema.label, LabelColumn(schema.classes))]


def _column_reader(feature: Feature, schema: Schema) -> ColumnReader:
    """Return the reader of a feature's column."""
    if isinstance(feature, NumericFeature):
        return NumericColumn(feature, schema.missing_tokens)
    return CategoricalColumn(feature, schema.missing_tokens)


def _require_unicode(cell: str) -> None:
    """Refuse bytes that are not UTF-8, which the reader of a source lets through escaped."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise CellError("is not UTF-8 text") from None
