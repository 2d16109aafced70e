"""Public points from a CSV file: feature vectors that need no protection, parsed like queries.

They determine the hypothesis class from which the published classifier is drawn. Columns are found
by their names; the label column and unknown columns are ignored.
"""

from __future__ import annotations

import csv
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from app.data.field_values import number_in, with_point
from app.data.schema import NumericFeature
from app.data.sources.csv_dialect import PLAIN_CSV, csv_problem
from app.data.vectors import encode, parse_features
from app.errors import ConfigurationError, InvalidFeaturesError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from numpy.typing import NDArray

    from app.data.schema import Feature, Schema
    from app.data.sources.csv_dialect import CsvDialect
    from app.data.vectors import Vector

OPTION: Final = "--public"
POINTS_PER_BLOCK: Final = 8192


def no_points(schema: Schema) -> NDArray[np.float64]:
    """Return an empty array of public points, float64, shape ``(0, features)``."""
    return encode(schema, ())


def read_public_points(
    path: Path, schema: Schema, dialect: CsvDialect = PLAIN_CSV
) -> NDArray[np.float64]:
    """Return every row of a CSV file, parsed as a query and encoded by the public schema.

    Args:
        path: the path of the file.
        schema: the public schema.
        dialect: the separators and the encoding of the file.

    Returns:
        Feature values, float64, shape ``(points, features)``: the same numbers as if the rows were
        sent to ``POST /query``.

    Raises:
        ConfigurationError: the file cannot be read, or a row is not a valid query. The error names
            the column and the row number; row 1 is the first row below the header.

    """
    try:
        with dialect.open(path) as file:
            blocks = list(_Points(file, schema, dialect).blocks())
    except csv.Error as error:
        raise ConfigurationError(OPTION, f"{path} {csv_problem(error)}") from None
    except UnicodeError:
        written = dialect.encoding.upper()
        raise ConfigurationError(OPTION, f"{path} is not a CSV in {written}") from None
    except OSError as error:
        reason = (error.strerror or "the system refuses").lower()
        raise ConfigurationError(OPTION, f"cannot read {path}: {reason}") from None
    if not blocks:
        raise ConfigurationError(OPTION, f"{path} has no row of data")
    return np.concatenate(blocks)


def read_label_shares(
    path: Path, label: str, dialect: CsvDialect = PLAIN_CSV
) -> dict[str, float] | None:
    """Return the share of rows with each label; None without a label column or rows.

    Args:
        path: the path of a file that :func:`read_public_points` has read.
        label: the name of the label column.
        dialect: the separators and the encoding of the file.

    """
    with dialect.open(path) as file:
        names = dialect.header(file).names
        if label not in names:
            return None
        place = names.index(label)
        counts = Counter(row[place] for row in dialect.rows(file) if row[place:] and row[place])
    total = counts.total()
    return {name: count / total for name, count in counts.items()} if total else None


class _Points:
    """The rows of an open CSV."""

    def __init__(self, file: TextIO, schema: Schema, dialect: CsvDialect) -> None:
        """Read the header and find the feature columns."""
        header = dialect.header(file)
        self._header = header.names
        self._schema = schema
        self._decimal = dialect.decimal
        if not set(header.names).issuperset(schema.feature_names):
            likely = header.likely(schema.feature_names)
            if likely is not None:
                raise ConfigurationError(OPTION, f"the header {likely}")
        self._positions = [self._position(name) for name in schema.feature_names]
        self._lines = filter(None, dialect.rows(file))

    def blocks(self) -> Iterator[NDArray[np.float64]]:
        """Yield the encoded rows, block by block."""
        numbered = enumerate(self._lines, start=1)
        while block := list(islice(numbered, POINTS_PER_BLOCK)):
            yield encode(self._schema, [self._vector(number, cells) for number, cells in block])

    def _position(self, name: str) -> int:
        if self._header.count(name) != 1:
            problem = "is missing" if name not in self._header else "occurs more than once"
            raise ConfigurationError(OPTION, f'column "{name}" {problem} in the header')
        return self._header.index(name)

    def _vector(self, number: int, cells: list[str]) -> Vector:
        if len(cells) != len(self._header):
            problem = f"has {len(cells)} cells, the header has {len(self._header)}"
            raise ConfigurationError(OPTION, f"row {number}: {problem}")
        try:
            values = [
                _posted(feature, cells[position], self._schema.missing_tokens, self._decimal)
                for feature, position in zip(self._schema.features, self._positions, strict=True)
            ]
            return parse_features(self._schema, values)
        except InvalidFeaturesError as error:
            where = f'column "{error.feature}", row {number}'
            raise ConfigurationError(OPTION, f"{where}: {error.problem}") from None


def _posted(
    feature: Feature, cell: str, missing: frozenset[str], decimal: str
) -> float | str | None:
    """Return a cell as a client would post it."""
    if cell in missing or feature.kind != NumericFeature.kind:
        return cell
    number = number_in(with_point(cell, decimal))
    if number is None:
        raise InvalidFeaturesError(feature=feature.name, problem="must be a number")
    return number
