"""Parsing of a query from bytes to validated features; an invalid query costs nothing.

A client may send an idempotency key with a query: a repeated query with the same key gets the same
answer. In a release with scores, a query's precision is the number of equal intervals into which
the scores are divided; the answer names one interval.
"""

from __future__ import annotations

import json
import math
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import msgspec

from app.answering.queries import Queries, Query
from app.data.vectors_and_schema import (
    BIN_COUNT_MAX,
    BIN_COUNT_MIN,
    TOGETHER_MIN,
    Schema,
    Vector,
    parse_features,
    parse_number_row,
    parse_numbers,
)
from app.errors import InvalidFeaturesError, MalformedBodyError
from app.http.problems import InvalidParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

    from app.answering.queries import Asker

SHAPE: Final = (
    'send one JSON object {"features": [...]} with the values in schema order, or '
    '{"features": {...}} with each value by its feature\'s name; GET /schema lists them'
)
MANY: Final = "a query has one vector: send many to POST /query/stream, one JSON object a line"
MEMBERS: Final = ("features", "precision", "idempotency_key")
NAME_SHOWN_MAX: Final = 60
LIKENESS: Final = 0.7
REPEATED: Final = "the body names a member twice, so its meaning is unclear; name each once"
TOO_MUCH: Final = "the body is nested too deeply, or holds a number of too many digits"
PRECISION_SHAPE: Final = (
    f"precision is the number of bins of a score, a whole number from {BIN_COUNT_MIN} to "
    f"{BIN_COUNT_MAX}; leave it out for the one that GET /schema tells"
)
NO_SCORES: Final = (
    "precision is for a release that answers scores, and this one answers labels; leave it out"
)
KEY_SHAPE: Final = (
    "an idempotency key is 1 to 255 visible ASCII characters, plain or as one quoted string, "
    "and is sent once"
)
KEY_PATTERN: Final = re.compile(r"[\x21-\x7e]{1,255}")
QUOTED_KEY_PATTERN: Final = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"')
QUOTED_PAIR_PATTERN: Final = re.compile(r"\\(.)")


class QueryBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /query``, before its values are checked against the schema."""

    features: list[Any] | dict[str, Any]
    precision: Any = None


class QueryLine(QueryBody):
    """A line of ``POST /query/stream``, which may have an idempotency key as a member."""

    idempotency_key: str | None = None


class NumbersLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of a query stream with only a list of numbers, if all features are numbers."""

    features: tuple[float, ...]


BodyT = TypeVar("BodyT", bound=QueryBody)

_BODY: Final = msgspec.json.Decoder(QueryBody)
_LINE: Final = msgspec.json.Decoder(QueryLine)
_NOTHING: Final = (None,)
_NUMBERS: Final = msgspec.json.Decoder(NumbersLine)


def parse_body(
    schema: Schema,
    body: bytes,
    key: str | None,
    *,
    with_scores: bool,
    asker: Asker | None = None,
) -> Query:
    """Return the query in a body of ``POST /query``.

    Args:
        schema: the public schema.
        body: the posted body.
        key: the idempotency key of the header, if there is one.
        with_scores: whether the release answers with scores, so that a query may have a precision.
        asker: the API key under which the query is counted; None on a server without API keys.

    Raises:
        MalformedBodyError: the body is not one JSON object of the right form.
        InvalidFeaturesError: the vector does not fit the schema.
        InvalidParameterError: the precision is invalid, or the release answers without scores.

    """
    decoded, vector = _parse(_BODY, schema, body)
    precision = _checked_precision(decoded.precision, with_scores=with_scores)
    return Query(vector, key, precision, asker)


def parse_line(
    schema: Schema, line: bytes, *, with_scores: bool, asker: Asker | None = None
) -> Query:
    """Return the query in one line of a stream; raises as :func:`parse_body` does.

    Raises:
        InvalidParameterError: the ``idempotency_key`` would not be allowed in a header.

    """
    decoded, vector = _parse(_LINE, schema, line)
    key = decoded.idempotency_key
    precision = _checked_precision(decoded.precision, with_scores=with_scores)
    return Query(vector, None if key is None else _checked_key(key), precision, asker)


def parse_lines_of_numbers(
    schema: Schema, lines: Sequence[bytes], *, asker: Asker | None = None
) -> Queries | None:
    """Return the queries in lines of numbers in schema order, parsed together for speed.

    Args:
        schema: the public schema.
        lines: one or more lines of a stream.
        asker: the API key under which the queries are counted; None on a server without API keys.

    Returns:
        The same queries as :func:`parse_line` returns for the lines; None if a line may have
        another form, so that :func:`parse_line` must parse the lines one by one.

    """
    if len(lines) < TOGETHER_MIN:
        return None
    together = b"".join(lines)
    # An escape may hide a member's name, and so a second member of that name.
    if b"\\" in together or together.count(b'"features"') != len(lines):
        return None
    try:
        rows = [line.features for line in map(_NUMBERS.decode, lines)]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    keys = parse_numbers(schema, rows)
    return None if keys is None else Queries.plain(keys, asker)


