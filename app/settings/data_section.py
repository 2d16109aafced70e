"""``[data]`` and ``[[data.features]]``: the private source and its public schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationError

from app.data.persons import PersonColumn
from app.data.schema import (
    BooleanFeature,
    CategoricalFeature,
    DateFeature,
    NumericFeature,
    Schema,
)
from app.data.sources.csv_dialect import CsvDialect
from app.errors import ConfigurationError
from app.settings.error_lines import configuration_error
from app.settings.field_types import (
    Address,
    Bounds,
    DateBounds,
    Day,
    Encoding,
    Name,
    Number,
    Section,
    Separator,
    Text,
    Unit,
    Whole,
)

PublicShare = Annotated[Number, Field(ge=0, le=1)]


class NumericFeatureSettings(Section):
    """A numeric feature as configured in ``[[data.features]]``."""

    name: Annotated[
        Name, Field(description="Column of the source, and name of the feature in a query.")
    ]
    kind: Annotated[Literal["numeric"], Field(description="Kind of the feature.")]
    bounds: Annotated[
        Bounds,
        Unit("the feature's own"),
        Field(description="Public [lower, upper]; a number outside counts as the nearer bound."),
    ]
    thresholds: Annotated[
        tuple[Number, ...] | None,
        Unit("the feature's own"),
        Field(
            min_length=1,
            description="Public cut points, increasing, in place of the equal intervals of `bins`.",
        ),
    ] = None
    threshold_shares: Annotated[
        tuple[PublicShare, ...] | None,
        Unit("fraction of people"),
        Field(description="Public fraction of people at or above each cut point of `thresholds`."),
    ] = None

    def _made_as(self) -> type[NumericFeature]:
        """Return the class of the feature."""
        return NumericFeature

    def feature(self) -> NumericFeature:
        """Return the numeric feature as a part of the public schema."""
        lower, upper = self.bounds
        return self._made_as()(
            name=self.name,
            lower=lower,
            upper=upper,
            thresholds=self.thresholds,
            threshold_shares=self.threshold_shares,
        )


class DateFeatureSettings(NumericFeatureSettings):
    """A date as configured in ``[[data.features]]``."""

    kind: Annotated[  # type: ignore[assignment]  # a kind of its own
        Literal["date"], Field(description="Kind of the feature.")
    ]
    bounds: Annotated[
        DateBounds,
        Unit("dates"),
        Field(description="Public [first, last]; a date outside counts as the nearer bound."),
    ]
    thresholds: Annotated[
        tuple[Day, ...] | None,
        Unit("dates"),
        Field(
            min_length=1,
            description="Public cut points, increasing, in place of the equal intervals of `bins`.",
        ),
    ] = None

    def _made_as(self) -> type[NumericFeature]:
        """Return the class of the feature."""
        return DateFeature


class CategoricalFeatureSettings(Section):
    """A categorical feature as configured in ``[[data.features]]``."""

    name: Annotated[
        Name, Field(description="Column of the source, and name of the feature in a query.")
    ]
    kind: Annotated[Literal["categorical"], Field(description="Kind of the feature.")]
    categories: Annotated[
        tuple[Text, ...],
        Field(
            min_length=1,
            description="Public categories; any other string counts as one further category, called"
            " other.",
        ),
    ]
    category_shares: Annotated[
        tuple[PublicShare, ...] | None,
        Unit("fraction of people"),
        Field(description="Public fraction of people in each category."),
    ] = None

    def feature(self) -> CategoricalFeature:
        """Return the categorical feature as a part of the public schema."""
        return CategoricalFeature(
            name=self.name, categories=self.categories, category_shares=self.category_shares
        )


class BooleanFeatureSettings(Section):
    """A boolean feature as configured in ``[[data.features]]``."""

    name: Annotated[
        Name, Field(description="Column of the source, and name of the feature in a query.")
    ]
    kind: Annotated[Literal["boolean"], Field(description="Kind of the feature.")]
    true_share: Annotated[
        PublicShare,
        Unit("fraction of people"),
        Field(description="Public fraction of people for whom the feature is true."),
    ] = 0.5

    def feature(self) -> BooleanFeature:
        """Return the boolean feature as a part of the public schema."""
        shares = (1.0 - self.true_share, self.true_share)
        return BooleanFeature(name=self.name, category_shares=shares)


FeatureSettings = Annotated[
    NumericFeatureSettings
    | DateFeatureSettings
    | CategoricalFeatureSettings
    | BooleanFeatureSettings,
    Field(discriminator="kind"),
]


class DataSettings(Section):
    """``[data]``: the source of the private rows, and their public schema."""

    source: Annotated[
        Address,
        Field(
            description="Private rows: a .csv, .csv.gz, .parquet or .npz file, a folder of "
            ".parquet parts, a pattern of files, an address of s3://, gs:// or abfs://, or an "
            "SQLAlchemy URL. See [sources.md](sources.md).",
        ),
    ]
    query: Annotated[
        Text | None,
        Field(
            description="If `source` is an SQLAlchemy URL: one SELECT that gives one row for each "
            "record, without aggregates, joins, windows or limits."
        ),
    ] = None
    rows: Annotated[
        Whole | None,
        Unit("rows"),
        Field(
            ge=1,
            description="Number of rows, called n, which is public; the opening checks it. Refused "
            "together with `person`, because the number of rows is then private.",
        ),
    ] = None
    person: Annotated[
        Name | None,
        Field(
            description="Private column that names the person of each row, who is then the unit "
            "of privacy. Never a feature, never sent out. See "
            "[sources.md](sources.md#several-rows-a-person)."
        ),
    ] = None
    persons: Annotated[
        Whole | None,
        Unit("persons"),
        Field(
            ge=1,
            description="With `person`: the number of persons, which is public; the opening "
            "checks it.",
        ),
    ] = None
    id: Annotated[
        Name | None,
        Field(
            description="With `[generations]`: private, unique column that names a row, so that "
            "it can be erased or corrected. Never a feature, never sent out. See "
            "[generations.md](generations.md#erasure-and-correction)."
        ),
    ] = None
    separator: Annotated[
        Separator,
        Field(
            description="Character between the fields of a CSV file: of `source`, and of "
            "`--public`."
        ),
    ] = ","
    decimal: Annotated[
        Literal[".", ","],
        Field(
            description="Decimal mark of the numbers in a CSV file; it must differ from the "
            "separator."
        ),
    ] = "."
    encoding: Annotated[
        Encoding,
        Field(description="Text encoding of a CSV file: utf-8, utf-16, cp1252, ..."),
    ] = "utf-8"
    label: Annotated[Name, Field(description="Column of the source that contains the label.")]
    classes: Annotated[
        tuple[Text, ...],
        Field(
            min_length=2,
            description="Public labels, in a fixed order; in a tie of votes the first of the tied "
            "labels wins.",
        ),
    ]
    missing: Annotated[
        tuple[str, ...],
        Field(description="Strings that stand for a missing value, besides an empty field."),
    ] = ()
    dead_features: Annotated[
        Literal["refuse", "allow"],
        Field(
            description="Whether a release opens although a feature carries no information: none of"
            " its categories occurs, all values lie on one bound, or all are missing. "
            "May be changed after the opening."
        ),
    ] = "refuse"
    features: Annotated[
        tuple[FeatureSettings, ...],
        Field(
            min_length=1,
            description="The public schema, in the order in which a query lists its features.",
        ),
    ]

    @property
    def unit(self) -> Literal["row", "person"]:
        """Return the unit of privacy that is configured: a row or a person."""
        return "row" if self.person is None else "person"

    @property
    def unit_count(self) -> int | None:
        """Return the number of rows, or of persons if a column names them; None if unknown."""
        return self.rows if self.person is None else self.persons

    def person_column(self, key: bytes) -> PersonColumn | None:
        """Return the column that names persons; None if a row is the unit of privacy.

        Args:
            key: the secret key of the hashes that replace the names.

        """
        if self.person is None:
            return None
        missing = frozenset((*self.missing, ""))
        return PersonColumn(name=self.person, key=key, missing=missing, count=self.persons)

    def id_column(self, key: bytes) -> PersonColumn | None:
        """Return the column that has an identifier of each row; None if there is none.

        The identifier of a row is parsed in the same way as the identifier of a person.

        Args:
            key: the secret key of the hashes that replace the identifiers.

        """
        if self.id is None:
            return None
        return PersonColumn(name=self.id, key=key, missing=frozenset((*self.missing, "")))

    @property
    def dialect(self) -> CsvDialect:
        """Return the configured dialect (separator, decimal, encoding) of CSV files."""
        return CsvDialect(self.separator, self.decimal, self.encoding)

    def grids(self) -> dict[str, tuple[float, ...]]:
        """Return the configured thresholds of numeric features, by the feature's name."""
        return {
            feature.name: feature.thresholds
            for feature in self.features
            if isinstance(feature, NumericFeatureSettings) and feature.thresholds is not None
        }

    def public_schema(self) -> Schema:
        """Return the public schema by which rows and queries are read."""
        return Schema(
            label=self.label,
            classes=self.classes,
            features=tuple(feature.feature() for feature in self.features),
            missing=self.missing,
        )


class DialectOptions(Section):
    """The CSV dialect given by options on the command line."""

    separator: Separator
    decimal: Literal[".", ","]
    encoding: Encoding


def dialect_of(separator: str, decimal: str, encoding: str) -> CsvDialect:
    """Return the CSV dialect that command-line options give.

    Args:
        separator: the character between fields.
        decimal: the decimal point of numbers, a point or a comma.
        encoding: the text encoding of the file.

    Raises:
        ConfigurationError: an option is invalid; the error names the option.

    """
    given = {"separator": separator, "decimal": decimal, "encoding": encoding}
    try:
        options = DialectOptions.model_validate(given)
    except ValidationError as error:
        wrong = configuration_error(error, given, lambda _: ())
        raise ConfigurationError(f"--{wrong.key}", wrong.problem) from None
    if options.separator == options.decimal:
        raise ConfigurationError("--decimal", "is --separator too: give one of them")
    return CsvDialect(options.separator, options.decimal, options.encoding)
