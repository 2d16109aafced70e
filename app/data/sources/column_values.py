"""Conversion of the fields of one column to float64, with every field validated.

The method ``read`` of a column's parser depends on one value and the public schema only, and
defines the encoding of every field. Many fields are parsed together only if the result is the same
as that of ``read``. This is done for texts, of which each distinct one is parsed once and
remembered, and for numbers of a numeric feature. The memory for remembered texts is bounded.

A text that is none of a feature's categories counts as the category *other*. The names of
columns, categories and classes in the public schema are called *public names*.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import numpy as np

from app.data.field_values import (
    DECIMAL_NUMBER,
    ERRORS,
    MISSING_CELL,
    POINT,
    CellError,
    Names,
    boolean_name,
    boolean_spellings,
    day_number,
    finite_numbers,
    number_in,
    plain,
    with_point,
)
from app.data.person_digests import identifier_digests, text_digests
from app.data.persons import EXACT_FLOAT_MAX, NO_PERSON, PersonReader
from app.data.schema import BooleanFeature, CategoricalFeature, DateFeature, NumericFeature
from app.errors import invariant

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from app.data.persons import PersonColumn
    from app.data.schema import Feature, Schema

    Cells: TypeAlias = "Sequence[str] | NDArray[np.float64] | Values | Texts"
    """Texts as in a CSV; numbers of a numeric feature, NaN where one is missing; or values."""

__all__ = [
    "DECIMAL_NUMBER",
    "IdentifierColumn",
    "SourceColumn",
    "SourceDigests",
    "SourcePersons",
    "Texts",
    "Values",
    "source_columns",
]

REMEMBERED_CELLS_MAX = 65_536
ROWS_LOOKED_UP_TOGETHER = 2**20
# Every character of a decimal number and of the blanks about it, and what joins cells:
# a cell that holds a comma of its own is no number to `float` either.
JOINT = ","
NOT_OF_NUMBERS = re.compile(r"[^0-9+\-.eE \t,]", re.ASCII)
NOT_A_NUMBER = "is not a number"
NOT_FINITE = "is not a finite number"
NOT_UTF_8 = "is not UTF-8 text"
NO_CLASS = "is not one of data.classes"
NUMBER_TYPES = {int, float, type(None)}
# Of others, two equal values may be read differently, or have no hash.
REMEMBERED_TYPES = (int, float, bool, bytes, type(None))
UNITS_PER_DAY: Final = {"ns": 86_400 * 10**9, "us": 86_400 * 10**6, "ms": 86_400_000, "s": 86_400}
"""By units of ``datetime64``: how many of them a day has."""


class Texts(ABC):
    """The interface of a column of texts, of which many are parsed at once."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """Yield the text of each row; bytes that are not UTF-8 are escaped."""

    @abstractmethod
    def distinct(self) -> Values:
        """Return the distinct texts, and the index of each row's text among them."""

    @abstractmethod
    def distinct_with(self, others: Sequence[Texts]) -> Values:
        """Return the distinct texts of this column and others together.

        The result also has the index of each text among the distinct ones, column by column.
        """

    @abstractmethod
    def places(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Return the index of each text among ``names``, or -1 if it is none, shape ``(rows,)``."""

    @abstractmethod
    def are_unicode(self) -> bool:
        """Return whether every text of the column is UTF-8."""

    @abstractmethod
    def joined(self) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
        """Return the bytes of all texts, one after another, and where each text starts.

        Returns:
            The bytes; and the index at which each text starts, followed by the index at which the
            last one ends, shape ``(rows + 1,)``.

        """

    @abstractmethod
    def at(self, rows: NDArray[np.bool_]) -> Texts:
        """Return the texts of some rows.

        Args:
            rows: for each row whether its text is returned, shape ``(rows,)``.

        """

    @abstractmethod
    def numbers(
        self, missing: Collection[str], decimal: str
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Return texts as finite decimal numbers, and which texts must be parsed one by one.

        Args:
            missing: texts that stand for a missing value; they must be parsed one by one.
            decimal: the decimal separator.

        Returns:
            The numbers, shape ``(rows,)``; and for each row whether its text must be parsed one by
            one, shape ``(rows,)``, or None if no text must. The number returned for a text
            that must be parsed one by one has no meaning.

        """


@dataclass(frozen=True)
class Values:
    """A column of fields of any Python types.

    Attributes:
        distinct: the distinct values or texts; secret.
        places: the index of each row's value among the distinct ones; None if every row has its own
            value.

    """

    distinct: Sequence[object] | Texts = field(repr=False)
    places: NDArray[np.intp] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.distinct if self.places is None else self.places)

    def __iter__(self) -> Iterator[object]:
        """Yield the value of each row."""
        if self.places is None:
            return iter(self.distinct)
        distinct = list(self.distinct)
        return (distinct[place] for place in self.places.tolist())


