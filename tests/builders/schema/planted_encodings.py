"""The three ways in which rows once re-encoded their neighbours, planted again."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from app.data.field_values import CellError, number_in
from app.data.sources.column_values import (
    NUMBER_TYPES,
    CategoricalColumn,
    LabelColumn,
    NumericColumn,
    SourceColumn,
    Values,
)
from app.estimator import classifier as estimator
from app.estimator import frame_columns as estimator_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pytest

    from app.data.sources.column_values import Cells


def block_typed(patch: pytest.MonkeyPatch) -> None:
    """Read a block as numbers where all are, and else all of it as text, by spelling alone."""

    def values(self: SourceColumn, cells: Sequence[object]) -> Any:
        if self.takes_numbers and set(map(type, cells)) <= NUMBER_TYPES:
            numbers = [math.nan if value is None else value for value in cells]
            return self._numeric().read_numbers(np.array(numbers, dtype=np.float64))
        return np.array([self.reader.read(old_text(value, self.reader)) for value in cells])

    def canonical(self: NumericColumn, value: object) -> float:
        text = str(value)
        if text in self._tokens:
            return math.nan
        number = number_in(text)
        if number is None:
            raise CellError
        return number

    patch.setattr(SourceColumn, "_values", values)
    patch.setattr(NumericColumn, "canonical", canonical)


def alike_zeros(patch: pytest.MonkeyPatch) -> None:
    """Spell every zero of a block of an archive like the first in the block."""
    real = SourceColumn.encode

    def encode(self: SourceColumn, cells: Cells) -> Any:
        if isinstance(cells, Values) and cells.places is not None:
            texts = [old_text(value, self.reader) for value in cells.distinct]
            cells = Values(texts, cells.places)
        return real(self, cells)

    patch.setattr(SourceColumn, "encode", encode)


def spelled_by_type(patch: pytest.MonkeyPatch) -> None:
    """Spell the cells of the estimator by the type of the whole array."""

    def cells(
        _self: estimator_columns.CategoricalColumn, values: np.ndarray[Any, Any]
    ) -> list[float | str | None]:
        missing = [value is None or str(value) == "nan" for value in values.tolist()]
        texts = [str(value) for value in values.tolist()]
        return [None if gone else text for gone, text in zip(missing, texts, strict=True)]

    patch.setattr(estimator_columns.CategoricalColumn, "cells", cells)
    patch.setattr(estimator, "as_given", lambda rows: rows)


def old_text(value: object, reader: object) -> str:
    """Return the first usual text of a value that is a public name, as e54552f did."""
    names: Collection[str] = ()
    if isinstance(reader, CategoricalColumn | LabelColumn):
        names = reader.names.known
    elif isinstance(reader, NumericColumn):
        names = reader._tokens
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    texts = _spellings(value)
    return next((text for text in texts if text in names), texts[0])


def _spellings(value: object) -> tuple[str, ...]:
    if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
        return ("",)
    if isinstance(value, bool):
        return (str(value), str(value).lower())
    if isinstance(value, float) and value.is_integer():
        return (repr(value), f"{value:.0f}")
    return (str(value),)
