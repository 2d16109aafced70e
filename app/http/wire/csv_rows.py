"""The rows of a CSV with a header, as clients post and ask them."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import TYPE_CHECKING, Final

from app.errors import InvalidFeaturesError, MalformedBodyError

if TYPE_CHECKING:
    from app.data.validate import Schema

NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NO_CSV: Final = "the body is not a CSV in UTF-8 with a header and rows of its length"


def number_in(cell: str) -> float | None:
    """Return the finite number that a cell spells; None where it spells none."""
    number = float(cell) if NUMBER.fullmatch(cell.strip(" \t")) else math.nan
    return number if math.isfinite(number) else None


def read_csv(schema: Schema, body: bytes) -> list[dict[str, object]]:
    """Return a row an object by column name, null where a cell is missing.

    Raises:
        MalformedBodyError: not a CSV, or without a header.
        InvalidFeaturesError: a cell of a numeric feature that is no number.

    """
    try:
        text = io.StringIO(body.decode("utf-8-sig"), newline="")
        header, *rows = (row for row in csv.reader(text, strict=True) if row)
    except (csv.Error, ValueError):
        raise MalformedBodyError(NO_CSV) from None
    if len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
        raise MalformedBodyError(NO_CSV)
    flags = zip(schema.feature_names, schema.numeric_flags, strict=True)
    numeric = {name for name, is_numeric in flags if is_numeric}
    return [
        {
            name: None if cell in schema.missing_tokens else _value(name, cell, numeric)
            for name, cell in zip(header, row, strict=True)
        }
        for row in rows
    ]


def _value(name: str, cell: str, numeric: set[str]) -> float | str:
    if name not in numeric:
        return cell
    number = number_in(cell)
    if number is None:
        raise InvalidFeaturesError(feature=name, problem="a finite number is needed in every cell")
    return number
