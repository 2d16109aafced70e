"""Feature vectors: from posted values to canonical bytes and to encoded numbers.

A vector contains the values of a query in the order of the schema, as they were posted: numbers
(``-0.0`` becomes 0, and 1 becomes 1.0), strings, and None for a missing value. A date becomes the
number of days from 1970-01-01, and a boolean becomes ``true`` or ``false``. Values are clipped to
their bounds only later, so that two queries with different values stay different queries.

The canonical bytes of a vector contain its values. A query is a repeated query if its vector has
the same bytes as that of an earlier one.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.data.field_values import CellError, Names, boolean_name, boolean_spellings, day_number
from app.data.schema import BooleanFeature, DateFeature, NumericFeature
from app.errors import InvalidFeaturesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from app.data.schema import CategoricalFeature, Feature, Schema

Vector = tuple[float | str | None, ...]
"""One value a feature, in schema order; None, or a token of ``missing``, is missing."""

WHOLE_VECTOR = "features"
STRING_CHARACTERS_MAX = 1000
ABSENT: Final = "is absent; null is a missing value"
# Of names that are compared for their likeness.
NAME_COMPARED_MAX: Final = 100
NAMES_COMPARED_MAX: Final = 200
LIKENESS: Final = 0.7
_FLOAT = frozenset({float})
_FLOAT_OR_NONE = frozenset({float, type(None)})

# From here on, laying vectors side by side pays.
TOGETHER_MIN: Final = 16
# Of MessagePack: a number is this byte and its float64, the greater bytes first; a list
# begins with one byte, and with three or five from sixteen and from 65,536 items on.
_NUMBER_MARK: Final = 0xCB
_HEAD_BYTES: Final = ((1 << 4, 1), (1 << 16, 3), (1 << 32, 5))

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[float | str | None, ...])


def parse_features(schema: Schema, raw: object) -> Vector:
    """Return the values of a posted query, checked against the schema and in its order.

    Args:
        schema: the public schema.
        raw: the query as decoded from JSON: a list in the order of the schema, or a mapping by
            feature name.

    Raises:
        InvalidFeaturesError: the query is not valid. The error names the feature, or ``features``
            if the whole query is wrong.

    """
    ordered: Sequence[object]
    if isinstance(raw, dict):
        ordered = _in_order(schema, raw)
    elif isinstance(raw, list | tuple):
        ordered = raw
        if len(ordered) != len(schema.features):
            expected = len(schema.features)
            raise InvalidFeaturesError(
                feature=WHOLE_VECTOR, problem=f"must be {expected} values, got {len(ordered)}"
            )
    else:
        raise InvalidFeaturesError(
            feature=WHOLE_VECTOR, problem="must be a list in schema order or an object by name"
        )
    if schema.is_numeric and _FLOAT.issuperset(map(type, ordered)):
        numbers: tuple[float, ...] = tuple([number + 0.0 for number in ordered])  # type: ignore[operator]  # floats
        if math.isfinite(sum(numbers)):  # and so each is; a sum that overflows is looked at below
            return numbers
    missing = schema.missing_tokens
    return tuple(
        [
            _value(feature, names, value, missing)
            for feature, names, value in zip(
                schema.features, schema.category_names, ordered, strict=True
            )
        ]
    )


def replay_key(vector: Vector) -> bytes:
    """Return the canonical bytes of a vector, by which a repeated query is recognised.

    Two vectors have equal bytes if and only if they are equal.
    """
    return _encoder.encode(vector)


def replay_keys(vectors: Sequence[Vector]) -> list[bytes]:
    """Return the canonical bytes of each of many vectors, as :func:`replay_key` does."""
    packed = _packed_numbers(vectors) if len(vectors) >= TOGETHER_MIN else None
    return list(map(_encoder.encode, vectors)) if packed is None else _one_by_one(packed)


def parse_numbers(schema: Schema, rows: Sequence[tuple[float, ...]]) -> list[bytes] | None:
    """Return the canonical bytes of queries that contain only numbers, if all are valid.

    Args:
        schema: the public schema.
        rows: the values of one or more queries.

    Returns:
        The bytes of each query; None if a query may be invalid. Then :func:`parse_features` decides
        whether it is.

    """
    if not schema.is_numeric or set(map(len, rows)) != {len(schema.features)}:
        return None
    packed = _packed_numbers(rows)
    if packed is None:
        return None
    numbers = packed["values"]["number"]
    if not np.isfinite(numbers).all():
        return None
    if (np.signbit(numbers) & (numbers == 0.0)).any():
        packed = packed.copy()
        packed["values"]["number"] += 0.0
    return _one_by_one(packed)


def parse_number_row(schema: Schema, row: tuple[float, ...]) -> bytes | None:
    """Return the canonical bytes of a query that contains only numbers, if it is valid.

    Returns:
        The bytes; None if the query may be invalid. Then :func:`parse_features` decides whether it
        is.

    """
    if not schema.is_numeric or len(row) != len(schema.features) or not math.isfinite(sum(row)):
        return None
    return _encoder.encode([number + 0.0 for number in row])


def decode_key(key: bytes) -> Vector:
    """Return the feature vector that canonical bytes encode."""
    return _decoder.decode(key)


def encode(schema: Schema, vectors: Sequence[Vector]) -> NDArray[np.float64]:
    """Return vectors as numbers, encoded in the same way as private rows.

    Args:
        schema: the public schema.
        vectors: vectors that :func:`parse_features` returned.

    Returns:
        Encoded values, float64, shape ``(vectors, features)``: a number clipped to its bounds, NaN
        if it is missing, or the code of a category.

    """
    if not vectors:
        return np.empty((0, len(schema.features)), dtype=np.float64)
    packed = _packed_numbers(vectors) if len(vectors) >= TOGETHER_MIN else None
    if packed is not None and schema.is_numeric:
        values = packed["values"]["number"].astype(np.float64)
    elif schema.is_numeric and _FLOAT_OR_NONE.issuperset(map(type, chain.from_iterable(vectors))):
        values = np.array(vectors, dtype=np.float64)  # None, which is missing, becomes NaN
    else:
        values = _encode_by_column(schema, vectors)
    return _settle(schema, values)


def decode(schema: Schema, values: NDArray[np.float64]) -> list[Vector]:
    """Return feature vectors that have the given encoded values.

    All categories outside a feature's list become the same string.

    Args:
        schema: the public schema.
        values: encoded values, float64, shape ``(vectors, features)``.

    """
    columns = [
        [None if math.isnan(value) else value for value in column]
        if isinstance(feature, NumericFeature)
        else [_names(feature, schema.missing_tokens)[int(code)] for code in column]
        for feature, column in zip(schema.features, values.T.tolist(), strict=True)
    ]
    return list(zip(*columns, strict=True))


def _names(feature: CategoricalFeature, missing: frozenset[str]) -> list[str | None]:
    """Return what each code of a feature stands for; for others, a string of its own."""
    other = "other"
    while other in missing or other in feature.categories:
        other += "-"
    return [*feature.categories, other, None]


def encode_keys(schema: Schema, keys: Sequence[bytes]) -> NDArray[np.float64]:
    """Return vectors, given as canonical bytes, as numbers in the encoding of :func:`encode`."""
    layout = _layout(len(schema.features))
    are_many = len(keys) >= TOGETHER_MIN and schema.is_numeric
    if are_many and set(map(len, keys)) == {layout.itemsize}:
        packed = np.frombuffer(b"".join(keys), dtype=layout)
        if _are_numbers(packed):
            return _settle(schema, packed["values"]["number"].astype(np.float64))
    return encode(schema, list(map(decode_key, keys)))


def _settle(schema: Schema, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put values inside their bounds, in place; a number that stands for a missing one is NaN."""
    for number in schema.missing_numbers:
        values[(values == number) & np.array(schema.numeric_flags)] = math.nan
    lower, upper = schema.value_bounds
    np.maximum(values, lower, out=values)
    return np.minimum(values, upper, out=values)