def dates(moments: NDArray[np.generic]) -> Values:
    """Return the dates of a ``datetime64`` array; each distinct date is converted once."""
    unit, step = np.datetime_data(moments.dtype)  # type: ignore[arg-type]  # of moments
    days = moments.astype("datetime64[D]")
    if unit in UNITS_PER_DAY and step == 1:
        # Within a day of the first moment that 64 bits can count, numpy's conversion overflows.
        counts = moments.astype(f"datetime64[{unit}]").view(np.int64)
        exact = (counts // UNITS_PER_DAY[unit]).view("datetime64[D]")
        days = np.where(np.isnat(days), days, exact)
    distinct, places = np.unique(days, return_inverse=True)
    return Values(list(distinct), places)


class ColumnReader(Protocol):
    """The interface of a column's parser, which reads each value independently of others."""

    def read(self, value: object) -> float:
        """Return one value of the column, encoded as a number.

        Raises:
            CellError: the value does not fit the column.

        """
        ...


class SourceColumn(dict[str, float]):
    """A column of a source, with a parser that parses every distinct text once.

    Attributes:
        name: the name of the column in the source.
        reader: the parser of the column.

    """

    def __init__(self, name: str, reader: ColumnReader) -> None:
        """Start with no parsed texts."""
        super().__init__()
        self.name = name
        self.reader = reader
        self._repeats = True
        # By type: 1 equals True, and is read differently.
        self._by_type: dict[type, dict[object, float]] = {kind: {} for kind in REMEMBERED_TYPES}

    def __missing__(self, cell: str) -> float:
        """Check a text and remember it."""
        encoded = self.reader.read(cell)
        self[cell] = encoded
        return encoded

    @property
    def takes_numbers(self) -> bool:
        """Whether the column accepts an array of numbers in place of texts."""
        return isinstance(self.reader, NumericColumn)

    @property
    def takes_dates(self) -> bool:
        """Whether the column accepts values of date and timestamp types."""
        return isinstance(self.reader, DateColumn)

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """Return a block of the column's fields, encoded as float64, shape ``(fields,)``.

        Raises:
            CellError: some field does not fit the column; the caller finds out which one it is.

        """
        if isinstance(cells, np.ndarray):
            return self._numeric().read_numbers(cells)
        if isinstance(cells, Values):
            encoded = self._values(cells.distinct)
            return encoded if cells.places is None else encoded[cells.places]
        if isinstance(cells, Texts):
            return self._texts(cells)
        numbers = None if self._repeats else self._numeric().read_texts(cells)
        return self._looked_up(cells) if numbers is None else numbers

    def check(self, cell: object) -> None:
        """Raise an error if a field does not fit the column.

        Raises:
            CellError: the field does not fit the column.

        """
        self.reader.read(cell)

    def _looked_up(self, cells: Sequence[str]) -> NDArray[np.float64]:
        """Look every text up; numbers that hardly repeat are read together from then on."""
        if len(self) > REMEMBERED_CELLS_MAX:
            self.clear()
        known = len(self)
        encoded = np.fromiter(map(self.__getitem__, cells), dtype=np.float64, count=len(cells))
        self._repeats = not self.takes_numbers or 2 * (len(self) - known) <= len(cells)
        return encoded

    def _texts(self, texts: Texts) -> NDArray[np.float64]:
        """Read texts together where the reader can, else each distinct one."""
        if isinstance(self.reader, CategoricalColumn | LabelColumn):
            return self.reader.read_together(texts)
        if not isinstance(self.reader, NumericColumn):
            return self.encode(texts.distinct())
        encoded, alone = self.reader.read_together(texts)
        if alone is not None:
            odd = texts.at(alone).distinct()
            encoded[alone] = self._values(odd.distinct)[odd.places]
        return encoded

    def _values(self, values: Sequence[object] | Texts) -> NDArray[np.float64]:
        """Read values of one type together where they are texts or numbers, else one by one."""
        if isinstance(values, Texts):
            return self._texts(values)
        kinds = set(map(type, values))
        if kinds == {str}:
            return self.encode(values)  # type: ignore[arg-type]  # texts
        if self.takes_numbers and kinds <= NUMBER_TYPES:
            # An integer beyond any float64 is read alone, and refused.
            with suppress(OverflowError):
                numbers = [math.nan if value is None else value for value in values]
                return self._numeric().read_numbers(np.array(numbers, dtype=np.float64))
        for known in self._by_type.values():
            if len(known) > REMEMBERED_CELLS_MAX:
                known.clear()
        return np.fromiter(map(self._value, values), dtype=np.float64, count=len(values))

    def _value(self, value: object) -> float:
        """Read one value, unless one of its type that equals it is remembered."""
        if type(value) is str:
            return self[value]
        known = self._by_type.get(type(value))
        if known is None:
            return self.reader.read(value)
        encoded = known.get(value)
        if encoded is None:
            encoded = known[value] = self.reader.read(value)
        return encoded

    def _numeric(self) -> NumericColumn:
        """Return the reader of a numeric feature."""
        invariant(isinstance(self.reader, NumericColumn), "numbers belong to a numeric feature")
        return self.reader  # type: ignore[return-value]  # checked above


class IdentifierColumn(SourceColumn):
    """The column of a source that contains the identifier of each row's person.

    Attributes:
        persons: the parser of identifiers.

    """

    def __init__(self, column: PersonColumn) -> None:
        """Start with no persons."""
        self.persons = PersonReader(column)
        super().__init__(column.name, self.persons)
        self._missing = sorted(column.missing)

    def refuse_nobody(self, texts: Texts) -> None:
        """Refuse texts if one of them stands for a missing value.

        Raises:
            CellError: some text identifies no person; the caller finds out which one it is.

        """
        if (texts.places(self._missing) >= 0).any():
            raise CellError(NO_PERSON)


class SourceDigests(IdentifierColumn):
    """The identifier column of a source, with each identifier converted to its keyed digest."""

    def __init__(self, column: PersonColumn) -> None:
        """Start with no digests."""
        super().__init__(column)
        self._key = column.key
        missing = [text.encode(errors=ERRORS) for text in column.missing]
        self._missing_bytes_max = max(map(len, missing), default=0)
        self._digests: list[NDArray[np.uint64]] = []

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """Store the digests of a block of identifiers, for :meth:`take`.

        Returns:
            Zeros, shape ``(fields,)``, since this column is not a feature.

        Raises:
            CellError: some field identifies no person; the caller finds out which one it is.

        """
        if isinstance(cells, Values):
            digests = self._read(cells.distinct)
            self._digests.append(digests if cells.places is None else digests[cells.places])
        else:
            self._digests.append(self._read(cells))
        return np.zeros(len(cells))

    def take(self) -> NDArray[np.uint64]:
        """Return the digests of the rows read since the last call, shape ``(rows, 2)``."""
        digests = self._digests
        self._digests = []
        if len(digests) == 1:
            return digests[0]
        return np.concatenate([text_digests((), self._key), *digests])

    def _read(self, cells: Iterable[object] | Texts) -> NDArray[np.uint64]:
        """Return the digest of each identifier."""
        if isinstance(cells, Texts):
            body, offsets = cells.joined()
            if np.diff(offsets).min(initial=self._missing_bytes_max) <= self._missing_bytes_max:
                self.refuse_nobody(cells)
            return identifier_digests(body, offsets, self._key)
        return text_digests(list(map(self.persons.identifier, cells)), self._key)


class SourcePersons(IdentifierColumn):
    """The identifier column of a source, with each identifier converted to its person's number.

    Each field is checked when its block is read. The persons of about a million rows are looked up
    together, so that each identifier is looked up once.
    """

    def __init__(self, column: PersonColumn) -> None:
        """Start with no persons."""
        super().__init__(column)
        self._numbers: list[NDArray[np.float64]] = []
        self._texts_read: list[Texts] = []

    def encode(self, cells: Cells) -> NDArray[np.float64]:
        """Store the persons of a block of identifiers, for :meth:`take_numbers`.

        Returns:
            Zeros, shape ``(fields,)``, since this column is not a feature.

        Raises:
            CellError: some field identifies no person; the caller finds out which one it is.

        """
        if isinstance(cells, Texts):
            self.refuse_nobody(cells)
            self._texts_read.append(cells)
            if sum(map(len, self._texts_read)) >= ROWS_LOOKED_UP_TOGETHER:
                self._look_up()
        else:
            self._look_up()
            self._numbers.append(self._read(cells))
        return np.zeros(len(cells))

    def take_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the persons of rows read since the last call, shape ``(rows,)``."""
        self._look_up()
        numbers = np.concatenate([np.zeros(0), *self._numbers]).astype(np.int64)
        self._numbers.clear()
        return numbers

    def _read(self, cells: Cells) -> NDArray[np.float64]:
        """Return the person's number of each field that is no text of many."""
        if not isinstance(cells, Values):
            return self.persons.read_all(list(cells))
        numbers = self.persons.read_all(list(cells.distinct))
        return numbers if cells.places is None else numbers[cells.places]

    def _look_up(self) -> None:
        """Look up the persons of all texts read so far."""
        if self._texts_read:
            first, *others = self._texts_read
            self._numbers.append(self._read(first.distinct_with(others)))
            self._texts_read.clear()


def widened(numbers: NDArray[np.generic], column: SourceColumn) -> NDArray[np.float64]:
    """Return floats of any width as float64.

    An identifier that may have lost its last digits in a narrow type becomes a number that is
    refused for that, so that it does not stand for several persons.
    """
    wide = numbers.astype(np.float64)
    info = np.finfo(numbers.dtype)  # type: ignore[type-var]  # of floats
    if isinstance(column, IdentifierColumn) and info.bits < np.finfo(np.float64).bits:
        wide[np.abs(wide) >= 2.0 ** (info.nmant + 1)] = EXACT_FLOAT_MAX
    return wide


class NumericColumn:
    """The parser of a numeric feature: decimal numbers, clipped to the feature's bounds."""

    def __init__(
        self, feature: NumericFeature, missing_tokens: frozenset[str], decimal: str = POINT
    ) -> None:
        """Store the public bounds, the texts for missing values, and the decimal separator."""
        self._decimal = decimal
        self._lower, self._upper = feature.lower, feature.upper
        self._tokens = missing_tokens
        self._missing = finite_numbers(missing_tokens)
        self._missing_numbers = sorted(self._missing)

    def canonical(self, value: object) -> float:
        """Return a value as a finite number, with 0 for -0.0 and NaN for a missing value.

        A text is parsed as a number first. So if a number stands for a missing value, every
        spelling of it does.

        Raises:
            CellError: the value is not a finite number.

        """
        number = plain(value)
        if isinstance(number, bool):
            if not self._tokens.isdisjoint(boolean_spellings(number)):
                return math.nan
            raise CellError(NOT_A_NUMBER)
        if isinstance(number, str):
            if number in self._tokens:
                return math.nan
            number = number_in(with_point(number, self._decimal))
            if number is None:
                raise CellError(NOT_A_NUMBER)
        if number is None or number in self._missing:
            return math.nan
        if not math.isfinite(number):
            raise CellError(NOT_FINITE)
        return number

    def read(self, value: object) -> float:
        """Return a value as a number clipped to the bounds, or NaN if it is missing."""
        number = self.canonical(value)
        if math.isnan(number):
            return number
        # Adding 0.0 turns a bound of -0.0 into 0.0.
        return min(max(number, self._lower), self._upper) + 0.0

    def read_texts(self, cells: Sequence[str]) -> NDArray[np.float64] | None:
        """Return many texts as clipped numbers, as :meth:`read` does.

        Returns:
            Numbers, shape ``(texts,)``; None if some text may not be a finite number, so that the
            texts must be parsed one by one.

        """
        some_missing = not self._tokens.isdisjoint(cells)
        present = [cell for cell in cells if cell not in self._tokens] if some_missing else cells
        if self._decimal != POINT:
            present = [with_point(cell, self._decimal) for cell in present]
        # Of these characters `float` takes the same as the pattern of one cell.
        if NOT_OF_NUMBERS.search(JOINT.join(present)):
            return None
        try:
            numbers = np.fromiter(map(float, present), dtype=np.float64, count=len(present))
        except ValueError:
            return None
        if not np.isfinite(numbers).all():
            return None
        clipped = self._settled(numbers)
        if not some_missing:
            return clipped
        encoded = np.full(len(cells), math.nan)
        encoded[[cell not in self._tokens for cell in cells]] = clipped
        return encoded

    def read_together(self, texts: Texts) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
        """Return many texts as clipped numbers, and which texts must be parsed one by one.

        Returns:
            The numbers, shape ``(rows,)``; and for each row whether its text must be parsed one by
            one, shape ``(rows,)``, or None if no text must.

        """
        numbers, alone = texts.numbers(self._tokens, self._decimal)
        return self._settled(numbers), alone

    def read_numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers clipped to the bounds, with every missing value as the same NaN.

        Raises:
            CellError: a number is infinite.

        """
        if np.isinf(numbers).any():
            raise CellError(NOT_FINITE)
        settled = self._settled(numbers)
        settled[np.isnan(numbers)] = math.nan
        return settled

    def _settled(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip finite numbers, and put NaN for each that stands for a missing one."""
        clipped: NDArray[np.float64] = np.clip(numbers, self._lower, self._upper) + 0.0
        for number in self._missing_numbers:
            clipped[numbers == number] = math.nan
        return clipped


class DateColumn:
    """The parser of a date feature: days from 1970-01-01, clipped to the feature's bounds."""

    def __init__(self, feature: DateFeature, missing_tokens: frozenset[str]) -> None:
        """Store the public bounds and the texts for missing values."""
        self._lower, self._upper = feature.lower, feature.upper
        self._tokens = missing_tokens

    def read(self, value: object) -> float:
        """Return a date as a clipped number of days, or NaN if it is missing."""
        day = day_number(value, self._tokens)
        return math.nan if day is None else min(max(day, self._lower), self._upper)


class BooleanColumn:
    """The parser of a boolean feature: true, false, or missing."""

    def __init__(self, feature: BooleanFeature, missing_tokens: frozenset[str]) -> None:
        """Store the public codes and the texts for missing values."""
        self._codes = feature.codes(missing_tokens)
        self._tokens = missing_tokens

    def read(self, value: object) -> float:
        """Return the code of a boolean, or of a missing value."""
        return self._codes[boolean_name(value, self._tokens)]


class NamedColumn:
    """A parser of values with public names: texts are compared exactly, and numbers by value."""

    def __init__(self, names: Iterable[str]) -> None:
        """Store the names; if two names are the same number, the first is used."""
        self.names = Names(names)

    def canonical(self, value: object) -> str:
        """Return the public name that equals a value, or the value as text; empty if missing."""
        name = self.names.of(plain(value))
        return MISSING_CELL if name is None else name


class CategoricalColumn(NamedColumn):
    """The parser of a categorical feature; a text that is no category counts as *other*."""

    def __init__(self, feature: CategoricalFeature, missing_tokens: frozenset[str]) -> None:
        """Store the public codes."""
        super().__init__((*feature.categories, *sorted(missing_tokens)))
        self._codes = feature.codes(missing_tokens)
        self._other_code = feature.other_code

    def read(self, value: object) -> float:
        """Return the code of a listed category, of a missing value, or of *other*."""
        name = self.canonical(value)
        code = self._codes.get(name)
        if code is not None:
            return code
        _require_unicode(name)
        return self._other_code

    def read_together(self, texts: Texts) -> NDArray[np.float64]:
        """Return the codes of many texts, as :meth:`read` does, shape ``(texts,)``.

        Raises:
            CellError: some text is not UTF-8.

        """
        names = [name for name in self._codes if isinstance(name, str)]
        codes = np.array([*map(self._codes.__getitem__, names), self._other_code], np.float64)
        places = texts.places(names)
        if (places < 0).any() and not texts.are_unicode():
            raise CellError(NOT_UTF_8)
        return codes[places]


class LabelColumn(NamedColumn):
    """The parser of the label column, in which every value must be one of the classes."""

    def __init__(self, classes: Sequence[str]) -> None:
        """Store the index of each class."""
        super().__init__(classes)
        self._indices = {label: index for index, label in enumerate(classes)}

    def read(self, value: object) -> float:
        """Return the index of the class that a value names.

        Raises:
            CellError: the value is not the name of a class.

        """
        index = self._indices.get(self.canonical(value))
        if index is None:
            raise CellError(NO_CLASS)
        return index

    def read_together(self, texts: Texts) -> NDArray[np.float64]:
        """Return the class indices of many texts, as :meth:`read` does, shape ``(texts,)``.

        Raises:
            CellError: some text is not the name of a class.

        """
        places = texts.places(list(self._indices))
        if (places < 0).any():
            raise CellError(NO_CLASS)
        return places.astype(np.float64)


def source_columns(schema: Schema, *, decimal: str = POINT) -> list[SourceColumn]:
    """Return a new parser for each feature's column and, at the end, one for the label's.

    Args:
        schema: the public schema.
        decimal: the decimal separator in texts.

    """
    columns = [
        SourceColumn(feature.name, column_reader(feature, schema, decimal))
        for feature in schema.features
    ]
    return [*columns, SourceColumn(schema.label, LabelColumn(schema.classes))]


def column_reader(feature: Feature, schema: Schema, decimal: str) -> ColumnReader:
    """Return the parser of a feature's column.

    Args:
        feature: the feature.
        schema: the public schema, which has the texts for missing values.
        decimal: the decimal separator in texts.

    """
    if isinstance(feature, DateFeature):
        return DateColumn(feature, schema.missing_tokens)
    if isinstance(feature, BooleanFeature):
        return BooleanColumn(feature, schema.missing_tokens)
    if isinstance(feature, NumericFeature):
        return NumericColumn(feature, schema.missing_tokens, decimal)
    return CategoricalColumn(feature, schema.missing_tokens)


def _require_unicode(cell: str) -> None:
    """Refuse bytes that are not UTF-8, which the reader of a source lets through escaped."""
    try:
        cell.encode()
    except UnicodeEncodeError:
        raise CellError(NOT_UTF_8) from None


NEAR_IN: Final = "blanks, capitals, dashes, points or how a number is written"
_IGNORED = str.maketrans("", "", " \t-_.")


class NearNames:
    """A look-up of public names for misspelt texts, which ignores blanks, capitals and dashes.

    A misspelt text is not a public name: in a feature it counts as the category *other*, and as a
    label it is refused. A message to the operator names the similar public name, never the text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Store the names of one column; of several similar names, the first is used."""
        self._names: dict[str, str] = {}
        for name in names:
            self._names.setdefault(_form(name), name)
        self._names.pop("", None)
        self._found: dict[str, str | None] = {}

    def near(self, text: str) -> str | None:
        """Return the public name from which a text differs only in blanks, capitals or dashes.

        The result is None if there is no such name.
        """
        if len(self._found) > REMEMBERED_CELLS_MAX:
            self._found.clear()
        if text not in self._found:
            self._found[text] = self._names.get(_form(text))
        return self._found[text]


def _form(text: str) -> str:
    """Return what texts near each other have in common."""
    bare = text.strip()
    if DECIMAL_NUMBER.fullmatch(bare):
        return repr(float(bare) + 0.0)
    return bare.casefold().translate(_IGNORED)
