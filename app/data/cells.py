"""One column of text cells to float64, validating every cell.

Each distinct cell is checked once and remembered, since most columns repeat
their values; the memory of a column is bounded.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Protocol

import numpy as np

from app.data.schema import CategoricalFeature, NumericFeature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.schema import Feature, Schema

REMEMBERED_CELLS_MAX = 65_536
DECIMAL_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class CellError(Exception):
    """A cell that does not fit; the text says why and holds no value."""


class ColumnReader(Protocol):
    """Reads the cells of one column."""

    def read(self, cell: str) -> float:
        """Return a cell's encoding.

        Raises:
            CellError: the cell does not fit the column.

        """


class RememberingColumn(dict[str, float]):
    """A column reader that looks every distinct cell up once.

    Args:
        reader: what checks a cell that is not remembered.

    """

    def __init__(self, reader: ColumnReader) -> None:
        """Start with nothing remembered."""
        super().__init__()
        self.reader = reader

    def __missing__(self, cell: str) -> float:
        """Check a cell and remember it."""
        encoded = self.reader.read(cell)
        self[cell] = encoded
        return encoded

    def encode(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Encode a block of cells, float64 of shape (len(cells),).

        Raises:
            CellError: some cell does not fit; which one is for the caller.

        """
        if len(self) > REMEMBERED_CELLS_MAX:
            self.clear()
        return np.fromiter(map(self.__getitem__, cells), dtype=np.float64, count=len(cells))


class NumericColumn:
    """Cells of a numeric feature: decimal numbers, clipped to the bounds."""

    def __init__(self, feature: NumericFeature, missing_tokens: frozenset[str]) -> None:
        """Keep the public bounds and what stands for a missing value."""
        self._lower, self._upper = feature.lower, feature.upper
        self._missing_tokens = missing_tokens

    def read(self, cell: str) -> float:
        """Return a clipped number, or NaN for a missing one."""
        if cell in self._missing_tokens:
            return math.nan
        if not DECIMAL_NUMBER.fullmatch(cell.strip(" \t")):
            raise CellError("is not a number")
        number = float(cell)
        if not math.isfinite(number):
            raise CellError("is not a finite number")
        # Adding 0.0 turns -0.0 into 0.0, as in a posted vector.
        return min(max(number, self._lower), self._upper) + 0.0


class CategoricalColumn:
    """Cells of a categorical feature: any text."""

    def __init__(self, feature: CategoricalFeature, missing_tokens: frozenset[str]) -> None:
        """Keep the public codes."""
        self._codes = feature.codes(missing_tokens)
        self._other_code = feature.other_code

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

    def read(self, cell: str) -> float:
        """Return the index of a class."""
        index = self._indices.get(cell)
        if index is None:
            raise CellError("is not one of data.classes")
        return index


def column_reader(feature: Feature, schema: Schema) -> ColumnReader:
    """Return the reader of a feature's column."""
    if isinstance(feature, NumericFeature):
        return NumericColumn(feature, schema.missing_tokens)
    return CategoricalColumn(feature, schema.missing_tokens)


def _require_unicode(cell: str) -> None:
    """Refuse bytes that are not UTF-8, which the reader of the file lets through escaped."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise CellError("is not UTF-8 text") from None