def _packed_numbers(vectors: Sequence[Vector]) -> NDArray[np.void] | None:
    """Return the canonical bytes of vectors side by side; None where not all are all numbers.

    Each number takes nine bytes.  Where the total is that of numbers alone and every
    mark is in its place, each value begins where it would: the first does, and a mark
    says that the next one does.

    Args:
        vectors: of one schema, one or more, and so of one length.

    Returns:
        Shape ``(B,)``; its field ``values`` has a ``mark`` and a ``number`` a feature.

    """
    layout = _layout(len(vectors[0]))
    together = _encoder.encode(vectors)
    start = _head_bytes(len(vectors))
    if len(together) != start + len(vectors) * layout.itemsize:
        return None
    packed = np.frombuffer(together, dtype=layout, offset=start)
    return packed if _are_numbers(packed) else None


def _are_numbers(packed: NDArray[np.void]) -> bool:
    """Return whether what is laid out as numbers is marked so throughout."""
    return bool((packed["values"]["mark"] == _NUMBER_MARK).all())


def _one_by_one(packed: NDArray[np.void]) -> list[bytes]:
    """Return the canonical bytes of each of the vectors side by side."""
    keys: list[bytes] = packed.view(f"V{packed.itemsize}").tolist()
    return keys


@lru_cache(maxsize=64)
def _layout(width: int) -> np.dtype[np.void]:
    """Return how the canonical bytes of a vector of numbers are laid out."""
    value = np.dtype([("mark", "u1"), ("number", ">f8")])
    return np.dtype([("head", f"V{_head_bytes(width)}"), ("values", value, (width,))])