def parse_numbers_alone(
    schema: Schema, body: bytes, *, asker: Asker | None = None
) -> Queries | None:
    """Return the query in a body with only numbers in schema order, as a batch of one row.

    Returns:
        The same query as :func:`parse_body` returns, in half the time; None if the body may have
        another form, so that :func:`parse_body` must parse it.

    """
    # An escape may hide a member's name, and so a second member of that name.
    if b"\\" in body or body.count(b'"features"') != 1:
        return None
    try:
        numbers = _NUMBERS.decode(body).features
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    vector = parse_number_row(schema, numbers)
    return None if vector is None else Queries((vector,), _NOTHING, _NOTHING, (asker,))


def idempotency_key(headers: Headers) -> str | None:
    """Return the value of the header ``Idempotency-Key`` without the quotes around it.

    Raises:
        InvalidParameterError: the key is empty, too long, not visible ASCII, or sent twice.

    """
    sent = headers.getlist("idempotency-key")
    if not sent:
        return None
    if len(sent) > 1:
        raise InvalidParameterError(KEY_SHAPE)
    return _checked_key(sent[0].strip(" \t"))


def _checked_precision(given: object, *, with_scores: bool) -> int | None:
    """Return the number of bins that is asked for; None leaves it to the release."""
    if given is None:
        return None
    if not with_scores:
        raise InvalidParameterError(NO_SCORES)
    if type(given) is int and BIN_COUNT_MIN <= given <= BIN_COUNT_MAX:  # a boolean is none
        return given
    raise InvalidParameterError(PRECISION_SHAPE)


def _checked_key(text: str) -> str:
    quoted = QUOTED_KEY_PATTERN.fullmatch(text)
    if quoted:
        return QUOTED_PAIR_PATTERN.sub(r"\1", quoted[1])
    if text.startswith('"') or not KEY_PATTERN.fullmatch(text):
        raise InvalidParameterError(KEY_SHAPE)
    return text


def _parse(
    decoder: msgspec.json.Decoder[BodyT], schema: Schema, body: bytes
) -> tuple[BodyT, Vector]:
    try:
        decoded = decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        _refuse(schema, body)
    _refuse_many(decoded.features)
    vector = parse_features(schema, decoded.features)
    # The decoder keeps the last of two members with one name; a client that
    # sends both is mistaken about one of them.
    many = decoded.precision is not None or body.count(b'"precision"') > 1
    if many or isinstance(decoded.features, dict) or body.count(b'"features"') > 1:
        refuse_repeated_members(body)
    return decoded, vector


def _refuse(schema: Schema, body: bytes) -> NoReturn:
    """Tell a number that no float64 holds, which names its feature, from a broken body."""
    try:
        loose = json.loads(body.decode("utf-8"), parse_int=float)
    except (ValueError, RecursionError):
        if not body.strip():
            raise MalformedBodyError(f"the body is empty; {SHAPE}") from None
        many = f"{MANY}; " if _is_lines(body) else ""
        raise MalformedBodyError(f"the body is not JSON; {many}{SHAPE}") from None
    features = loose.get("features") if isinstance(loose, dict) else None
    if _has_non_finite_number(features):
        parse_features(schema, features)
    if isinstance(loose, list) and loose and all(isinstance(each, dict | list) for each in loose):
        raise MalformedBodyError(f"{MANY}; {SHAPE}")
    unknown = None if not isinstance(loose, dict) else _unknown_member(loose)
    raise MalformedBodyError(SHAPE if unknown is None else f"{unknown}; {SHAPE}")


def _unknown_member(body: dict[str, object]) -> str | None:
    """Name a member that the body should not have: the asker's own text, cut and printable."""
    unknown = next((name for name in body if name not in MEMBERS), None)
    if unknown is None:
        return None
    shown = ascii(unknown[:NAME_SHOWN_MAX])[1:-1]
    near = get_close_matches(unknown[:NAME_SHOWN_MAX].lower(), MEMBERS, 1, LIKENESS)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f'"{shown}" is no member of a query{meant}'


def _refuse_many(features: object) -> None:
    """Say where many vectors go, instead of what is wrong with the first as a value.

    Raises:
        InvalidFeaturesError: there are lists or objects in place of values.

    """
    if not isinstance(features, list) or not features:
        return
    if all(isinstance(each, list | dict) for each in features):
        raise InvalidFeaturesError(feature="features", problem=MANY)


def _is_lines(body: bytes) -> bool:
    """Whether the first line of several is JSON on its own."""
    first, _, rest = body.strip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(rest)


def _has_non_finite_number(features: object) -> bool:
    """Look for NaN, Infinity and 1e999, which the standard library's parser lets through."""
    values: Sequence[object] = ()
    if isinstance(features, dict):
        values = tuple(features.values())
    elif isinstance(features, list):
        values = features
    return any(isinstance(value, float) and not math.isfinite(value) for value in values)


def refuse_repeated_members(body: bytes) -> None:
    """Refuse JSON with an object that names a member twice.

    Raises:
        MalformedBodyError: an object names a member twice, or a member that is ignored is nested
            too deeply or a number of too many digits.

    """
    try:
        json.loads(body, object_pairs_hook=_distinct)
    except (ValueError, RecursionError):
        raise MalformedBodyError(TOO_MUCH) from None


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise MalformedBodyError(REPEATED)
    return members
