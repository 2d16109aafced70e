"""Made-up rows that fit a public schema, for developing clients without spending budget.

Features are drawn independently of each other, with the public frequencies in the schema, and
labels are drawn depending on the features. No private row is used; the same seed gives the same
rows.
"""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Final

from app.data.field_values import POINT, iso_date
from app.data.schema import BooleanFeature, DateFeature, NumericFeature
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.data.schema import Feature, Schema
    from app.settings.data_section import DataSettings

OPTION: Final = "--twin"
ROWS_MAX: Final = 1_000_000
DIGITS: Final = 3
# From which span on a number whose public numbers are whole is made up whole.
WHOLE_SPAN: Final = 10


def made_up_csv(data: DataSettings, row_count: int, seed: int) -> str:
    """Return a CSV text with a header and made-up rows that fit a schema.

    Args:
        data: the section ``[data]``, which contains the schema and the dialect of CSV files; if it
            names a column of identifiers of persons or rows, these are made up too.
        row_count: the number of rows.
        seed: the seed of the pseudo-random generator.

    Raises:
        ConfigurationError: there are fewer rows than the public number of persons.

    """
    if row_count > ROWS_MAX:
        raise ConfigurationError(OPTION, f"must be at most {ROWS_MAX}")
    persons = data.persons or row_count
    if persons > row_count:
        raise ConfigurationError(OPTION, f"must be at least data.persons, {persons}")
    header, rows = _rows(data.public_schema(), row_count, seed, decimal=data.decimal)
    named = data.person or data.id
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=data.separator, lineterminator="\n")
    writer.writerow([named, *header] if named else header)
    for index, row in enumerate(rows):
        identifier = f"person-{index % persons + 1}" if data.person else f"row-{index + 1}"
        writer.writerow([identifier, *row] if named else row)
    return text.getvalue()


def _rows(
    schema: Schema, row_count: int, seed: int, *, decimal: str
) -> tuple[tuple[str, ...], Iterable[tuple[str, ...]]]:
    """Return the header, and the cells of each row."""
    from app.learning.learner_seeds import generator
    from app.planning.trial.made_up_records import (
        ColumnLaw,
        Population,
        column_laws,
        made_up_labels,
    )

    laws = [
        # Without shares no text beyond the categories is made up.
        ColumnLaw(edges=None, shares=(1.0,) * len(feature.categories))
        if not isinstance(feature, NumericFeature) and not feature.category_shares
        else law
        for feature, law in zip(schema.features, column_laws(schema), strict=True)
    ]
    name = b"conclave made-up rows %d " % seed
    values = Population(laws).rows(row_count, name + b"features")
    are_codes = [law.edges is None for law in laws]
    drawn = generator(name + b"labels")
    labels = made_up_labels(values, are_codes, len(schema.classes), drawn)
    columns = [
        _cells(feature, column.tolist(), schema.missing_tokens, decimal=decimal)
        for feature, column in zip(schema.features, values.T, strict=True)
    ]
    columns.append([schema.classes[label] for label in labels.tolist()])
    return (*schema.feature_names, schema.label), zip(*columns, strict=True)


def _cells(
    feature: Feature, values: list[float], missing: frozenset[str], *, decimal: str
) -> list[str]:
    """Return encoded values as the cells of a CSV."""
    if not isinstance(feature, NumericFeature):
        other = [] if isinstance(feature, BooleanFeature) else [_other(feature.categories, missing)]
        names = [*feature.categories, *other]
        return [names[min(int(code), len(names) - 1)] for code in values]
    if isinstance(feature, DateFeature):
        days = (min(max(round(value), feature.lower), feature.upper) for value in values)
        return [iso_date(day) for day in days]
    digits = _digits(feature)
    rounded = (round(value, digits) for value in values)
    clipped = (min(max(value, feature.lower), feature.upper) for value in rounded)
    return [f"{value:.{digits}f}".replace(POINT, decimal) for value in clipped]


def _digits(feature: NumericFeature) -> int:
    """Return the decimals that a number is written with: about three significant ones."""
    span = feature.upper - feature.lower
    public = (feature.lower, feature.upper, *(feature.thresholds or ()))
    if span >= WHOLE_SPAN and all(float(number).is_integer() for number in public):
        return 0
    return max(0, DIGITS - math.floor(math.log10(span)))


def _other(categories: tuple[str, ...], missing: frozenset[str]) -> str:
    """Return a text that is no category and not missing."""
    text = "other"
    while text in categories or text in missing:
        text += "-other"
    return text