def _head_bytes(count: int) -> int:
    """Return how many bytes stand before the items of a list."""
    return next(size for limit, size in _HEAD_BYTES if count < limit)


def _encode_by_column(schema: Schema, vectors: Sequence[Vector]) -> NDArray[np.float64]:
    """Return numbers and codes in their columns, with NaN for a number that is missing."""
    values = np.empty((len(vectors), len(schema.features)), dtype=np.float64)
    columns = zip(
        schema.category_codes, schema.other_codes, zip(*vectors, strict=True), strict=True
    )
    for index, (codes, other_code, column) in enumerate(columns):
        if codes is None or other_code is None:
            values[:, index] = [value if type(value) is float else math.nan for value in column]
        else:
            values[:, index] = [codes.get(value, other_code) for value in column]
    return values


def _in_order(schema: Schema, raw: dict[object, object]) -> list[object]:
    """Return the values by name in schema order; all names, and no other."""
    for name in schema.feature_names:
        if name not in raw:
            raise InvalidFeaturesError(feature=name, problem=f"{ABSENT}{_meant(name, raw, schema)}")
    if len(raw) != len(schema.feature_names):
        unknown = next(name for name in raw if name not in schema.feature_indices)
        raise InvalidFeaturesError(
            feature=_shown(unknown), problem="is not a feature of the schema"
        )
    return [raw[name] for name in schema.feature_names]


def _value(
    feature: Feature, names: Names | None, value: object, missing: frozenset[str]
) -> float | str | None:
    """Check one posted value and put it in its canonical form."""
    if value is None:
        return None
    if isinstance(feature, BooleanFeature | DateFeature):
        return _truth_or_day(feature, value, missing)
    if isinstance(value, str):
        return _string(feature, value, missing)
    if names is not None:
        return _name(feature, names, value)
    if isinstance(value, bool) and not missing.isdisjoint(boolean_spellings(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise InvalidFeaturesError(feature=feature.name, problem="must be a number or null")
    return _number(feature, value)


def _name(feature: Feature, names: Names, value: object) -> str | None:
    """Return the category that a number or a boolean is, as a source's cell is read.

    Where no category is one, it was meant for another feature: it would be other for certain.
    """
    if names.have_booleans and isinstance(value, bool):
        return names.of(value)
    if names.have_numbers and isinstance(value, float | int) and not isinstance(value, bool):
        return names.of(_number(feature, value))
    numbers = ", a number" if names.have_numbers else ""
    booleans = ", a boolean" if names.have_booleans else ""
    problem = f"must be a string{numbers}{booleans} or null"
    raise InvalidFeaturesError(feature=feature.name, problem=problem)


def _truth_or_day(
    feature: BooleanFeature | DateFeature, value: object, missing: frozenset[str]
) -> float | str | None:
    """Return ``true`` or ``false``, or the number of a day, as a source's cell is read."""
    is_date = isinstance(feature, DateFeature)
    try:
        return day_number(value, missing) if is_date else boolean_name(value, missing)
    except CellError:
        wanted = "a date such as 2026-12-31" if is_date else "true, false"
        problem = f"must be {wanted} or null"
        raise InvalidFeaturesError(feature=feature.name, problem=problem) from None


def _number(feature: Feature, value: float) -> float:
    """Return a finite float64; adding 0.0 turns -0.0 into 0.0."""
    try:
        number = float(value) + 0.0
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidFeaturesError(feature=feature.name, problem="must be a finite number")
    return number


def _string(feature: Feature, value: str, missing: frozenset[str]) -> str:
    """Return a category as posted, or a token of ``missing``."""
    if value in missing:
        return value
    if isinstance(feature, NumericFeature):
        raise InvalidFeaturesError(feature=feature.name, problem="must be a number, not a string")
    if len(value) > STRING_CHARACTERS_MAX:
        raise InvalidFeaturesError(
            feature=feature.name, problem=f"must have at most {STRING_CHARACTERS_MAX} characters"
        )
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidFeaturesError(feature=feature.name, problem="must be Unicode text")
    return value


def _meant(name: str, raw: dict[object, object], schema: Schema) -> str:
    """Name a posted member that is likely meant for a feature; nothing where none is."""
    unknown = {
        str(each)[:NAME_COMPARED_MAX].lower(): each
        for each in islice(raw, NAMES_COMPARED_MAX)
        if each not in schema.feature_indices
    }
    near = get_close_matches(name[:NAME_COMPARED_MAX].lower(), list(unknown), 1, LIKENESS)
    return f'; did you mean it by "{_shown(unknown[near[0]])}"?' if near else ""


def _shown(name: object) -> str:
    """Return a posted name, made printable and short."""
    text = str(name)[:100]
    return text if text.isprintable() else ascii(text)
